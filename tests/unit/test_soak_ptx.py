"""The soak's kernels' PTX, run for all threads of small blocks; and what a product must come to."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from ptx_simulator import GLOBAL
from test_pattern_ptx import WideMachine

from envcheck.collector.kernels import ptx
from envcheck.collector.soak import compare_ptx, product_ptx
from envcheck.collector.soak.product_ptx import SoakShape

GRID, BLOCK, ITERATIONS = 2, 32, 3
WORDS = GRID * BLOCK * ITERATIONS
SEED = 5
WANTED_AT, DIFFERENCE_AT = 4 * WORDS, 8 * WORDS
COMPARE = compare_ptx.text(GRID, BLOCK)

MODULES = [
    (mode, product)
    for mode in product_ptx.MODES
    for product in ptx.PRODUCTS[mode]
    if product.instructions[0].kind != "wmma"
]


class CountingMachine(WideMachine):
    """Knows an addition that tells what was there, too."""

    def step(self, operation: str, parts: list[str], guard: list[int] | None) -> None:
        if operation != "atom.global.add.u32":
            super().step(operation, parts, guard)
            return
        before = list(self.registers[parts[0]])
        for thread, address in enumerate(self.addresses(parts[1])):
            if guard is None or guard[thread]:
                was = int.from_bytes(self.at(address, 4), "little")
                before[thread] = was
                self.put(address, (was + self.registers[parts[2]][thread]).to_bytes(4, "little"))
        self.registers[parts[0]] = before


def compared(found: list[int], wanted: list[int]) -> tuple[int, ...]:
    memory = bytearray(8 * WORDS + 16)
    struct.pack_into(f"<{WORDS}I", memory, 0, *found)
    struct.pack_into(f"<{WORDS}I", memory, WANTED_AT, *wanted)
    places = {"found": 0, "wanted": WANTED_AT, "difference": DIFFERENCE_AT}
    parameters = {f"{name}_address": GLOBAL + at for name, at in places.items()}
    for block in range(GRID):
        given = {**parameters, "iteration_count": ITERATIONS}
        CountingMachine(COMPARE, compare_ptx.NAME, memory, given, block).run(None)
    return compare_ptx.DIFFERENCE.unpack_from(memory, DIFFERENCE_AT)


SAME = [7 * place + 1 for place in range(WORDS)]


@pytest.mark.parametrize("place", [0, BLOCK, WORDS - 1])
def test_one_bit_anywhere_is_counted_with_its_place_and_both_words(place: int) -> None:
    found = [value ^ (1 << 31 if at == place else 0) for at, value in enumerate(SAME)]
    assert compared(found, SAME) == (1, place, found[place], SAME[place])


def test_of_many_all_are_counted_and_one_of_them_is_told() -> None:
    places = {3, 3 + GRID * BLOCK, 40, WORDS - 2}  # two of them are one thread's
    found = [value ^ (1 if at in places else 0) for at, value in enumerate(SAME)]
    number, place, is_now, was = compared(found, SAME)
    assert number == 4 and place in places
    assert (is_now, was) == (found[place], SAME[place])
    assert compared([value ^ 1 for value in SAME], SAME)[0] == WORDS


class ProductMachine(WideMachine):
    """Knows changed signs."""

    def step(self, operation: str, parts: list[str], guard: list[int] | None) -> None:
        if operation == "neg.f32":
            self.registers[parts[0]] = [value ^ 1 << 31 for value in self.values(parts[1])]
        else:
            super().step(operation, parts, guard)


def multiplied(product: ptx.Product, iterations: int, block: int = 1) -> tuple[SoakShape, Any, int]:
    """A block's result as the PTX makes it, and the multiprocessor that it wrote down."""
    made = SoakShape(product.instructions[0])
    made.iterations = iterations
    operands = made.operands(SEED)
    size = 4 * made.block_words
    units_at = len(operands) + 2 * size
    memory = bytearray(units_at + 8)
    memory[: len(operands)] = operands
    parameters = {
        "operand_address": GLOBAL,
        "result_address": GLOBAL + len(operands),
        "unit_address": GLOBAL + units_at,
        "iteration_count": iterations,
    }
    text = product_ptx.text(product)
    machine = ProductMachine(text, product_ptx.NAME, memory, parameters, block)
    machine.run(product.instructions[0])
    start = len(operands) + block * size
    (unit,) = struct.unpack_from("<I", memory, units_at + 4 * block)
    return made, bytes(memory[start : start + size]), unit


def expected(shape: SoakShape, operands: bytes) -> bytes:
    """A block's result by exact arithmetic, by the fragments of mma."""
    made, instruction = shape._made, shape.instruction
    form = "f" if instruction.input_type == "fp32" else "e"
    values = [value for (value,) in struct.iter_unpack(f"<{form}", operands)]
    found: list[float] = []
    if form == "f":
        for first in range(0, len(values), made.words):
            left, right = values[first : first + made.left], values[first + made.left :]
            found += [a * b for a in left for b in right[: made.right]]
        return struct.pack(f"<{len(found)}f", *found)
    a_words, b_words = instruction.a_registers, instruction.b_registers
    for warp in range(shape.threads // 32):
        a, b = {}, {}
        for lane in range(32):
            mine = values[2 * made.words * (32 * warp + lane) :]
            for place in range(made.left * a_words):
                tile, register = divmod(place, a_words)
                row, k = lane // 4 + 8 * (register % 2), 2 * (lane % 4) + 8 * (register // 2)
                a[tile, row, k], a[tile, row, k + 1] = mine[2 * place : 2 * place + 2]
            for place in range(made.right * b_words):
                tile, register = divmod(place, b_words)
                k, at = 2 * (lane % 4) + 8 * register, 2 * (made.left * a_words + place)
                b[tile, lane // 4, k], b[tile, lane // 4, k + 1] = mine[at : at + 2]
        for lane, word in ((lane, word) for lane in range(32) for word in range(shape.words)):
            pair, register = divmod(word, 4)
            left, right = divmod(pair, made.right)
            row, column = lane // 4 + 8 * (register // 2), 2 * (lane % 4) + register % 2
            steps = range(instruction.shape[2])
            found.append(sum(a[left, row, k] * b[right, column, k] for k in steps))
    assert all(value == int(value) and abs(value) < 1 << 24 for value in found), "FP32 holds them"
    return struct.pack(f"<{len(found)}f", *found)


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize(("mode", "product"), MODULES, ids=lambda one: getattr(one, "target", one))
def test_a_blocks_result_is_what_exact_arithmetic_gives(
    mode: str, product: ptx.Product, iterations: int
) -> None:
    made, result, unit = multiplied(product, iterations)
    assert unit == 41
    assert result == expected(made, made.operands(SEED))
    assert len(set(struct.unpack(f"<{made.block_words}f", result))) >= 50


def words(shape: SoakShape, seed: int) -> list[int]:
    data = shape.operands(seed)
    form, size = ("I", 4) if shape.instruction.input_type == "fp32" else ("H", 2)
    return list(struct.unpack(f"<{len(data) // size}{form}", data))


@pytest.mark.parametrize(("mode", "product"), MODULES, ids=lambda one: getattr(one, "target", one))
def test_operands_have_every_bit_of_the_mantissa_and_are_others_for_another_seed(
    mode: str, product: ptx.Product
) -> None:
    made = SoakShape(product.instructions[0])
    mantissa = 23 if product.instructions[0].input_type == "fp32" else 10
    found = words(made, 0)
    for bit in range(mantissa):
        ones = sum(word >> bit & 1 for word in found)
        assert 0.4 < ones / len(found) < 0.6, bit
    assert found == words(made, 0)
    same = sum(one == other for one, other in zip(found, words(made, 1), strict=True))
    assert same < 0.05 * len(found)

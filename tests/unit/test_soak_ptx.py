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


def compared(found: list[int], wanted: list[int], text: str = COMPARE) -> tuple[int, ...]:
    memory = bytearray(8 * WORDS + 16)
    struct.pack_into(f"<{WORDS}I", memory, 0, *found)
    struct.pack_into(f"<{WORDS}I", memory, WANTED_AT, *wanted)
    places = {"found": 0, "wanted": WANTED_AT, "difference": DIFFERENCE_AT}
    parameters = {f"{name}_address": GLOBAL + at for name, at in places.items()}
    for block in range(GRID):
        given = {**parameters, "iteration_count": ITERATIONS}
        CountingMachine(text, compare_ptx.NAME, memory, given, block).run(None)
    return compare_ptx.DIFFERENCE.unpack_from(memory, DIFFERENCE_AT)


SAME = [7 * place + 1 for place in range(WORDS)]


def test_equal_results_differ_nowhere() -> None:
    assert compared(SAME, SAME) == (0, 0, 0, 0)


@pytest.mark.parametrize("place", [0, 1, BLOCK, GRID * BLOCK, WORDS - 1])
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


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("setp.eq.u32 %new, %one, 1", "setp.eq.u32 %new, %one, 2"),
        ("add.u32 %wrong, %wrong, %one", "add.u32 %wrong, %wrong, 0"),
        ("setp.eq.u32 %first, %before, 0", "setp.ne.u32 %first, %before, %before"),
        (f"add.u32 %index, %index, {GRID * BLOCK}", "add.u32 %index, %index, 1"),
    ],
)
def test_a_kernel_that_compares_otherwise_is_found_out(good: str, bad: str) -> None:
    """The tests above can fail."""
    text = COMPARE.replace(good, bad)
    place = WORDS - 1
    found = [value ^ (1 if at == place else 0) for at, value in enumerate(SAME)]
    assert text != COMPARE
    assert compared(found, SAME, text) != (1, place, found[place], SAME[place])


def multiplied(product: ptx.Product, iterations: int, block: int = 1) -> tuple[SoakShape, Any, int]:
    """A block's result as the PTX makes it, and the multiprocessor that it wrote down."""
    made = SoakShape(product.instructions[0])
    made.iterations = iterations
    operands = made.operands()
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
    machine = WideMachine(text, product_ptx.NAME, memory, parameters, block)
    machine.run(product.instructions[0])
    start = len(operands) + block * size
    (unit,) = struct.unpack_from("<I", memory, units_at + 4 * block)
    return made, bytes(memory[start : start + size]), unit


@pytest.mark.parametrize(("mode", "product"), MODULES, ids=lambda one: getattr(one, "target", one))
def test_a_blocks_result_is_what_integer_arithmetic_gives(mode: str, product: ptx.Product) -> None:
    made, result, unit = multiplied(product, 2)
    assert unit == 41
    assert result == made.expected(made.operands())
    assert len(set(struct.unpack(f"<{made.block_words}f", result))) >= 50


@pytest.mark.parametrize(("mode", "product"), MODULES, ids=lambda one: getattr(one, "target", one))
def test_no_sum_leaves_the_integers_that_fp32_holds(mode: str, product: ptx.Product) -> None:
    made = SoakShape(product.instructions[0])
    result = made.expected(made.operands())
    assert result is not None
    values = struct.unpack(f"<{made.block_words}f", result)
    assert max(map(abs, values)) < 1 << 24 and all(value == int(value) for value in values)
    k = product.instructions[0].shape[2]
    assert 8 * made.iterations * k * product_ptx._MOST**2 < 1 << 24


def test_one_register_that_holds_another_word_gives_another_result() -> None:
    """The arithmetic above can tell."""
    made = SoakShape(ptx.PRODUCTS["fp16"][0].instructions[0])
    operands = bytearray(made.operands())
    right = made.expected(bytes(operands))
    operands[0:2], operands[2:4] = operands[2:4], operands[0:2]
    assert made.expected(bytes(operands)) != right


def test_places_of_a_block_are_all_different() -> None:
    for _mode, product in MODULES:
        made = SoakShape(product.instructions[0])
        places = {made.place(index) for index in range(2 * made.block_words)}
        assert len(places) == 2 * made.block_words
        assert {block for block, _row, _column in places} == {0, 1}


def test_where_nobody_says_what_a_thread_holds_nothing_is_expected() -> None:
    wmma = ptx.PRODUCTS["fp16"][-1].instructions[0]
    made = SoakShape(wmma)
    assert made.expected(made.operands()) is None
    assert made.place(made.block_words + made.words + 3) == (1, 1, 3)

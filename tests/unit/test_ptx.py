"""The PTX of level 0: which kernel is for which chip, and which places each thread takes and gives."""

from __future__ import annotations

import random

import pytest
from ptx_simulator import GLOBAL, SHARED, WARP, Machine, codes, number

from envcheck.collector.kernels import MODES, ptx, ptx_rate, ptx_signature
from envcheck.collector.kernels.ptx import Instruction
from envcheck.collector.kernels.vectors import SIZES, pack

CHIPS = [(6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)]
PRODUCTS = {product: mode for mode in MODES for product in ptx.PRODUCTS[mode]}
INSTRUCTIONS = {one: product for product in PRODUCTS for one in product.instructions}
RATED = {product.instructions[0]: product for product in PRODUCTS}


def words(instruction: Instruction) -> str:
    return instruction.words


# -- bits


class Tiles:
    """Random A, B and C of two tiles in global memory, small integers that every type holds."""

    def __init__(self, instruction: Instruction, steps: int) -> None:
        chance = random.Random(3)
        (m, n, k), self.steps = instruction.shape, steps
        self.instruction, self.length = instruction, steps * k
        to_word = {value: word for word, value in codes(instruction.input_type).items()}
        self.a, self.b, self.c = (
            [
                [[chance.randint(-3, 3) for _ in range(across)] for _ in range(down)]
                for _tile in "01"
            ]
            for down, across in ((m, self.length), (n, self.length), (m, n))
        )
        kind, result = instruction.input_type, instruction.output_type
        result_word = {value: word for word, value in codes(result).items()}
        areas = [
            b"".join(pack(table[v], of) for tile in matrix for row in tile for v in row)
            for matrix, table, of in (
                (self.a, to_word, kind),
                (self.b, to_word, kind),
                (self.c, result_word, result),
            )
        ]
        areas.append(b"\xff" * len(areas[2]))
        starts = [sum(map(len, areas[:i])) for i in range(4)]
        names = [name for _type, name in ptx_signature.PARAMETERS]
        self.parameters = dict(zip(names, [GLOBAL + at for at in starts] + [steps], strict=True))
        self.memory = bytearray(b"".join(areas))
        self.result_at = starts[3]

    def run(self, text: str) -> list[list[int]]:
        """What the kernel makes of the second tile; it must leave the first alone."""
        kernel = ptx_signature.name(self.instruction)
        machine = Machine(text, kernel, self.memory, self.parameters, block=1)
        machine.run(self.instruction)
        m, n, _k = self.instruction.shape
        size = SIZES[self.instruction.output_type]
        result = self.memory[self.result_at :]
        first, second = result[: m * n * size], result[m * n * size :]
        assert set(first) == {0xFF}, "it wrote into another tile"
        found = [
            number(int.from_bytes(second[at : at + size], "little"), self.instruction.output_type)
            for at in range(0, len(second), size)
        ]
        return [found[row * n : (row + 1) * n] for row in range(m)]

    def expected(self) -> list[list[int]]:
        a, b, c = self.a[1], self.b[1], self.c[1]
        return [
            [was + sum(x * y for x, y in zip(row, column, strict=True))
             for was, column in zip(before, b, strict=True)]
            for row, before in zip(a, c, strict=True)
        ]  # fmt: skip


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=words)
def test_a_signature_kernel_makes_c_plus_a_times_b(instruction: Instruction) -> None:
    tiles = Tiles(instruction, 3 if instruction.shape[2] == 1 else 2)
    assert tiles.run(ptx_signature.kernel(instruction)) == tiles.expected()


# A change of the text, and the instruction in whose kernel it must show.
WRONG = {
    "the other half of A": ("[%a_at+16]", "[%a_at+8]", "m16n8k32.row.col.s32"),
    "A's rows exchanged": ("%a1, [%a_below+0]", "%a1, [%a_at+0]", "m16n8k16.row.col.f32.bf16"),
    "B of the wrong column": ("%group, %bytes;", "%member, %bytes;", "m8n8k16"),
    "C's lower rows": ("[%d_at+256], %c2", "[%d_at+128], %c2", "m16n8k8.row.col.f32.tf32"),
    "D's columns": ("[%d_at+4]", "[%d_at+0]", "m16n8k8.row.col.f32.f16"),
    "a step too short": ("%b_at, %b_at, 32", "%b_at, %b_at, 16", "m16n8k16.row.col.f16.f16.f16.f16"),
    "core matrices too near": ("%offset, 128, %shared", "%offset, 64, %shared", "wgmma"),
    "another descriptor": (str(8 << 16 | 8 << 32), str(4 << 16 | 4 << 32), "wgmma"),
    "a warp's rows": ("%row, %row, 4", "%row, %row, 3", "wgmma"),
    "A and B exchanged": ("load.a.sync.row", "load.a.sync.col", "16k16.f32.f32"),
    "rows of another length": ("%offset, %bytes, 1", "%offset, %bytes, 2", "16k16.f16.f16"),
    "another thread's column": ("%thread, 7", "%thread, 3", "fma.rn.f32"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_place_shows(name: str) -> None:
    right, wrong, which = WRONG[name]
    instruction = next(one for one in INSTRUCTIONS if which in one.words)
    text = ptx_signature.kernel(instruction)
    assert right in text
    tiles = Tiles(instruction, 3 if instruction.shape[2] == 1 else 2)
    try:
        found = tiles.run(text.replace(right, wrong))
    except (AssertionError, KeyError, ValueError):
        return
    assert found != tiles.expected()


# -- rate


@pytest.mark.parametrize("instruction", RATED, ids=words)
def test_a_rate_kernel_counts_and_writes_what_it_says(instruction: Instruction) -> None:
    made = ptx_rate.shape(instruction)
    warps = made.threads // WARP
    operands = random.Random(5).getrandbits(8 * ptx_rate.operand_bytes(made))
    data = operands.to_bytes(ptx_rate.operand_bytes(made), "little")
    results, blocks = ptx_rate.RESULT.size * warps, 3
    parameters = {
        "operand_address": GLOBAL,
        "result_address": GLOBAL + len(data),
        "remains_address": GLOBAL + len(data) + blocks * results,
        "iteration_count": 2,
    }
    memory = bytearray(data + bytes(blocks * (results + made.threads * ptx_rate.REMAINS)))
    machine = Machine(ptx_rate.kernel(instruction), ptx_rate.NAME, memory, parameters, block=1)
    machine.count_only = True
    machine.run(made.instruction)
    m, n, k = made.instruction.shape
    of_warp = machine.done * m * n * k * WARP // made.instruction.threads
    assert machine.done == 2 * made.repeats and of_warp == 2 * made.fma
    rows = list(ptx_rate.RESULT.iter_unpack(memory[len(data) :][: blocks * results]))
    assert rows[:warps] == rows[2 * warps :] == [(0, 0, 0)] * warps  # of the other blocks
    assert rows[warps : 2 * warps] == [(1100 + warp, 1200 + warp, 41) for warp in range(warps)]
    if machine.descriptors:
        in_shared_memory(machine, data)


def in_shared_memory(machine: Machine, data: bytes) -> None:
    """Every core matrix that a descriptor leads to is there, and each warpgroup has its own A."""
    assert bytes(machine.shared[SHARED : SHARED + len(data)]) == data
    reached: list[set[int]] = []
    for pair in dict.fromkeys(machine.descriptors):
        for descriptor, rows in zip(pair, (64, 256), strict=True):
            start, leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
            places = (
                start + row // 8 * stride + row % 8 * 16 + half * leading + byte
                for row in range(rows)
                for half in range(2)
                for byte in (0, 15)
            )
            reached.append(set(places))
    a, b, other, same = reached
    assert b == same and not a & other and not (a | other) & b
    assert a | b | other <= machine.written
    assert [len(places) for places in (a, b, other)] == [256, 1024, 256]


# -- which is for which chip


@pytest.mark.parametrize("capability", CHIPS)
def test_every_mode_has_kernels_or_a_reason(capability: tuple[int, int]) -> None:
    first = {"fp32": (0, 0), "fp16": (7, 0), "int8": (7, 5), "tf32": (8, 0), "bf16": (8, 0)}
    for mode in MODES:
        found = ptx.products(mode, capability)
        has = capability in ((8, 9), (9, 0)) or capability[0] == 12
        assert bool(found) == (has if mode == "fp8" else capability >= first[mode])
        if not found:
            result = ptx.why_none(mode, capability)
            assert f"{capability[0]}.{capability[1]}" in result
            needs = "tcgen05" if capability >= (9, 0) else "8.9 is the first"
            assert (
                "has no Tensor Cores" if capability < (7, 0) else needs
            ) in result or mode != "fp8"

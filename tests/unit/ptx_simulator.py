"""Runs a kernel's PTX for all threads of a block, as far as addresses, loads, stores and loops go.

What an instruction for matrices makes of its registers is computed in integers, by the fragment layouts
of the PTX ISA, written down here a second time: a kernel that loads or stores one element in another
place gives another matrix.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from envcheck.collector.kernels.vectors import SIZES, encode

GLOBAL = 0x7F00_0000_0000  # above 2^32: an address that was cut off is not found
SHARED = 1024
WARP = 32
_PART = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")

Layout = Callable[
    [int, int, int], tuple[int, int]
]  # element, groupID, threadID_in_group -> (row, column)

# (m, k, bytes an element): where element i of A is, and element i of B (as row of k, column)
FRAGMENTS: dict[tuple[int, int, int], tuple[Layout, Layout]] = {
    (16, 16, 2): (
        lambda i, g, t: (g + 8 * (i // 2 % 2), 2 * t + i % 2 + 8 * (i >= 4)),
        lambda i, g, t: (2 * t + i % 2 + 8 * (i >= 2), g),
    ),
    (16, 8, 2): (lambda i, g, t: (g + 8 * (i >= 2), 2 * t + i % 2), lambda i, g, t: (2 * t + i, g)),
    (16, 8, 4): (
        lambda i, g, t: (g + 8 * (i % 2), t + 4 * (i >= 2)),
        lambda i, g, t: (t + 4 * i, g),
    ),
    (16, 32, 1): (
        lambda i, g, t: (g + 8 * (i // 4 % 2), 4 * t + i % 4 + 16 * (i >= 8)),
        lambda i, g, t: (4 * t + i % 4 + 16 * (i >= 4), g),
    ),
    (8, 16, 1): (lambda i, g, t: (g, 4 * t + i), lambda i, g, t: (4 * t + i, g)),
}


def result_place(i: int, g: int, t: int) -> tuple[int, int]:
    """Row and column of element i of C and D, of every shape used here."""
    return g + 8 * (i >= 2), 2 * t + i % 2


@cache
def codes(element_type: str) -> dict[int, int]:
    """The integers behind a type's words: small ones, of fp16 those with all bits of a mantissa, too."""
    most = 2047 if element_type == "fp16" else 8
    return {encode(value, element_type): value for value in range(-most, most + 1)}


class Machine:
    """One block. ``memory`` is global memory, from GLOBAL on; ``done`` counts instructions a warp."""

    def __init__(
        self, ptx: str, kernel: str, memory: bytearray, parameters: dict[str, int], block: int = 0
    ) -> None:
        text = ptx[ptx.index(f".entry {kernel}(") :]
        self.threads = int(re.findall(r"\.maxntid (\d+)", text)[0])
        body = text[text.index("{\n") + 2 : text.index("\n}")]
        self.lines = [line.strip().rstrip(";") for line in body.splitlines()]
        self.memory, self.parameters, self.block = memory, parameters, block
        self.shared = bytearray(64 << 10)
        self.written: set[int] = set()  # offsets of shared memory
        self.registers: dict[str, list[int]] = {}
        self.fragments: dict[str, list[list[int]]] = {}  # of wmma, by operand
        self.descriptors: list[tuple[int, int]] = []
        self.clock = 1000
        self.done = 0
        self.count_only = False

    def run(self, instruction: Any) -> None:
        self.instruction = instruction
        labels = {line[:-1]: at for at, line in enumerate(self.lines) if line.endswith(":")}
        at = 0
        while True:
            line = self.lines[at]
            at += 1
            if line == "ret":
                return
            if line.startswith(".") or line.endswith(":"):
                continue
            guard = None
            if line.startswith("@"):
                name, line = line.split(None, 1)
                guard = self.registers[name[1:]]
            operation, _, rest = line.partition(" ")
            if operation == "bra":
                assert guard is not None and len(set(guard)) == 1, "threads part"
                at = labels[rest] if guard[0] else at
            else:
                self.step(operation, _PART.findall(rest), guard)

    # -- operands

    def values(self, operand: str) -> list[int]:
        every = range(self.threads)
        special = {
            "%tid.x": list(every),
            "%ctaid.x": [self.block] * self.threads,
            "%smid": [40 + self.block] * self.threads,
            "b_matrices": [SHARED] * self.threads,
            "matrices": [SHARED] * self.threads,
        }
        if operand == "%clock64":
            self.clock += 100
            return [self.clock + thread // WARP for thread in every]
        if operand in special:
            return special[operand]
        if operand.startswith("%"):
            return self.registers[operand]
        return [int(operand, 16) if operand.startswith("0f") else int(operand)] * self.threads

    def addresses(self, operand: str) -> list[int]:
        name, _, offset = operand.strip("[]").partition("+")
        return [value + int(offset or 0) for value in self.values(name)]

    def names(self, operand: str) -> list[str]:
        return [name.strip() for name in operand.strip("{}").split(",")]

    # -- instructions

    def step(self, operation: str, parts: list[str], guard: list[int] | None) -> None:
        kind = operation.split(".")[0]
        wide = "64" in operation or ".wide" in operation
        mask = (1 << 64) - 1 if wide else (1 << 32) - 1
        if operation.startswith("ld.param"):
            self.registers[parts[0]] = [self.parameters[parts[1].strip("[]")]] * self.threads
        elif kind == "ld":
            assert operation.startswith("ld.global")
            self.registers[parts[0]] = [
                struct.unpack_from("<I", self.memory, self.inside(address))[0]
                for address in self.addresses(parts[1])
            ]
        elif kind == "st":
            self.store(operation, parts, guard)
        elif kind in ("mov", "cvta", "cvt"):
            self.registers[parts[0]] = [value & mask for value in self.values(parts[1])]
        elif kind in ("bar", "fence"):
            return
        elif kind in ("mma", "wgmma", "wmma") or operation == "fma.rn.f32":
            self.matrix(operation, parts)
        else:
            inputs = [self.values(part) for part in parts[1:]]
            self.registers[parts[0]] = [
                int(ARITHMETIC[operation](*row)) & mask for row in zip(*inputs, strict=True)
            ]

    def inside(self, address: int) -> int:
        assert GLOBAL <= address <= GLOBAL + len(self.memory) - 4 and address % 4 == 0, hex(address)
        return address - GLOBAL

    def store(self, operation: str, parts: list[str], guard: list[int] | None) -> None:
        form = "<Q" if operation.endswith("u64") else "<I"
        for thread, (address, value) in enumerate(
            zip(self.addresses(parts[0]), self.values(parts[1]), strict=True)
        ):
            if guard is not None and not guard[thread]:
                continue
            if operation.startswith("st.shared"):
                struct.pack_into(form, self.shared, address, value)
                self.written.update(range(address, address + 4))
            else:
                struct.pack_into(form, self.memory, self.inside(address), value)

    def matrix(self, operation: str, parts: list[str]) -> None:
        if operation == self.instruction.words:
            self.done += 1
            if self.count_only and operation.startswith("wgmma"):
                pairs = zip(self.values(parts[1]), self.values(parts[2]), strict=True)
                self.descriptors += list(pairs)[:: 4 * WARP]
        if self.count_only or (operation.startswith("wgmma.") and "mma_async" not in operation):
            return
        if operation == "fma.rn.f32":
            rows = zip(*(self.values(part) for part in parts[1:]), strict=True)
            self.registers[parts[0]] = [fma(*row) for row in rows]
        elif operation.startswith(("wmma.load", "wmma.store")):
            self.whole(operation, parts)
        elif operation.startswith("wmma"):
            a, b, c = (self.fragments[part] for part in parts[1:])
            self.fragments[parts[0]] = product(a, b, c)
        else:
            for first in range(0, self.threads, self.instruction.threads):
                self.fragment(parts, first)

    def fragment(self, parts: list[str], first: int) -> None:
        """mma and wgmma: gather by the layouts, multiply, scatter."""
        one = self.instruction
        m, n, k = one.shape
        left, right = FRAGMENTS[min(m, 16), k, SIZES[one.input_type]]
        lanes = range(first, first + one.threads)
        small = codes(one.input_type).__getitem__
        a = self.gather(parts[1], lanes, one.input_type, left, small, (m, k))
        if parts[2].startswith("{"):
            b = self.gather(parts[2], lanes, one.input_type, right, small, (k, n))
        else:
            b = self.core_matrices(self.values(parts[2])[first], k, n)
        old = parts[3] if one.kind == "mma" else parts[0]
        kind = one.output_type
        c = self.gather(old, lanes, kind, result_place, lambda word: number(word, kind), (m, n))
        self.scatter(parts[0], lanes, product(a, b, c))

    def elements(self, operand: str, lane: int, element_type: str) -> list[int]:
        words = [self.registers[name][lane] for name in self.names(operand)]
        size = SIZES[element_type]
        data = struct.pack(f"<{len(words)}I", *words)
        return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]

    def gather(
        self,
        operand: str,
        lanes: range,
        element_type: str,
        layout: Layout,
        decode: Callable[[int], int],
        shape: tuple[int, int],
    ) -> list[list[int]]:
        made: list[list[Any]] = [[None] * shape[1] for _ in range(shape[0])]
        for lane in lanes:
            warp, group, member = lane // WARP % 4, lane % WARP // 4, lane % 4
            for i, word in enumerate(self.elements(operand, lane, element_type)):
                row, column = layout(i, group, member)
                row += 16 * warp if shape[0] == 64 else 0
                assert made[row][column] is None
                made[row][column] = decode(word)
        assert not any(value is None for row in made for value in row), "a place is in no register"
        return made

    def scatter(self, operand: str, lanes: range, matrix: list[list[int]]) -> None:
        kind = self.instruction.output_type
        size = SIZES[kind]
        names = self.names(operand)
        for lane in lanes:
            warp, group, member = lane // WARP % 4, lane % WARP // 4, lane % 4
            data = b""
            for i in range(len(names) * 4 // size):
                row, column = result_place(i, group, member)
                row += 16 * warp if len(matrix) == 64 else 0
                data += encode(matrix[row][column], kind).to_bytes(size, "little")
            for at, name in enumerate(names):
                values = list(self.registers[name])
                values[lane] = struct.unpack_from("<I", data, 4 * at)[0]
                self.registers[name] = values

    def core_matrices(self, descriptor: int, k: int, n: int) -> list[list[int]]:
        """B from shared memory: k-major, not swizzled, core matrices of 8 columns x 16 bytes."""
        start, leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
        assert descriptor >> 46 == 0, "swizzled, or with a base offset"
        size = SIZES[self.instruction.input_type]
        known = codes(self.instruction.input_type)
        made = []
        for row in range(k):
            across, inner = divmod(row * size, 16)
            places = [
                start + across * leading + column // 8 * stride + column % 8 * 16 + inner
                for column in range(n)
            ]
            made.append([known[self.shared[place]] for place in places])
        return made

    def whole(self, operation: str, parts: list[str]) -> None:
        """wmma's own loads and stores of 16 x 16 matrices, row- or column-major."""
        storing = operation.startswith("wmma.store")
        kind = {"f16": "fp16", "f32": "fp32"}[operation.rsplit(".", 1)[1]]
        address = self.addresses(parts[0] if storing else parts[1])[0]
        stride = self.values(parts[2])[0]
        size = SIZES[kind]
        matrix = self.fragments[parts[1]] if storing else [[0] * 16 for _ in range(16)]
        for row in range(16):
            for column in range(16):
                outer, inner = (column, row) if ".col." in operation else (row, column)
                at = address + (outer * stride + inner) * size - GLOBAL
                assert 0 <= at <= len(self.memory) - size
                if storing:
                    word = encode(matrix[row][column], kind)
                    self.memory[at : at + size] = word.to_bytes(size, "little")
                else:
                    word = int.from_bytes(self.memory[at : at + size], "little")
                    matrix[row][column] = number(word, kind)
        if not storing:
            self.fragments = {**self.fragments, parts[0]: matrix}


ARITHMETIC: dict[str, Callable[..., int]] = {
    "add.u32": lambda a, b: a + b,
    "add.u64": lambda a, b: a + b,
    "sub.u32": lambda a, b: a - b,
    "mul.lo.u32": lambda a, b: a * b,
    "mul.wide.u32": lambda a, b: a * b,
    "mad.lo.u32": lambda a, b, c: a * b + c,
    "shl.b32": lambda a, b: a << b,
    "shr.u32": lambda a, b: a >> b,
    "and.b32": lambda a, b: a & b,
    "or.b64": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "setp.eq.u32": lambda a, b: a == b,
    "setp.ne.u32": lambda a, b: a != b,
}


def number(word: int, kind: str) -> int:
    """The integer behind a word of a result."""
    if kind == "int32":
        return word - (word >> 31 << 32)
    form = {"fp32": ("<I", "<f"), "fp16": ("<H", "<e")}[kind]
    return int(struct.unpack(form[1], struct.pack(form[0], word))[0])


def fma(*words: int) -> int:
    a, b, c = struct.unpack("<3f", struct.pack("<3I", *words))
    return int(struct.unpack("<I", struct.pack("<f", a * b + c))[0])


def product(a: list[list[int]], b: list[list[int]], c: list[list[int]]) -> list[list[int]]:
    columns = list(zip(*b, strict=True))
    return [
        [
            was + sum(map(int.__mul__, row, column))
            for was, column in zip(before, columns, strict=True)
        ]
        for row, before in zip(a, c, strict=True)
    ]

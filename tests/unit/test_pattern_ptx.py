"""The memory kernels' PTX, run for all threads of a few small blocks."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from ptx_simulator import GLOBAL, Machine

from envcheck.collector.systems.shared.transfers import pattern_ptx
from envcheck.collector.systems.shared.transfers.pattern_ptx import (
    MASK,
    NOTHING_WRONG,
    RESULT,
)

GRID, BLOCK, ITERATIONS = 3, 32, 2
WORDS = GRID * BLOCK * ITERATIONS
SEED = 987654321987654321
RESULT_AT = 8 * WORDS
TEXT = pattern_ptx.text(GRID, BLOCK)


class WideMachine(Machine):
    """Knows what these kernels need beside the arithmetic of ``Machine``: 64 bits, vectors, atomics."""

    def step(self, operation: str, parts: list[str], guard: list[int] | None) -> None:
        every = range(self.threads)
        if operation.startswith("ld.global"):
            names = self.names(parts[0])
            size = 8 if "64" in operation else 4
            for place, name in enumerate(names):
                self.registers[name] = [
                    int.from_bytes(self.at(address + place * size, size), "little")
                    for address in self.addresses(parts[1])
                ]
        elif operation.startswith("st.global"):
            size = 8 if "64" in operation else 4
            for place, name in enumerate(self.names(parts[1])):
                for thread, address in enumerate(self.addresses(parts[0])):
                    if guard is None or guard[thread]:
                        data = self.registers[name][thread].to_bytes(size, "little")
                        self.put(address + place * size, data)
        elif operation.startswith("red.global"):
            self.reduce(operation.split(".")[2], parts, guard)
        elif operation.startswith("selp"):
            yes, no, chosen = (self.values(part) for part in parts[1:])
            self.registers[parts[0]] = [(yes if chosen[t] else no)[t] for t in every]
        elif operation.startswith("mov.f32"):
            value = struct.unpack(">f", bytes.fromhex(parts[1][2:]))[0]
            self.registers[parts[0]] = [struct.unpack("<I", struct.pack("<f", value))[0]] * len(
                every
            )
        elif operation == "fma.rn.f32":
            rows = zip(*[map(_float, self.values(part)) for part in parts[1:]], strict=True)
            self.registers[parts[0]] = [_bits(a * b + c) for a, b, c in rows]
        elif operation in _MORE:
            mask = (1 << 64) - 1 if "64" in operation else (1 << 32) - 1
            inputs = [self.values(part) for part in parts[1:]]
            rows = zip(*inputs, strict=True)
            self.registers[parts[0]] = [int(_MORE[operation](*row)) & mask for row in rows]
        elif operation == "cvt.u32.u64":
            self.registers[parts[0]] = [v & 0xFFFFFFFF for v in self.values(parts[1])]
        else:
            super().step(operation, parts, guard)

    def at(self, address: int, size: int) -> bytes:
        assert address % size == 0 and GLOBAL <= address <= GLOBAL + len(self.memory) - size
        return bytes(self.memory[address - GLOBAL : address - GLOBAL + size])

    def put(self, address: int, data: bytes) -> None:
        self.at(address, len(data))
        self.memory[address - GLOBAL : address - GLOBAL + len(data)] = data

    def reduce(self, how: str, parts: list[str], guard: list[int] | None) -> None:
        work: Any = {"add": lambda a, b: a + b, "min": min, "max": max, "or": lambda a, b: a | b}[
            how
        ]
        for thread, address in enumerate(self.addresses(parts[0])):
            if guard is None or guard[thread]:
                before = int.from_bytes(self.at(address, 4), "little")
                after = work(before, self.registers[parts[1]][thread])
                self.put(address, after.to_bytes(4, "little"))


def _float(bits: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return value


def _bits(value: float) -> int:
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits


_MORE: dict[str, Any] = {
    "mad.lo.u64": lambda a, b, c: a * b + c,
    "xor.b64": lambda a, b: a ^ b,
    "shr.u64": lambda a, b: a >> b,
    "setp.ne.u64": lambda a, b: a != b,
    "setp.eq.u64": lambda a, b: a == b,
    "min.u32": min,
    "max.u32": max,
}


def launch(kernel: str, memory: bytearray, text: str = TEXT, **parameters: int) -> None:
    """Every block in turn, on its parameters."""
    for block in range(GRID):
        WideMachine(text, kernel, memory, {"iteration_count": ITERATIONS, **parameters}, block).run(
            None
        )


def word(index: int, seed: int, mask: int) -> int:
    return int((index * pattern_ptx.FACTOR + seed) & MASK ^ mask)


def words(memory: bytearray, count: int = WORDS) -> list[int]:
    return list(struct.unpack_from(f"<{count}Q", memory))


@pytest.fixture
def memory() -> bytearray:
    return bytearray(8 * WORDS + 64)


def pattern(mask: int) -> dict[str, int]:
    return {"place_address": GLOBAL, "seed": SEED, "mask": mask}


def checked(memory: bytearray, mask: int) -> tuple[int, ...]:
    RESULT.pack_into(memory, RESULT_AT, *NOTHING_WRONG)
    launch("check", memory, TEXT, result_address=GLOBAL + RESULT_AT, **pattern(mask))
    return RESULT.unpack_from(memory, RESULT_AT)


@pytest.mark.parametrize("mask", [0, MASK])
def test_what_is_written_is_the_pattern_and_is_found_whole(memory: bytearray, mask: int) -> None:
    launch("write", memory, **pattern(mask))
    assert words(memory) == [word(index, SEED, mask) for index in range(WORDS)]
    assert len(set(words(memory))) == WORDS
    assert not any(memory[RESULT_AT:]), "it wrote beyond the area"
    assert checked(memory, mask) == NOTHING_WRONG


def test_what_differs_is_counted_and_placed(memory: bytearray) -> None:
    launch("write", memory, **pattern(0))
    for place, bit in ((7, 3), (100, 40), (WORDS - 1, 3)):
        memory[8 * place + bit // 8] ^= 1 << bit % 8
    assert checked(memory, 0) == (3, 7, WORDS - 1, 1 << 3, 1 << 8)
    assert checked(memory, MASK)[:3] == (WORDS, 0, WORDS - 1)


def test_a_word_at_another_address_is_found(memory: bytearray) -> None:
    launch("write", memory, **pattern(0))
    memory[0:8], memory[80:88] = memory[80:88], memory[0:8]
    assert checked(memory, 0)[:3] == (2, 0, 10)


def test_the_read_kernel_reads_every_word() -> None:
    """Its sum comes to the one value that it writes down only where every word is in it."""
    size = 16 * GRID * BLOCK * ITERATIONS
    memory = bytearray(size + 8)
    # One thread's words come to the value, and the others' do not.
    struct.pack_into("<Q", memory, size - 8, pattern_ptx.FACTOR)
    launch("read", memory, place_address=GLOBAL, result_address=GLOBAL + size)
    assert struct.unpack_from("<Q", memory, size)[0] == pattern_ptx.FACTOR
    struct.pack_into("<Q", memory, size, 0)
    struct.pack_into("<Q", memory, size - 16, 1)
    launch("read", memory, place_address=GLOBAL, result_address=GLOBAL + size)
    assert struct.unpack_from("<Q", memory, size)[0] == 0

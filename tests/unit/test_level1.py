"""Level 1's tables, and its matrices, made in a memory that is a dictionary of bytes."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.collector.kernels import cublas, cublas_library, matrices
from envcheck.collector.kernels import operands as made
from envcheck.collector.kernels.driver import CudaError
from envcheck.collector.kernels.failures import NotSupported
from envcheck.collector.kernels.products import Products
from envcheck.collector.kernels.vectors import SETS, SIZES, VECTORS


class Memory:
    """The part of a driver that Operands uses; ``room``: bytes that can be allocated."""

    def __init__(self, room: int = 1 << 40) -> None:
        self.blocks: dict[int, bytearray] = {}
        self.room = room
        self.cuda = self

    def allocate(self, size: int) -> int:
        if size > self.room:
            raise CudaError("cuMemAlloc_v2", 2, "CUDA_ERROR_OUT_OF_MEMORY")
        self.room -= size
        pointer = (len(self.blocks) + 1) << 32
        self.blocks[pointer] = bytearray(min(size, 1 << 20))  # the workspace is not looked at
        return pointer

    def free(self, pointer: int) -> None:
        del self.blocks[pointer]

    def at(self, pointer: int, size: int) -> tuple[bytearray, slice]:
        start = pointer & 0xFFFFFFFF
        block = self.blocks[pointer - start]
        assert start + size <= len(block), "past its end"
        return block, slice(start, start + size)

    def upload(self, pointer: int, data: bytes, offset: int = 0) -> None:
        block, place = self.at(pointer + offset, len(data))
        block[place] = data

    def download(self, pointer: int, size: int, offset: int = 0) -> bytes:
        block, place = self.at(pointer + offset, size)
        return bytes(block[place])

    def fill(self, pointer: int, byte: int, size: int) -> None:
        block, place = self.at(pointer, size)
        block[place] = bytes([byte]) * size

    def call(self, name: str, to: Any, source: Any, size: Any) -> None:
        assert name == "cuMemcpyDtoD_v2"
        assert not 0 <= source.value - to.value < size.value
        assert not 0 <= to.value - source.value < size.value, "overlapping copies"
        self.upload(to.value, self.download(source.value, size.value))


@pytest.mark.parametrize("types", SETS, ids="-".join)
def test_patterns_are_those_of_matrices(types: tuple[str, str]) -> None:
    n = 176  # bands of unequal size, and more rows than places for a vector
    vectors = [VECTORS[name] for name in SETS[types]]
    memory = Memory()
    operands = made.Operands(memory, n)
    operands.fill_pattern(vectors, types[0])
    size = n * n * SIZES[types[0]]
    a, b = (memory.download(pointer, size) for pointer in operands.of(types[0]))
    assert a == matrices.left(vectors, types[0], n, n)
    assert b == matrices.right(vectors, types[0], n, n)
    assert memory.download(operands.c, 4 * n * n) == b"\xff" * (4 * n * n)


def test_a_library_newer_than_the_driver_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def none(path: str) -> None:
        asked.append(path)
        raise cublas_library.NoLibrary(f"no {path}")

    monkeypatch.setattr(cublas_library, "_open", none)
    with pytest.raises(cublas_library.NoLibrary, match=r"libcublas\.so\.12"):
        cublas_library.load(None, None, 12)
    assert asked == ["libcublas.so.12", "libcublas.so.11", "libcublas.so.10"]
    with pytest.raises(cublas_library.NoLibrary, match="CUDA 9"):
        cublas_library.load(None, None, 9)


class Unloaded:
    """A Library as far as ``require`` looks."""

    lt = path = None

    def __init__(self, *version: int) -> None:
        self.version = version
        self.major = version[0]


def products(capability: tuple[int, int], *version: int) -> Products:
    found = Products.__new__(Products)
    found._capability = capability
    found._library = Unloaded(*version)
    found._cublas = cublas.Cublas.__new__(cublas.Cublas)
    found._cublas._ways = cublas.WAYS if version[0] >= 11 else cublas.WAYS_10
    return found


@pytest.mark.parametrize(
    ("capability", "version", "mode", "words"),
    [
        ((7, 5), (12, 4, 5), "tf32", "compute capability 7.5 has no Tensor Cores for TF32"),
        ((7, 0), (12, 4, 5), "int8", "compute capability 7.0 has no Tensor Cores for INT8"),
        ((8, 6), (12, 4, 5), "fp8", "compute capability 8.6 has no Tensor Cores for FP8"),
        ((9, 0), (11, 10, 3), "fp8", "cuBLAS 11.10.3 has no FP8, which came with 11.11"),
        ((9, 0), (12, 4, 5), "fp8", "there is no libcublasLt"),
        ((8, 0), (10, 2, 2), "bf16", "cuBLAS 10.2.2 has no BF16"),
    ],
)
def test_what_is_not_there(
    capability: tuple[int, int], version: tuple[int, ...], mode: str, words: str
) -> None:
    with pytest.raises(NotSupported, match=words):
        products(capability, *version).require(mode)

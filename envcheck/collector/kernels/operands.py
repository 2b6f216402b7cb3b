"""The matrices of a product in device memory: signature patterns and random data, made there by copying.

A pattern repeats itself, so one row of it is uploaded and doubled on the device until the matrix is full:
building an 8192 x 8192 matrix in Python and uploading it would take most of a second, each time.
"""

import ctypes

from . import matrices
from .random_words import random_words
from .vectors import SIZES

SMALLEST = 512  # rows: below, cuBLAS has other kernels for CUDA cores even on the largest chips
WORKSPACE = 32 << 20  # bytes, for cuBLASLt
_OWN_WORKSPACE = 32 << 20  # bytes that cuBLAS takes itself on Hopper and later
_SHARE = 4  # the products take at most this part of the free memory
_BYTES = 16  # an element: FP32 A, B and C, and 2 bytes each for A and B of another type

# (multiprocessors, rows): at this size a chip with as many runs a product at its full rate.
_SIZES = ((100, 8192), (20, 4096), (0, 2048))

# Not a multiple of any row's length: rows that are near each other then differ.
_RANDOM_BYTES = (4 << 20) + 1040
_STEP = 65_540  # bytes, by which random numbers move from one number of them to the next

_SLICE = 16  # neighbouring columns of the result that are read together
_SLICES = 4  # of each vector's


class TooSmall(Exception):
    """The memory that may be used holds no product of the smallest size."""

    out_of_memory = True


def first_size(multiprocessors, free):
    """Rows of the largest product to begin with, of ``free`` bytes of memory. Raises TooSmall."""
    n = next(rows for most, rows in _SIZES if multiprocessors >= most)
    while n >= SMALLEST:
        if _SHARE * (n * n * _BYTES + WORKSPACE + _OWN_WORKSPACE) <= free:
            return n
        n //= 2
    raise TooSmall(
        "a quarter of the %d MiB that are free holds no product of %d rows" % (free >> 20, SMALLEST)
    )


class Operands(object):
    """Device memory for products of n x n matrices: A and B of any type, FP32 ones beside them, and C."""

    def __init__(self, driver, n):
        """Raises CudaError where the memory is not there; nothing stays allocated then."""
        self.n = n
        self._driver = driver
        self._pointers = []
        self._random = {}
        try:
            self.reference_a, self.reference_b, self.c = (self._new(4 * n * n) for _ in range(3))
            self._a, self._b = (self._new(2 * n * n) for _ in range(2))
            self.workspace = self._new(WORKSPACE)
        except Exception:
            self.free()
            raise

    def _new(self, size):
        pointer = self._driver.allocate(size)
        self._pointers.append(pointer)
        return pointer

    def free(self):
        while self._pointers:
            self._driver.free(self._pointers.pop())

    def of(self, element_type):
        """Pointers to A and B of a type; those of FP32 are the reference's."""
        if element_type == "fp32":
            return self.reference_a, self.reference_b
        return self._a, self._b

    def fill_random(self, element_type, number=0):
        """Random numbers into A and B of a type. number: others of them, each at another place."""
        if element_type not in self._random:
            self._random[element_type] = random_words(element_type, _RANDOM_BYTES)
        block = self._random[element_type]
        total = self.n * self.n * SIZES[element_type]
        step = number * _STEP
        for pointer, at in zip(self.of(element_type), (step, len(block) // 2 - step)):
            at %= len(block)
            self._repeat(pointer, (block[at:] + block[:at])[:total], total)

    def fill_pattern(self, vectors, element_type):
        """matrices.left into A, matrices.right into B, and no number into C."""
        a, b = self.of(element_type)
        row = self.n * SIZES[element_type]
        lefts = matrices.left(vectors, element_type, len(vectors), self.n)
        rights = matrices.right(vectors, element_type, len(vectors), self.n)
        for i, (vector, band) in enumerate(zip(vectors, matrices.bands(self.n, len(vectors)))):
            place = slice(i * row, (i + 1) * row)
            start, total = band[0] * row, len(band) * row
            self._staircase(a + start, lefts[place], vector, element_type, total)
            self._repeat(b + start, rights[place], total)
        self._driver.fill(self.c, 0xFF, 4 * self.n * self.n)

    def _staircase(self, pointer, row, vector, element_type, total):
        """Rows whose vector moves on by one period a row: in memory, one row and a period, repeated."""
        places = (self.n - max(vector.slots) - 1) // vector.period + 1
        steps = min(places * len(row), total)
        self._repeat(pointer, row + bytes(vector.period * SIZES[element_type]), steps)
        self._double(pointer, steps, total)

    def _repeat(self, pointer, data, total):
        data = data[:total]
        self._driver.upload(pointer, data)
        self._double(pointer, len(data), total)

    def _double(self, pointer, done, total):
        """Repeat the first ``done`` bytes until ``total`` are full."""
        while done < total:
            size = min(done, total - done)
            self._driver.cuda.call(
                "cuMemcpyDtoD_v2",
                ctypes.c_uint64(pointer + done),
                ctypes.c_uint64(pointer),
                ctypes.c_size_t(size),
            )
            done += size

    def signatures(self, vectors, types):
        """Signature records of the product in C: some columns of each vector's, in all its rows."""
        size = SIZES[types[1]]
        pieces = []
        looked = _SLICE * _SLICES
        for band in matrices.bands(self.n, len(vectors)):
            width = min(_SLICE, len(band))
            for i in range(_SLICES):
                start = band[0] + (len(band) - width) * i // (_SLICES - 1)
                place = start * self.n * size
                pieces.append(self._driver.download(self.c, width * self.n * size, place))
        data = b"".join(pieces)
        columns = looked * len(vectors)
        return matrices.signatures(
            vectors, types[0], types[1], data, self.n, columns, self.n, by_columns=True
        )

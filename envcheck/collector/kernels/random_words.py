"""Random numbers for products that are timed: a GPU multiplies zeros faster than what users multiply."""

import random

from .vectors import SIZES

# (and, or) over random words: plus or minus 0.5 to 2, and odd integers. No number is zero, and sums of as
# many products as a run has stay finite.
_FINITE = {
    "fp32": (0x80FFFFFF, 0x3F000000),
    "bf16": (0x80FF, 0x3F00),
    "fp16": (0x87FF, 0x3800),
    "e4m3": (0x8F, 0x30),
    "int8": (0xFF, 0x01),
}


def random_words(element_type, size):
    """``size`` bytes, a multiple of four, of finite non-zero numbers, the same every time."""
    keep, add = _FINITE[element_type]
    width = SIZES[element_type]
    times = size // width
    raw = random.Random(7).getrandbits(8 * size)
    words = raw & _repeated(keep, width, times) | _repeated(add, width, times)
    return words.to_bytes(size, "little")


def _repeated(word, width, times):
    return int.from_bytes(word.to_bytes(width, "little") * times, "little")

"""The signature vectors: dot products of two or three terms that tell arithmetic units apart by their bits.

Every value is exact in each type that a vector is used with. What a unit makes of them is no business of
this module: it is derived from the recorded bits, on the other side of the wall.
"""

import struct
from collections import namedtuple
from fractions import Fraction

SIZES = {"fp32": 4, "fp16": 2, "bf16": 2, "e4m3": 1, "int8": 1, "int32": 4}  # bytes

# a, b: values; slots: their places in the dot product, from a multiple of ``period`` on, which itself is
# a multiple of 16: a boundary of tiles or slices then falls on no place between them.
Vector = namedtuple("Vector", "name a b slots period")

_TINY = Fraction(1, 2**11)


def _vector(name, a, b, slots=None, period=16):
    slots = tuple(range(len(a))) if slots is None else slots
    return Vector(name, tuple(map(Fraction, a)), tuple(map(Fraction, b)), slots, period)


VECTORS = {
    vector.name: vector
    for vector in (
        _vector("S1", (1, _TINY / 2), (1, _TINY * 3 / 2)),
        _vector("S1n", (-1, -_TINY / 2), (1, _TINY * 3 / 2)),
        _vector("S2", (1, _TINY / 2, 1), (1, _TINY / 2 * Fraction(31, 16), -1)),
        _vector("C1", (1, 1, _TINY / 2), (1, 1, _TINY * 3)),
        _vector("C1n", (-1, -1, -_TINY / 2), (1, 1, _TINY * 3)),
        # outputs of half precision: read S1h, A16 and A16s together
        _vector("S1h", (1, _TINY, _TINY / 2), (1, 1, _TINY * 3 / 4)),
        _vector("A16", (1, _TINY, _TINY), (1, 1, _TINY)),
        _vector("A16s", (1, _TINY, _TINY), (1, 1, _TINY), (0, 16, 32), 48),
        # outputs of bfloat16: S1b tells FMA chains in FP32 apart, B16 those in bfloat16
        _vector("S1b", (1, _TINY * 8, _TINY / 2), (1, 1, _TINY * 3 / 4)),
        _vector("B16", (1, _TINY * 8, _TINY * 8), (1, 1, _TINY * 8)),
        # how FP32 words are rounded on their way in
        _vector("T1", (1 + _TINY + _TINY / 2,), (1,)),
        _vector("T2", (1 + _TINY,), (1,)),
        _vector("T3", (1 + _TINY * 2,), (1,)),
        # 8-bit floats: F8 tells accumulators of 13 fraction bits, C1e and C1ne how these round; the
        # others, around 2^16, what S1, S1n and S2 tell of wider ones
        _vector("F8", (1, Fraction(1, 512)), (1, Fraction(15, 128))),
        _vector("S1e", (256, Fraction(1, 16)), (256, Fraction(3, 16))),
        _vector("S1ne", (-256, Fraction(-1, 16)), (256, Fraction(3, 16))),
        _vector("S2e", (256, Fraction(1, 64), 256), (256, Fraction(15, 32), -256)),
        _vector("C1e", (1, 1, Fraction(1, 512)), (1, 1, Fraction(3, 16))),
        _vector("C1ne", (-1, -1, Fraction(-1, 512)), (1, 1, Fraction(3, 16))),
        _vector("I8", (127, -128, 77), (-128, -127, 55)),
    )
}

# Which vectors go with which (input, output) types; the accumulator is FP32 unless the output's is named.
_FLOAT = ("S1", "S1n", "S2", "C1", "C1n")
SETS = {
    ("fp32", "fp32"): _FLOAT + ("T1", "T2", "T3"),
    ("fp16", "fp32"): _FLOAT,
    ("bf16", "fp32"): _FLOAT,
    ("fp16", "fp16"): ("S1h", "A16", "A16s"),
    ("bf16", "bf16"): ("S1b", "B16"),
    ("e4m3", "fp32"): ("F8", "S1e", "S1ne", "S2e", "C1e", "C1ne"),
    ("int8", "int32"): ("I8",),
}

# At L0, where the accumulator input and every place of a block are in the hand of the caller.
W16 = Vector("W16", (_TINY / 2,) * 16, (_TINY / 4,) * 16, tuple(range(16)), 16)  # with C = 1


# What FP16 results of small terms stand beside instead of 1: 2^14, or they would be too small for FP16.
_LARGE = 128
S2H = _vector("S2h", (_LARGE, _LARGE * _TINY / 2, _LARGE), (_LARGE, _TINY * 124, -_LARGE))


def width_vectors(input_type, output_type="fp32"):
    """The H vectors of a type: many terms of half the last bit that is kept, then 1 and -1.

    "H8/24" has eight of them, for units that keep 24 fraction bits. E4M3's smallest terms are too large
    for that beside 1: where 25 bits are kept, they stand beside 2^16. "H8/24h" is that for FP16 results.

    A block that holds all of them drops the small terms; a narrower one has summed some before the 1 comes.
    """
    kept = (13, 25) if input_type == "e4m3" else (23, 24, 25)
    made = []
    for count in (2, 4, 8, 16, 32):
        for fraction in kept:
            one = 256 if input_type == "e4m3" and fraction > 13 else 1  # its smallest is 2^-9
            one = _LARGE if output_type == "fp16" else one
            small = (
                one * Fraction(2) ** -((fraction + 1) // 2),
                one * Fraction(2) ** -((fraction + 2) // 2),
            )
            made.append(
                _vector(
                    "H%d/%d%s" % (count, fraction, "h" if output_type == "fp16" else ""),
                    (small[0],) * count + (one, -one),
                    (small[1],) * count + (one, one),
                    period=64,
                )
            )
    return made


def encode(value, element_type):
    """An exact value's bits in a type, as an unsigned integer. Raises ValueError where it is not exact."""
    value = Fraction(value)
    if element_type in ("int8", "int32"):
        bits = 8 * SIZES[element_type]
        if value.denominator != 1 or not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError("%s is no %s" % (value, element_type))
        return int(value) & (1 << bits) - 1
    if element_type == "e4m3":
        return _e4m3(value)
    single = struct.pack("<f", float(value))
    if Fraction(struct.unpack("<f", single)[0]) != value:
        raise ValueError("%s is not exact in fp32" % value)
    (word,) = struct.unpack("<I", single)
    if element_type == "bf16":
        if word & 0xFFFF:
            raise ValueError("%s is not exact in bf16" % value)
        return word >> 16
    if element_type == "fp16":
        half = struct.pack("<e", float(value))
        if Fraction(struct.unpack("<e", half)[0]) != value:
            raise ValueError("%s is not exact in fp16" % value)
        return struct.unpack("<H", half)[0]
    return word


def _e4m3(value):
    """OCP 8-bit floating point, E4M3: bias 7, three fraction bits, subnormal below 2^-6, largest 448."""
    sign = 0x80 if value < 0 else 0
    value = abs(value)
    exponent = -6
    while value >= Fraction(2) ** (exponent + 1):
        exponent += 1
    steps = value / Fraction(2) ** (exponent - 3)
    if steps.denominator != 1 or value > 448:
        raise ValueError("%s is not exact in e4m3" % value)
    steps = int(steps)
    return sign | (steps if steps < 8 else (exponent + 7 << 3) | steps - 8)


def pack(word, element_type):
    """A word's bytes, as they stand in memory."""
    return struct.pack({1: "<B", 2: "<H", 4: "<I"}[SIZES[element_type]], word)


def text(word, element_type):
    """A word as a Snapshot has it: "3F800001"."""
    return "%0*X" % (2 * SIZES[element_type], word)

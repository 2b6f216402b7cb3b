"""Signature vectors as the tensorcores tests take them: words, dot products, and Snapshot records."""

from __future__ import annotations

from collections import Counter
from functools import cache

import msgspec

from envcheck.collector.kernels.matrices import record
from envcheck.collector.kernels.vectors import (
    S2H,
    SETS,
    SIZES,
    VECTORS,
    W16,
    Vector,
    encode,
    width_vectors,
)
from envcheck.facts.micro_kernels import Signature
from envcheck.tensorcores.candidates import Candidate, Dot, candidates, in_place

ONE = 0x3F800000  # FP32


@cache
def vector(name: str, input_type: str = "fp16") -> Vector:
    """A vector by its name; "H8/24" are eight small terms, each half of the 24th fraction bit."""
    if name == "W16":
        return W16
    if name == "S2h":
        return S2H
    if name.startswith("H"):
        output_type = "fp16" if name.endswith("h") else "fp32"
        return next(one for one in width_vectors(input_type, output_type) if one.name == name)
    return VECTORS[name]


@cache
def words(one: Vector, input_type: str) -> tuple[list[int], list[int]]:
    """A vector's a and b as words, zeros between its places."""
    element_type = "fp32" if input_type == "tf32" else input_type
    a, b = ([0] * (max(one.slots) + 1) for _ in "ab")
    for slot, x, y in zip(one.slots, one.a, one.b, strict=True):
        a[slot], b[slot] = encode(x, element_type), encode(y, element_type)
    return a, b


@cache
def dot(name: str, input_type: str, output_type: str, c: int = 0) -> Dot:
    one = vector(name, input_type)
    return Dot(
        input_type,
        output_type,
        tuple(encode(x, input_type) for x in one.a),
        tuple(encode(y, input_type) for y in one.b),
        tuple(one.slots),
        c,
    )


@cache
def signature(
    name: str, input_type: str, output_type: str, *seen: int, c: int | None = None
) -> Signature:
    """A record of a vector, of a large product, in which each of ``seen`` came back in 4096 places."""
    counts = Counter({word.to_bytes(SIZES[output_type], "little"): 4096 for word in seen})
    result = record(vector(name, input_type), input_type, output_type, 512, counts, c)
    return msgspec.convert(result, Signature)


def recorded(
    candidate: Candidate, input_type: str, output_type: str, leave_out: str = ""
) -> list[Signature]:
    """What a Snapshot has where a candidate did the work: all vectors of a set of types."""
    return [
        signature(
            name, input_type, output_type, *in_place(candidate, dot(name, input_type, output_type))
        )
        if candidate.unit
        else signature(
            name, input_type, output_type, chained(candidate, name, input_type, output_type)
        )
        for name in SETS[input_type, output_type]
        if name not in leave_out.split()
    ]


def chained(candidate: Candidate, name: str, input_type: str, output_type: str) -> int:
    """One of the words that a chain may give."""
    return max(in_place(candidate, dot(name, input_type, output_type)))


def tensor(
    capability: str,
    input_type: str,
    output_type: str,
    accumulator: str = "fp32",
    inputs: str | None = None,
) -> Candidate:
    """The Tensor Core of a compute capability for these types, rounding its inputs as mma.sync does."""
    if inputs is None:
        inputs = "tf32" if input_type == "fp32" else ""
    return next(
        one
        for one in candidates(input_type, output_type)
        if one.unit
        and capability in one.capabilities
        and (one.accumulator_type, one.inputs) == (accumulator, inputs)
    )


def rival(
    input_type: str, output_type: str, accumulator: str = "fp32", inputs: str = ""
) -> Candidate:
    return next(
        one
        for one in candidates(input_type, output_type)
        if not one.unit and (one.accumulator_type, one.inputs) == (accumulator, inputs)
    )

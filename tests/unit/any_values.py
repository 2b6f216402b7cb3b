"""Values of every shape that the schema of the facts lets in."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from msgspec import inspect

# What a shell, a terminal, XML or a table minds, and what the judgement looks for in texts.
TEXTS = [
    "",
    "\x1b[2K\r\n\x00\u202e[bold]%s{0}",
    "$(HOSTILE) `HOSTILE` '; HOSTILE",
    "]]>&<x>\ud7ff",
    "MIG-1",
    "GPU-1",
    "9" * 400,
    "9.0",
    "13.0",
    "7.0",
    "NVIDIA H100 80GB HBM3",
    "12.9.1",
    "1.15.5",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "HMMA",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "NVIDIA_TF32_OVERRIDE",
    "0",
    "nvjet_x",
    "ampere_sgemm_x",
]
BITS = ["00", "3C00", "7C00", "FFFF", "3F800001", "3F800002", "7F800000", "FFF"]
ADDRESSES = ["0000:01:00.0", "0000:02:00.0"]
NUMBERS = [0.0, -1.0, 0.5, 1.0, 1755.0, 1e-320, 1e308, -1e308, float(2**70)]
WHOLE = [0, -1, 1, 7, 64, 132, 2**31, -(2**63), 2**63 - 1]
VALUES: dict[type[inspect.Type], list[Any]] = {
    inspect.StrType: TEXTS,
    inspect.IntType: WHOLE,
    inspect.FloatType: NUMBERS,
    inspect.BoolType: [True, False],
}

Maker = Callable[[Random], Any]


def maker(kind: inspect.Type) -> Maker:
    """Makes the JSON of any value of the type."""
    match kind:
        case inspect.UnionType(types=types):
            makers = [maker(one) for one in types]
            return lambda random: random.choice(makers)(random)
        case inspect.StructType(cls=cls):
            return lambda random: record(cls)(random)
        case inspect.ListType(item_type=item):
            make = maker(item)
            return lambda random: [make(random) for _ in range(random.randrange(4))]
        case inspect.DictType(value_type=item):
            make = maker(item)
            return lambda random: {one: make(random) for one in random.sample(TEXTS, 2)}
        case inspect.StrType(pattern=pattern) if pattern is not None:
            words = BITS if "0-9A-F]{" in pattern else ADDRESSES
            return lambda random: random.choice(words)
        case inspect.NoneType():
            return lambda random: None
    values = list(kind.values) if isinstance(kind, inspect.LiteralType) else VALUES[type(kind)]
    return lambda random: random.choice(values)


@cache
def record(cls: type) -> Maker:
    kind = inspect.type_info(cls)
    assert isinstance(kind, inspect.StructType)
    fields = [(one.encode_name, one.required, maker(one.type)) for one in kind.fields]
    return lambda random: {
        name: make(random) for name, needed, make in fields if needed or random.random() < 0.5
    }


def spoiled(kind: inspect.Type, value: Any, random: Random, share: float) -> Any:
    """Something good of that type, with this share of its parts replaced by any that the schema lets in."""
    if random.random() < share:
        return maker(kind)(random)
    match kind:
        case inspect.UnionType(types=types):
            fitting = next((one for one in types if _fits(one, value)), None)
            return value if fitting is None else spoiled(fitting, value, random, share)
        case inspect.StructType(cls=cls):
            types = _types(cls)
            return {name: spoiled(types[name], one, random, share) for name, one in value.items()}
        case inspect.ListType(item_type=item):
            return [spoiled(item, one, random, share) for one in value]
        case inspect.DictType(value_type=item):
            return {name: spoiled(item, one, random, share) for name, one in value.items()}
    return value


def _fits(kind: inspect.Type, value: Any) -> bool:
    match kind:
        case inspect.StructType(cls=cls):
            return isinstance(value, dict) and value.keys() <= _types(cls).keys()
        case inspect.DictType():
            return isinstance(value, dict)
        case inspect.ListType():
            return isinstance(value, list)
    return False


@cache
def _types(cls: type) -> dict[str, inspect.Type]:
    kind = inspect.type_info(cls)
    assert isinstance(kind, inspect.StructType)
    return {one.encode_name: one.type for one in kind.fields}

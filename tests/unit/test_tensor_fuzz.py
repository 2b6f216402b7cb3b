"""Micro-kernel facts of every shape that the schema lets in: no check crashes, every report stays text."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from build import area_checks, ok
from msgspec import inspect
from msgspec.structs import replace
from tensor_runs import MACHINES, healthy_runs, snapshot
from test_remedies import assert_safe

from envcheck import json_text
from envcheck.checks.engine import diagnose
from envcheck.facts.micro_kernels import LevelRun, MicroKernels, ModeRun, Signature
from envcheck.facts.snapshot import Snapshot, dump, load
from envcheck.reports import junit, terminal
from envcheck.reports.model import build

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
SEEDS = 12


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


@cache
def healthy() -> list[Any]:
    return list(msgspec.to_builtins(healthy_runs(MACHINES["H100"])))


def mixed(random: Random, cls: type, good: Any) -> Any:
    """Something good with a few of its fields replaced by any that the schema lets in."""
    odd = record(cls)(random)
    return good | {name: value for name, value in odd.items() if random.random() < 0.2}


def spoiled(random: Random) -> MicroKernels:
    runs = []
    for good in random.sample(healthy(), 3):
        run = mixed(random, LevelRun, good)
        run["modes"] = []
        for healthy_mode in random.sample(good["modes"], 4):
            mode = mixed(random, ModeRun, healthy_mode)
            mode["signatures"] = [
                mixed(random, Signature, one) if random.random() < 0.3 else one
                for one in mode.get("signatures", [])[:4]
            ]
            run["modes"].append(mode)
        runs.append(run)
    runs.append(record(LevelRun)(random))
    found = {"levels": ["L0", "L1", "L2"], "modes": ["fp32", "fp16"], "runs": runs}
    return msgspec.convert(found, MicroKernels)


def with_facts(facts: MicroKernels) -> Snapshot:
    whole = snapshot(MACHINES["H100"], [])
    below = replace(facts, runs=[run for run in facts.runs if run.level == "L0"])
    above = replace(facts, runs=[run for run in facts.runs if run.level != "L0"])
    assert whole.target is not None
    return replace(
        whole,
        machine=replace(whole.machine, micro_kernels=ok(below)),
        target=replace(whole.target, micro_kernels=ok(above)),
    )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_facts_crash_a_check_or_make_a_report_more_than_text(seed: int) -> None:
    random = Random(seed)
    facts = spoiled(random)
    snap = load(dump(with_facts(facts)))
    diagnosis = diagnose(snap, checks=area_checks("tensorcores"))
    found = [gap.reason for result in diagnosis.results for gap in result.unjudged]
    assert not [reason for reason in found if reason.startswith("the check crashed")]
    report = build(snap, diagnosis)
    assert len(report.tensor_cores) >= sum(len(run.modes) for run in facts.runs)
    text = terminal.render(
        report, snap, width=random.choice((40, 80, 100, 200)), utf8=random.random() < 0.8
    )
    assert all(line.isprintable() for line in text.split("\n"))
    xml = junit.render(report)
    assert "\x1b" not in xml and ElementTree.fromstring(xml.encode()).tag == "testsuites"
    assert json.loads(json_text.render(report))["tensor_cores"]
    for result in diagnosis.results:
        for finding in result.findings:
            for command in finding.remedy.commands if finding.remedy else ():
                assert_safe(command)

"""Micro-kernel facts of every shape that the schema lets in: no check crashes, every report stays text."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from any_values import record
from build import area_checks, ok
from msgspec.structs import replace
from tensor_runs import MACHINES, healthy_runs, snapshot
from test_remedies import assert_safe

from envcheck import json_text
from envcheck.checks.engine import diagnose
from envcheck.facts.micro_kernels import LevelRun, MicroKernels, ModeRun, Signature
from envcheck.facts.snapshot import Snapshot, dump, load
from envcheck.reports import junit, terminal
from envcheck.reports.model import build

SEEDS = 12


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

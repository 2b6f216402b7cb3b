"""Facts of every shape that the schema lets in, in each section of a machine: no check crashes."""

from __future__ import annotations

import itertools
from functools import cache
from random import Random

import deep_working
import demos
import msgspec
import pytest
import refusals
import test_acceleration_dali_checks as dali
import test_acceleration_tf_trt as tf_trt
from any_values import spoiled
from build import area_checks
from known_machines import machines
from msgspec import inspect
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.facts.base import Probe
from envcheck.facts.snapshot import Document, Snapshot

SHARES = (0.02, 0.1, 0.3)


@cache
def known() -> list[Snapshot]:
    return [*machines().values(), deep_working.looked(demos.healthy())]


def having(document: str, section: str) -> list[Snapshot]:
    """The known machines with facts in that section."""
    probes = [getattr(getattr(one, document), section, None) for one in known()]
    return [
        one
        for one, probe in zip(known(), probes, strict=True)
        if isinstance(probe, Probe) and probe.facts is not None
    ]


SECTIONS = [
    (document, name)
    for document in ("machine", "target")
    for name in Document.__struct_fields__
    if having(document, name)
]


@pytest.mark.parametrize(("document", "section"), SECTIONS)
def test_no_facts_crash_a_check(document: str, section: str) -> None:
    found, random = having(document, section), Random(section)
    some = found if len(found) <= 6 else random.sample(found, 3)
    for snapshot, share in itertools.product(some, SHARES):
        place = getattr(snapshot, document)
        probe = getattr(place, section)
        kind, good = type(probe.facts), msgspec.to_builtins(probe.facts)
        facts = msgspec.convert(spoiled(inspect.type_info(kind), good, random, share), kind)
        odd = replace(place, **{section: replace(probe, facts=facts)})
        results = diagnose(replace(snapshot, **{document: odd})).results
        reasons = [gap.reason for one in results for gap in one.unjudged]
        assert not [one for one in reasons if one.startswith("the check crashed")], facts
    refusals.found.clear()  # commands made of any text


RUNS = {one.system: one for one in deep_working.runs() if one.trials}
RUNS |= {"dali": dali.run(dali.trial("gpu"), dali.CONTROL), "tf-trt": tf_trt.WELL}


@pytest.mark.parametrize("system", RUNS)
def test_no_evidence_of_a_system_crashes_a_check(system: str) -> None:
    """Each piece of it, in turn: what its own process wrote may be anything."""
    run, checks = RUNS[system], area_checks("acceleration")
    for place, trial in enumerate(run.trials):
        for name, value in itertools.product(trial.evidence, (-1, float("inf"), "x", ["x"])):
            odd = replace(trial, evidence={**trial.evidence, name: value})
            trials = [*run.trials[:place], odd, *run.trials[place + 1 :]]
            snapshot = deep_working.looked(demos.healthy(), replace(run, trials=trials))
            reasons = [
                gap.reason
                for one in diagnose(snapshot, checks=checks).results
                for gap in one.unjudged
            ]
            assert not [one for one in reasons if one.startswith("the check crashed")], (
                name,
                value,
            )

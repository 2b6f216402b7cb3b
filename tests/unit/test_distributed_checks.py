"""Training on several devices and processes: each state and each cause, from made-up runs."""

from __future__ import annotations

from typing import Any

import pytest
from distributed_runs import CODES, CONTROLS, TRIALS, bad, control, judged, well

from envcheck.findings.model import CheckResult

EACH = pytest.mark.parametrize("system", [*CODES])
UNREACHED = "RuntimeError: rank 0: no answer within 8 s"


def first(result: CheckResult, outcome: str) -> str:
    """What is said first, where the outcome is that."""
    assert result.outcome == outcome, result
    if result.findings:
        assert result.findings[0].evidence
        return result.findings[0].headline
    return result.detail or result.reason


@EACH
def test_what_is_exact_and_lacking_in_its_control_is_engaged(system: str) -> None:
    text = first(judged(system, well(system), control(system)), "pass")
    assert "TensorFlow 2.15.1" in text and "on the CPU" in text
    assert "sum 3 of 3" in text


@EACH
def test_a_control_that_failed_or_shows_the_same_proves_nothing(system: str) -> None:
    same: dict[str, Any] = {
        "horovod": {"size": 2},
        "mirrored": {"replicas": 2},
        "multiworker": {"replicas": 2},
    }
    name, _evidence = CONTROLS[system]
    for broken in (bad(name, "ValueError: x"), control(system, **same[system])):
        text = first(judged(system, well(system), broken), "could-not-run")
        assert "came to nothing" in text
    first(judged(system, well(system)), "could-not-run")


@EACH
def test_a_trial_that_failed_could_not_run_and_says_why(system: str) -> None:
    name, _evidence = TRIALS[system]
    for outcome in ("error", "timeout", "crashed", "out-of-memory", "not-supported"):
        text = first(
            judged(system, bad(name, "ValueError: so", outcome), control(system)), "could-not-run"
        )
        assert "ValueError: so" in text
    first(judged(system, control(system)), "could-not-run")


@EACH
def test_a_wrong_sum_fails(system: str) -> None:
    result = judged(system, well(system, sum=2.0), control(system))
    assert first(result, "fail")
    assert "sum 2 of" in result.findings[0].message


@EACH
def test_evidence_that_is_missing_or_hostile_never_passes(system: str) -> None:
    _name, evidence = TRIALS[system]
    nothing = dict.fromkeys(evidence)
    assert judged(system, well(system, **nothing), control(system)).outcome != "pass"
    for value in ("\x1b[2J" * 50, -1, ["x"], True):
        hostile: dict[str, Any] = dict.fromkeys(evidence, value)
        assert judged(system, well(system, **hostile), control(system)).outcome != "pass"


@EACH
def test_weights_that_differ_fail(system: str) -> None:
    assert first(judged(system, well(system, weights=["3.0", "4.0"]), control(system)), "fail")
    assert (
        first(judged(system, well(system, weights=None), control(system)), "fail")
        if (system == "horovod")
        else True
    )


@pytest.mark.parametrize(
    ("system", "evidence", "words"),
    [
        ("multiworker", {"replicas": 1, "sum": 1.0}, "each worker trains alone"),
        ("mirrored", {"replicas": 1, "sum": 1.0}, "trains on one device"),
        ("horovod", {"size": 1, "sum": 1.0}, "ranks train alone"),
    ],
)
def test_who_trains_alone_is_told(system: str, evidence: dict[str, Any], words: str) -> None:
    assert words in first(judged(system, well(system, **evidence), control(system)), "fail")


def test_a_proxy_is_named_where_it_goes_well_without_it() -> None:
    system, name = "multiworker", "workers"
    plain = bad(name, UNREACHED, proxy="http_proxy")
    around = well(system, proxy="http_proxy")
    around = bad(f"{name}, no_proxy", "", "ok", **around.evidence)
    result = judged(system, plain, around, control(system))
    assert "http_proxy without no_proxy" in first(result, "warn")
    remedy = result.findings[0].remedy
    assert remedy is not None and remedy.commands[0].startswith("export no_proxy=")
    both = judged(system, plain, bad(f"{name}, no_proxy", UNREACHED), control(system))
    assert "no answer within 8 s" in first(both, "could-not-run")
    # A proxy that is set and hinders nobody is nobody's business.
    first(judged(system, well(system, proxy="http_proxy"), control(system)), "pass")


GPUS: dict[str, Any] = {"device": "gpu", "gpus": ["0000:01:00.0", "0000:02:00.0"]}


def test_horovod_built_without_nccl_is_not_engaged_between_gpus() -> None:
    for operations, over in ((["GLOO_ALLREDUCE"], "Gloo"), (None, "the host")):
        result = judged(
            "horovod", well("horovod", operations=operations), control("horovod"), **GPUS
        )
        assert f"over {over}: it is built without NCCL" in first(result, "fail")
        remedy = result.findings[0].remedy
        assert remedy is not None and "HOROVOD_GPU_OPERATIONS=NCCL" in remedy.commands[0]
    by_mpi = judged("horovod", well("horovod", operations=["MPI_X"]), control("horovod"), **GPUS)
    assert "over MPI, without NCCL in it" in first(by_mpi, "pass")


def test_horovod_built_with_nccl_and_not_using_it_is_told() -> None:
    ranks = well("horovod", nccl=True)
    text = first(judged("horovod", ranks, control("horovod"), **GPUS), "fail")
    assert "over Gloo, though NCCL is built in" in text
    silent = well("horovod", nccl=True, operations=None)
    text = first(judged("horovod", silent, control("horovod"), **GPUS), "could-not-run")
    assert "timeline does not name" in text

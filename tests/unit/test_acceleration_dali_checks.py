"""What is made of DALI's runs: each state and each cause, from made-up runs."""

from __future__ import annotations

from typing import Any

import pytest
import system_runs
from judged import only
from msgspec.structs import replace
from system_runs import result

from envcheck.collector.systems.shared import dali_images
from envcheck.facts.acceleration import SystemRun, SystemTrial

CODE = "ACC-019"


def trial(name: str = "cpu", outcome: str = "ok", reason: str = "", **evidence: Any) -> SystemTrial:
    """A trial whose images are as they must be, unless evidence says otherwise (None: has none)."""
    given: dict[str, Any] = {"version": "2.4.0"}
    if outcome == "ok":
        given |= {"png_difference": 0.0, "jpeg_difference": 5.0}
        given |= {"type": f"TensorList{name.upper()}"}
    return system_runs.trial(name, outcome, reason, **(given | evidence))


CONTROL = replace(trial(), control=True)


def run(*trials: SystemTrial, **facts: Any) -> SystemRun:
    device = "gpu" if any(one.name == "gpu" for one in trials) else "cpu"
    values = {"outcome": "ok", "device": device, "trials": list(trials), **facts}
    return SystemRun(system="dali", **values)


def test_images_as_they_must_be_are_engaged() -> None:
    on_cpu = result(CODE, run(trial()))
    assert on_cpu.detail == "DALI 2.4.0: images within 5 of 255 of their pixels, on the CPU"
    both = result(CODE, run(trial("gpu", jpeg_difference=9.0), CONTROL))
    assert both.outcome == "pass"
    assert both.detail == "DALI 2.4.0: images within 9 of 255 of their pixels, on the GPU"


@pytest.mark.parametrize(
    ("trials", "headline"),
    [
        ((trial(png_difference=2.0),), "DALI's CPU pipeline gives wrong images"),
        ((trial("gpu", jpeg_difference=14.0), CONTROL), "DALI's GPU pipeline gives wrong images"),
        ((trial("gpu", type="TensorListCPU"), CONTROL), "DALI's GPU pipeline does not run"),
        (
            (trial("gpu", "error", "RuntimeError: nvJPEG failed"), CONTROL),
            "DALI's GPU pipeline does not run, its CPU pipeline does",
        ),
        ((trial("gpu", "crashed", "its process died"),), "DALI's GPU pipeline does not run"),
        ((trial(outcome="error", reason="it broke"),), "DALI's CPU pipeline does not run"),
    ],
)
def test_wrong_images_and_pipelines_that_do_not_run_are_failures(
    trials: tuple[Any, ...], headline: str
) -> None:
    found = result(CODE, run(*trials))
    assert (found.outcome, only(found).headline) == ("fail", headline)


def test_a_driver_that_is_too_old_for_it_is_named_in_the_remedy() -> None:
    found = result(CODE, run(trial("gpu", "error", "CUDA driver version is insufficient"), CONTROL))
    assert "for a CUDA that the driver knows" in found.findings[0].remedy.text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("found", "outcome", "reason"),
    [
        (
            run(outcome="not-applicable", reason="nvidia.dali is not installed"),
            "skipped",
            "not applicable: nvidia.dali is not installed",
        ),
        (
            run(outcome="not-run", reason="import nvidia.dali: no libdali"),
            "could-not-run",
            "import nvidia.dali: no libdali",
        ),
        (run(), "could-not-run", "DALI: it was not reached"),
        (
            run(trial(png_difference=None)),
            "could-not-run",
            "DALI 2.4.0: its images were not compared",
        ),
        (
            run(trial("gpu", "out-of-memory", "out of memory")),
            "could-not-run",
            "DALI 2.4.0: out of memory",
        ),
    ],
)
def test_without_evidence_it_could_not_run(found: SystemRun, outcome: str, reason: str) -> None:
    answer = result(CODE, found)
    assert (answer.outcome, answer.reason) == (outcome, reason)


def test_runs_of_the_plugin_in_older_snapshots_are_for_lib_010() -> None:
    older = run(framework="tensorflow", framework_version="2.15.1")
    assert result(CODE, run(trial()), older).outcome == "pass"
    assert result(CODE, older).outcome == "skipped"


def test_images_have_their_pixels() -> None:
    rows: Any = dali_images.pixels()  # type: ignore[no-untyped-call]
    assert (len(rows), len(rows[0])) == (dali_images.HEIGHT, dali_images.WIDTH)
    difference: Any = dali_images.difference
    assert difference(rows, rows) == 0 and difference(rows, rows[1:]) == 256
    turned = [[pixel[::-1] for pixel in row] for row in rows]
    assert difference(rows, turned) > 100 and difference(rows, rows[::-1]) > 100

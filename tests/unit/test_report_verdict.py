"""The verdict: one line that names what matters."""

from __future__ import annotations

from typing import Any

import h100
import msgspec
import pytest
import targets
import whole
from reported import consequence, finding, report_of, result
from tensor_runs import with_micro_kernels

from envcheck.checks.engine import diagnose
from envcheck.facts.gpu import Gpu
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.subjects import Subject, about_device_at, about_gpu
from envcheck.reports import terminal
from envcheck.reports.headlines import phrase
from envcheck.reports.model import Report, build

LONG = "a finding that takes a lot of the line and then some more of it"


def judged(snapshot: Snapshot, **only: Any) -> Report:
    return build(snapshot, diagnose(snapshot, **only))


def first(snapshot: Snapshot, **style: Any) -> str:
    """The first line of the report."""
    return terminal.render(judged(snapshot), snapshot, **style).partition("\n")[0]


def hot(*indices: int) -> Snapshot:
    gpus = [
        h100.gpu(n, clock_event_reasons=["hw_thermal_slowdown"], clock_sm_mhz=345)
        if n in indices
        else h100.gpu(n)
        for n in range(h100.COUNT)
    ]
    return whole.whole(nvml=h100.nvml(gpus), nvidia_smi=h100.smi(gpus))


def no_gpu(target: Any = None) -> Snapshot:
    seen = h100.machine([], pci=Pci(devices=[]), kernel=whole.unloaded())
    return msgspec.structs.replace(seen, target=target)


@pytest.mark.parametrize(
    ("indices", "who"),
    [
        ((3,), "GPU 3 is"),
        ((0, 1, 2, 5), "GPUs 0–2, 5 are"),
        (tuple(range(8)), "all 8 GPUs are"),
    ],
)
def test_a_problem_of_gpus_names_them(indices: tuple[int, ...], who: str) -> None:
    assert first(hot(*indices)) == f"✗ 1 problem: {who} throttled by heat"


def test_what_is_healthy_names_what_works() -> None:
    snapshot = with_micro_kernels(whole.whole(), "tensorflow")
    said = judged(snapshot).verdict
    assert said == (
        "healthy: 8 × H100 80GB HBM3, driver 535.104.05, TensorFlow 2.19.1 sees all 8, "
        "Tensor Cores proven in 5 modes"
    )
    assert judged(whole.whole()).verdict == said.rpartition(",")[0]


def test_no_gpu_is_said_alone_and_beside_other_problems() -> None:
    assert first(no_gpu()) == "✗ no NVIDIA GPU in this machine"
    assert first(no_gpu(), utf8=False) == "PROBLEM: no NVIDIA GPU in this machine"
    other = result("HOST-003", "host", "fail", findings=[finding("B.", headline="no glibc")])
    gpu = result("PCI-001", "pci", "fail", findings=[finding("A.", headline="no GPU")])
    assert report_of(other, gpu).headlines == ["no glibc", "no GPU"]


def test_what_others_follow_from_stands_first() -> None:
    results = [
        result("A-1", "host", "warn", findings=[finding("W.", "warn")]),
        result("A-2", "host", "fail", findings=[finding("One."), finding("Small.", "warn")]),
        result("A-3", "host", "fail", findings=[finding("Root.")]),
        consequence("A-4", "host", "A-3", "It follows."),
        consequence("A-5", "host", "A-4", "And that."),
    ]
    report = report_of(*results)
    assert (report.verdict, report.headlines) == ("2 problems: Root.; One.", ["Root.", "One."])


def test_as_many_as_fit_on_two_lines_are_named() -> None:
    failed = [
        result(f"A-{n}", "host", "fail", findings=[finding("M.", headline=f"{n} {LONG}")])
        for n in range(4)
    ]
    report, snapshot = report_of(*failed), whole.whole()

    def told(width: int) -> tuple[str, int]:
        text = terminal.render(report, snapshot, width=width).partition("Machine:")[0]
        return " ".join(text.split()), text.count("\n")

    assert told(80) == (f"✗ 4 problems: 0 {LONG}; 3 more", 2)
    assert told(100) == (f"✗ 4 problems: 0 {LONG}; 1 {LONG}; 2 more", 2)
    assert told(40) == (f"✗ 4 problems: 0 {LONG}", 3), "the first is named in any case"
    assert len(report.headlines) == 4, "JSON has all of them"


@pytest.mark.parametrize(
    ("text", "subjects", "told"),
    [
        ("no driver", [about_gpu(Gpu(index=3))], "no driver"),
        ("is lost", [], "a GPU is lost"),
        ("is lost", [about_gpu(Gpu(index=9))], "GPU 9 is lost"),
        ("has Xid 79", [about_device_at("gpu", "0000:03:00.0")], "GPU 3 has Xid 79"),
        (
            "has no licence",
            [about_device_at("gpu", f"0000:0{n}:00.0") for n in (3, 1)],
            "GPUs 1, 3 have no licence",
        ),
        (
            "does not work",
            [about_device_at("gpu", "0000:02:00.0")],
            "the GPU at 0000:02:00.0 does not work",
        ),
    ],
)
def test_a_phrase_follows_its_devices(text: str, subjects: list[list[Subject]], told: str) -> None:
    gpus = {"0000:01:00.0": 1, "0000:02:00.0": None, "0000:03:00.0": 3}
    assert phrase(text, [about for these in subjects for about in these], gpus) == told


def test_a_target_for_the_cpu_on_a_machine_without_a_gpu() -> None:
    cpu = targets.tensorflow(version="2.21.0", gpus=[], cuda_build=False, libraries=[])
    snapshot = no_gpu(targets.good_target(tensorflow=cpu))
    results = [result("FRM-001", "framework"), result("HOST-001", "host")]
    assert report_of(*results, facts=snapshot).verdict == (
        "healthy: TensorFlow 2.21.0 works; this machine has no NVIDIA GPU"
    )


def test_brief_is_a_line_or_one_more_for_each_of_several() -> None:
    snapshot = whole.whole()
    one = result("A-1", "host", "fail", findings=[finding("M.", headline="it burns")])
    two = result("A-2", "host", "fail", findings=[finding("N.", headline="it rains")])
    assert terminal.brief(report_of(one), snapshot) == "✗ 1 problem: it burns\n"
    assert terminal.brief(report_of(one, two), snapshot) == (
        "✗ 2 problems: it burns; it rains\nFAIL A-1 it burns\nFAIL A-2 it rains\n"
    )

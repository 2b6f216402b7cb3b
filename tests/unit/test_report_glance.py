"""The report as it is by default: it fits into a terminal of 24 lines, and its verdict names what matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import demos
import h100
import msgspec
import pytest
import whole
from reported import consequence, eight_gpus, finding, report_of, result

from envcheck.checks.engine import diagnose
from envcheck.facts.evidence import Evidence
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot, load
from envcheck.findings.model import Remedy
from envcheck.reports import terminal
from envcheck.reports.model import Report, build


def judged(snapshot: Snapshot, **only: Any) -> Report:
    return build(snapshot, diagnose(snapshot, **only))


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


def shown(snapshot: Snapshot, **style: Any) -> list[str]:
    return terminal.render(judged(snapshot), snapshot, **style).splitlines()


@pytest.mark.parametrize(
    "snapshot",
    [
        lambda: hot(3),
        no_gpu,
        lambda: load(demos.build("driver-update")),
        lambda: load(demos.build("blind-tensorflow")),
        lambda: load(demos.build("heat")),
        lambda: load(demos.build("healthy")),
    ],
)
@pytest.mark.parametrize("style", [{}, {"colour": True}, {"utf8": False}])
def test_one_problem_fits_on_24_lines_of_80(
    snapshot: Callable[[], Snapshot], style: dict[str, Any]
) -> None:
    made = snapshot()
    lines = shown(made, **style)
    assert len(lines) <= 23 + bool(made.simulated), "\n".join(lines)


def test_evidence_is_short_and_consequences_are_one_line() -> None:
    many = [Evidence(f"machine.nvml.gpus[{n}].temperature_c", "90", "NVML") for n in range(8)]
    long = Evidence("machine.kernel.log", "words " * 200, "dmesg")
    failed = result(
        "A-1",
        "host",
        "fail",
        findings=[finding("Bad.", evidence=[*many, long], remedy=Remedy("Do.", ["do it"]))],
    )
    follow = [consequence(f"B-{n}", "gpu", "A-1", "So.") for n in range(1, 60, 2)]
    log = Evidence("machine.kernel.log", "NVRM: Xid (PCI:0000:01:00): 79", "dmesg")
    fallen = finding("Fallen.", evidence=[log])
    follow.append(result("C-1", "kernel", "skipped", consequence_of="A-1", findings=[fallen]))
    snapshot = eight_gpus()
    text = terminal.render(report_of(failed, *follow, facts=snapshot), snapshot)
    block = text[text.index("FAIL A-1") :].split("\n\n")[0]
    lines = block.splitlines()
    assert lines[1].startswith("    kernel log: words words") and lines[2].endswith(" words…")
    assert lines[3] == "  → also: C-1 NVRM: Xid (PCI:0000:01:00): 79", "a proof is not folded"
    assert lines[4].startswith("  → consequences: B-1, B-3") and lines[4].endswith(", …")
    assert len(lines) == 7
    assert "NVML" not in block and "machine." not in block
    assert all(len(line) <= 80 for line in lines)


def test_what_is_known_is_not_said_twice() -> None:
    once = ["python -m ensurepip", "nvidia-bug-report.sh"]
    reset = ["fuser -v /dev/nvidia0", "nvidia-smi --gpu-reset", "modprobe nvidia_drm"]
    findings = [
        finding(
            f"{package} 1.2 is bad.",
            headline=f"a package {word}",
            evidence=[Evidence("a.version", f"{package} 1.2"), Evidence("a.size", "12")],
            remedy=Remedy(f"Mend {package}.", [*once, *reset, f"pip install {package}"]),
            subject=package,
        )
        for package, word in (("numpy", "burns"), ("scipy", "rains"))
    ]
    snapshot = eight_gpus()
    text = terminal.render(report_of(result("A-1", "host", "fail", findings=findings)), snapshot)
    assert text.startswith("✗ 2 problems: a package burns (numpy); a package rains (scipy)\n")
    assert text.count("ensurepip") == text.count("nvidia-bug-report.sh") == 1
    assert "# as for A-1 above: from fuser -v /dev/nvidia0 to modprobe nvidia_drm\npip" in text
    assert "FAIL A-1 scipy 1.2 is bad.\n    size: 12\n" in text


@pytest.mark.parametrize(
    ("indices", "who"),
    [((3,), "GPU 3 is"), ((0, 1, 2, 5), "GPUs 0–2, 5 are"), (tuple(range(8)), "all 8 GPUs are")],
)
def test_a_problem_of_gpus_names_them(indices: tuple[int, ...], who: str) -> None:
    assert shown(hot(*indices))[0] == f"✗ 1 problem: {who} throttled by heat"


def test_what_others_follow_from_stands_first() -> None:
    results = [
        result("A-1", "host", "warn", findings=[finding("W.", "warn")]),
        result("A-2", "host", "fail", findings=[finding("One."), finding("Small.", "warn")]),
        result("A-3", "host", "fail", findings=[finding("Root.")]),
        consequence("A-4", "host", "A-3", "It follows."),
        consequence("A-5", "host", "A-3", "And that."),
    ]
    report = report_of(*results)
    assert (report.verdict, report.headlines) == ("2 problems: Root.; One.", ["Root.", "One."])


def test_brief_is_the_verdict() -> None:
    one = result("A-1", "host", "fail", findings=[finding("M.", headline="it burns")])
    two = result("A-2", "host", "fail", findings=[finding("N.", headline="it rains")])
    text = terminal.brief(report_of(one, two), whole.whole())
    assert text == "✗ 2 problems: it burns; it rains\n"

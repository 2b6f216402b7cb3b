"""The check on what hangs in the kernel while it asks the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...facts.base import Probe, StuckProcess
from ...facts.missing import Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about_processes
from ..driver_state import REBOOT
from ..registry import check

_ASKING = (
    ("machine", ("nvml", "nvidia_smi", "cuda")),
    ("target", ("tensorflow", "torch", "jax")),
)

_CRASH = re.compile(r"SIG(?:SEGV|BUS|ABRT|ILL|FPE|TRAP)")
_LONG = 3.0  # seconds; a deadline below that says nothing of the driver


@check(
    "DRV-010",
    title="Nothing that asks the driver hangs in the kernel",
    problem="the driver hangs in the kernel",
    about="A process that asks a driver or a GPU that does not answer any more may hang in the kernel, where"
    " not even SIGKILL ends it: nvidia-smi, monitoring and training then hang one after the other,"
    " and stay until a reboot. Judged by the processes with which envcheck itself asked NVML, nvidia-smi,"
    " libcuda and the frameworks, and which it had to leave behind. A failure.",
    sources=("leptonai/gpud#117", "NVIDIA/gpu-monitoring-tools#46"),
    follows=("PCI-001",),
)
def nothing_hangs(view: SnapshotView) -> Iterator[Verdict]:
    asked = dict(_asked(view))
    if not asked:
        raise Skip("nothing asked the driver in this snapshot")
    hanging = {path: stuck for path, probe in asked.items() if (stuck := stuck_in(probe))}
    if not hanging:
        yield Passed("everything that asked the driver came back")
        return
    processes = [process for stuck in hanging.values() for process in stuck]
    yield Finding(
        "fail",
        "What asks the driver hangs in the kernel and cannot be killed: the driver or a GPU does not answer,"
        " and whatever else asks it will hang too.",
        subjects=about_processes(process.pid for process in processes),
        evidence=[
            view.evidence(
                f"{path}.stuck",
                f"{process.command} (process {process.pid}, state {process.state or 'not known'})",
            )
            for path, stuck in hanging.items()
            for process in stuck
        ],
        remedy=Remedy(
            "Look at the kernel's log for the reason, then reboot: such a process goes only then.",
            [
                *(f"sudo cat /proc/{process.pid}/stack" for process in processes[:1]),
                "sudo dmesg | grep -iE 'nvrm|xid'",
                REBOOT,
            ],
        ),
    )


def _asked(view: SnapshotView) -> Iterator[tuple[str, Probe[Any]]]:
    for name, sections in _ASKING:
        document = getattr(view.snapshot, name)
        if document is None or document.origin != "live":
            continue
        for section in sections:
            probe = getattr(document, section)
            if probe is not None:
                yield f"{name}.{section}", probe


def died(probe: Probe[Any] | None) -> bool:
    """Whether the process that asked crashed; one that was killed says nothing of the driver."""
    return probe is not None and probe.outcome == "crashed" and bool(_CRASH.search(probe.reason))


def silent(probe: Probe[Any] | None) -> bool:
    """Whether it never came back, in a time in which an idle machine answers ten times over."""
    late = probe is not None and probe.outcome == "timeout"
    return late and probe.seconds >= _LONG and not stuck_in(probe)  # type: ignore[union-attr]


def stuck_in(probe: Probe[Any] | None) -> list[StuckProcess]:
    """The processes that a probe had to leave behind, each once: its own, and what it started."""
    if probe is None:
        return []
    inside: list[StuckProcess] = getattr(probe.facts, "stuck", [])
    return list({process.pid: process for process in [*probe.stuck, *inside]}.values())

"""The check on processes that hang in the kernel while they ask the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...facts.base import StuckProcess
from ..declared import declared_causes
from ..driver_state import NVRM_LOG, REBOOT
from ..reading import Probe, Skip, SnapshotView
from ..verdicts import Passed, Verdicts, about_processes, check

CAUSE = declared_causes(__name__)

_ASKING = {
    "machine": ("nvml", "nvidia_smi", "cuda"),
    "target": ("tensorflow", "torch", "jax"),
}
_CRASH = re.compile(r"SIG(?:SEGV|BUS|ABRT|ILL|FPE|TRAP)")
_LONG = 3.0  # seconds; a shorter deadline says nothing about the driver


@check("DRV-010")
def nothing_hangs(view: SnapshotView) -> Verdicts:
    asked = dict(_asked(view))
    if not asked:
        raise Skip("nothing asked the driver in this snapshot")
    stuck = [(path, process) for path, probe in asked.items() for process in stuck_in(probe)]
    if not stuck:
        yield Passed("everything that asked the driver came back")
        return
    pids = [process.pid for _, process in stuck]
    evidence = [
        view.evidence(f"{path}.stuck", f"{p.command} (process {p.pid}, state {p.state or '?'})")
        for path, p in stuck
    ]
    commands = [f"sudo cat /proc/{pids[0]}/stack", NVRM_LOG, REBOOT]
    yield CAUSE["driver-hangs"].found(about_processes(pids), evidence, commands=commands)


def _asked(view: SnapshotView) -> Iterator[tuple[str, Probe[Any]]]:
    for name, sections in _ASKING.items():
        document = getattr(view.snapshot, name)
        if document is not None and document.origin == "live":
            for section in sections:
                if (probe := getattr(document, section)) is not None:
                    yield f"{name}.{section}", probe


def died(probe: Probe[Any] | None) -> bool:
    return probe is not None and probe.outcome == "crashed" and bool(_CRASH.search(probe.reason))


def silent(probe: Probe[Any] | None) -> bool:
    """Whether it never came back, in a time in which an idle machine answers ten times over."""
    if probe is None or probe.outcome != "timeout":
        return False
    return probe.seconds >= _LONG and not stuck_in(probe)


def stuck_in(probe: Probe[Any] | None) -> list[StuckProcess]:
    """The processes of a probe that could not be ended, each once: its own, and what it started."""
    if probe is None:
        return []
    inside: list[StuckProcess] = getattr(probe.facts, "stuck", [])
    return list({process.pid: process for process in [*probe.stuck, *inside]}.values())

"""The check on the driver's errors in the kernel log that have no Xid."""

from __future__ import annotations

import re

from ...data.kernel import KernelLine, kernel_lines
from ..driver_state import NO_DRIVER
from ..nvidia_devices import event_evidence, kernel_facts, listed_gpus
from ..reading import KernelEvent, SnapshotView, known, need
from ..verdicts import Finding, Params, Passed, Verdicts, check, fail, warn
from .events import (
    address_of_event,
    gpu_at,
    line_cause,
    line_commands,
    reset_commands,
    since_driver_load,
    subjects_at,
)

_MISMATCH = re.compile(
    r"API mismatch: the client (?:\S{1,40} )?has the version (?P<client>\d[\d.]{2,20}\d)"
)
MISMATCH = warn(
    "program-with-other-libraries",
    "a program came with another driver's libraries",
    "A program came with driver libraries of version {client}, and the module is {module}: it found no GPU.",
    "It was most likely in a container whose image holds libraries of a driver, or was started before the"
    " driver was changed: take them out of the image (the engine brings the host's), or start it again.",
    "find / -xdev -name 'libcuda.so.*' -not -path '*/compat/*' 2>/dev/null  # in that program's image",
)
RESET = fail(
    "reset-required",
    "has to be reset, says the driver",
    "The driver says that this GPU has to be reset: until then programs on it fail ('busy or unavailable'),"
    " or their results are wrong.",
    "Stop everything that uses the GPU and reset it; if that fails, power the machine off and on.",
)
RESET_BEFORE = RESET.variant(
    "reset-was-required",
    severity="warn",
    sentence="The driver said that this GPU has to be reset, and does not ask for it any more: look whether"
    " programs on it work.",
)
_LINES = {row: line_cause(row) for row in kernel_lines("KRN-014")}
_CAUSES = dict.fromkeys(cause for both in _LINES.values() for cause in both if cause is not None)


@check(
    "KRN-014",
    title="The driver logs no errors besides Xids",
    causes=[
        *_CAUSES,
        RESET,
        RESET_BEFORE,
        MISMATCH,
    ],
    about="Some faults leave no Xid: a GPU needs a reset or is lost, its firmware (GSP) or unified memory"
    " has stopped, the kernel stopped in the driver's module, or a program uses another driver's libraries.",
    sources=["scitix/sichek#51; NVIDIA/DCGM#134; NVIDIA/open-gpu-kernel-modules#1230"],
    follows=(*NO_DRIVER, "PCI-004", "KRN-008", "KRN-013", "DRV-002", "GPU-001", "GPU-006"),
)
def no_other_errors(view: SnapshotView) -> Verdicts:
    events = since_driver_load(need(kernel_facts(view).log, "the kernel log"))
    lines: dict[tuple[KernelLine | str, str | None], list[KernelEvent]] = {}
    for event in events:
        row: KernelLine | str | None = next(
            (one for one in _LINES if one.fits(event.kind, event.text)), None
        )
        if row is None:
            row = "mismatch" if _MISMATCH.search(event.text) else event.kind
        address = address_of_event(view, event, events) if row != "mismatch" else None
        lines.setdefault((row, address), []).append(event)
    for (row, address), logged in lines.items():
        if isinstance(row, KernelLine):
            found = _line(view, row, address, logged)
        else:
            found = _judge(view, row, address, logged)
        if found:
            yield found
    yield Passed("none since the driver was loaded")


def _line(
    view: SnapshotView, row: KernelLine, address: str | None, events: list[KernelEvent]
) -> Finding | None:
    listed = listed_gpus(view)
    answers = address in listed if address else bool(listed)
    cause = _LINES[row][answers]
    if cause is None:
        return None
    evidence = [event_evidence(view, event) for event in events[-2:]]
    commands = line_commands(view, row, address)
    return cause.found(subjects_at(view, address), evidence, commands=commands)


def _judge(
    view: SnapshotView, kind: str, address: str | None, events: list[KernelEvent]
) -> Finding | None:
    evidence = [event_evidence(view, event) for event in events[-2:]]
    if kind == "mismatch":
        client = _MISMATCH.search(events[-1].text)
        module = known(kernel_facts(view).driver_version)
        if client is None or client["client"] == module:
            return None
        params: Params = {"client": client["client"], "module": module or "another"}
        return MISMATCH.found(evidence=evidence, **params)
    if kind == "reset-required":
        gpu = gpu_at(view, address)
        over = gpu is not None and known(gpu.recovery_action) == "None"
        commands = None if over else reset_commands("reset", address)
        cause = RESET_BEFORE if over else RESET
        return cause.found(subjects_at(view, address), evidence, commands=commands)
    return None

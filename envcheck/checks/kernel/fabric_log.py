"""The check on the fabric manager's own log."""

from __future__ import annotations

import re
from typing import Any

from ...data.kernel import fabric_manager_words, sxids
from ...facts.kernel import FabricManagerEvent
from ..driver_state import NO_DRIVER, REBOOT, REPORT, install_fabric_manager
from ..nvidia_devices import kernel_facts
from ..on_the_bus import BRIDGES
from ..reading import CannotJudge, SnapshotView, known, need
from ..verdicts import Cause, Evidence, Passed, Remedy, Verdicts, check, fail, warn

START = "sudo systemctl restart nvidia-fabricmanager"
LOOK = "sudo tail -n 50 /var/log/fabricmanager.log"
_WAITING = ("not started", "in progress")
_NONE_HERE = "NV_WARN_NOTHING_TO_DO"
_HEADLINE = "the fabric manager reports errors"

_BY_KEY = {
    row.cause: Cause(
        row.cause,
        "fail" if row.severity == "fail" else "warn",
        _HEADLINE,
        f"{row.message}.",
        row.remedy,
    )
    for row in fabric_manager_words()
    if row.severity != "info"
}
_ELSEWHERE = fail(
    "switches-not-here",
    "the GPUs' fabric is not set up: no switches here",
    "The GPUs wait to be joined to an NVSwitch fabric (no CUDA program starts, error 802), and the fabric"
    " manager finds no NVSwitch on this machine.",
    "In a virtual machine have the partition of these GPUs activated where the switches are (the host, or its"
    " service virtual machine); on a rack with switch trays have its controller set up the fabric; on HGX"
    " B200 and later load mlx5_ib and ib_umad and start the fabric manager again.",
    "nvidia-smi -q | grep -A 3 -w Fabric",
    *("lsmod | grep -E 'mlx5_ib|ib_umad'", START),
)
_OTHER = warn(
    "other-errors",
    _HEADLINE,
    "The fabric manager logs errors since it was started: exchange between GPUs may be slow or fail.",
    "Look at them in its log, with what came before.",
    *(LOOK, "nvidia-smi -q | grep -A 3 -w Fabric"),
)


@check(
    "KRN-016",
    title="The fabric manager logs no errors",
    causes=[*_BY_KEY.values(), _ELSEWHERE, _OTHER],
    about="The fabric manager sets up NVSwitches and NVLinks. Its own log has the reason if it does not"
    " start, and later errors.",
    sources=["NVIDIA fabric manager user guide; NVIDIA/gpu-operator#544, #610; NVIDIA/nccl#1488"],
    follows=(*NO_DRIVER, "PCI-004", "DRV-002", "KRN-008"),
)
def fabric_manager_log(view: SnapshotView) -> Verdicts:
    mentioned, others = [], []
    for event in need(kernel_facts(view).fabric_manager_log, "the fabric manager's log"):
        matches = (
            (row, match)
            for row in fabric_manager_words()
            if (match := re.search(row.pattern, event.text, re.IGNORECASE))
        )
        row, match = next(matches, (None, None))
        evidence = [_evidence(view, event)]
        if row is None or match is None:
            others += evidence
        elif _NONE_HERE in event.text and _gpus_wait(view):
            yield _ELSEWHERE.found(evidence=evidence)
        elif row.severity == "info":
            mentioned.append(row.message.format(**match.groupdict()))
        else:
            params: dict[str, Any] = match.groupdict()
            commands = _commands(view, row.action)
            sxid = sxids().get(int(params["sxid"])) if row.action == "sxid" else None
            advice = Remedy(sxid.remedy, commands) if sxid else None
            cause = _BY_KEY[row.cause]
            yield cause.found(evidence=evidence, commands=commands, advice=advice, **params)
    if others:
        yield _OTHER.found(evidence=others[-3:])
    yield Passed("; ".join(dict.fromkeys(mentioned)) or "none since it was started")


def _commands(view: SnapshotView, action: str) -> list[str]:
    if action == "install":
        return [*install_fabric_manager(view), START]
    return {
        "reset-all": [REPORT, "sudo nvidia-smi --gpu-reset", START],
        "off": [BRIDGES, REPORT, "sudo poweroff"],
        "reboot": [REPORT, REBOOT],
        "sxid": [REPORT, REBOOT],
    }.get(action, [LOOK])


def _evidence(view: SnapshotView, event: FabricManagerEvent) -> Evidence:
    times = f"{event.count} times, last: " if event.count > 1 else ""
    return view.evidence("machine.kernel.fabric_manager_log", f"{times}{event.text}")


def _gpus_wait(view: SnapshotView) -> bool:
    try:
        states = [(known(gpu.fabric_state) or "").strip().lower() for gpu in view.gpus]
    except CannotJudge:
        return False
    return any(state in _WAITING for state in states)

"""The check on the fabric manager's own log."""

from __future__ import annotations

import re
from typing import Any

from ...data.kernel import FabricManagerWords, fabric_manager_words, sxids
from ...facts.kernel import FabricManagerEvent
from ..driver_state import NO_DRIVER, REBOOT, REPORT, install_fabric_manager
from ..nvidia_devices import kernel_facts
from ..on_the_bus import BRIDGES
from ..reading import CannotJudge, SnapshotView, known, need
from ..verdicts import (
    Cause,
    Evidence,
    Finding,
    Passed,
    Remedy,
    Verdicts,
    check,
    fail,
    warn,
)

START = "sudo systemctl restart nvidia-fabricmanager"
LOOK = "sudo tail -n 50 /var/log/fabricmanager.log"
_WAITING = ("not started", "in progress")
_NONE_HERE = "NV_WARN_NOTHING_TO_DO"
_HEADLINE = "the fabric manager reports errors"

_BY_WORDS = {
    words: Cause(
        words.cause,
        "fail" if words.severity == "fail" else "warn",
        headline=_HEADLINE,
        sentence=f"{words.message}.",
        remedy=words.remedy,
    )
    for words in fabric_manager_words()
    if words.severity != "info"
}
_ELSEWHERE = fail(
    "switches-not-here",
    "the GPUs' fabric is not set up: no switches here",
    "The GPUs wait to be joined to an NVSwitch fabric (no CUDA program starts, error 802), and the"
    " fabric manager finds no NVSwitch on this machine: the switches are managed elsewhere, or their"
    " management device was not seen.",
    "In a virtual machine have the partition of these GPUs activated where the switches are (the"
    " host, or its service virtual machine); on a rack with switch trays have its controller set up"
    " the fabric; on HGX B200 and later load mlx5_ib and ib_umad and start the fabric manager again.",
    "nvidia-smi -q | grep -A 3 -w Fabric",
    "lsmod | grep -E 'mlx5_ib|ib_umad'",
    START,
)
_OTHER = warn(
    "other-errors",
    _HEADLINE,
    "The fabric manager logs errors since it was started: exchange between GPUs may be slow or"
    " fail.",
    "Look at them in its log, with what came before.",
    LOOK,
    "nvidia-smi -q | grep -A 3 -w Fabric",
)


@check(
    "KRN-016",
    title="The fabric manager logs no errors",
    causes=[*_BY_WORDS.values(), _ELSEWHERE, _OTHER],
    about="The fabric manager, which sets up NVSwitches and NVLinks, writes into its own log why it does"
    " not start (another version than the driver's, a missing NVSwitch) and what goes wrong later: errors"
    " of switches, links that fail, unknown GPUs. Judged by a table of its messages, over the errors since"
    " it was last started; errors that are not in the table are a warning.",
    sources=["NVIDIA fabric manager user guide; NVIDIA/gpu-operator#544, #610"],
    follows=(*NO_DRIVER, "PCI-004", "DRV-002", "KRN-008"),
)
def fabric_manager_log(view: SnapshotView) -> Verdicts:
    events = need(kernel_facts(view).fabric_manager_log, "the fabric manager's log")
    mentioned, others = [], []
    for event in events:
        words, match = _words_of(event)
        if words is None or match is None:
            others.append(event)
        elif _NONE_HERE in event.text and _gpus_wait(view):
            yield _ELSEWHERE.found(evidence=[_evidence(view, event)])
        elif words.severity == "info":
            mentioned.append(words.message.format(**match.groupdict()))
        else:
            yield _found(view, event, words, match)
    if others:
        yield _OTHER.found(evidence=[_evidence(view, event) for event in others[-3:]])
    yield Passed("; ".join(dict.fromkeys(mentioned)) or "none since it was started")


def _words_of(
    event: FabricManagerEvent,
) -> tuple[FabricManagerWords | None, re.Match[str] | None]:
    for words in fabric_manager_words():
        if match := re.search(words.pattern, event.text, re.IGNORECASE):
            return words, match
    return None, None


def _evidence(view: SnapshotView, event: FabricManagerEvent) -> Evidence:
    times = f"{event.count} times, last: " if event.count > 1 else ""
    return view.evidence("machine.kernel.fabric_manager_log", f"{times}{event.text}")


def _gpus_wait(view: SnapshotView) -> bool:
    try:
        states = [(known(gpu.fabric_state) or "").strip().lower() for gpu in view.gpus]
    except CannotJudge:
        return False
    return any(state in _WAITING for state in states)


def _found(
    view: SnapshotView, event: FabricManagerEvent, words: FabricManagerWords, match: re.Match[str]
) -> Finding:
    by_action = {
        "install": [*install_fabric_manager(view), START],
        "reset-all": [REPORT, "sudo nvidia-smi --gpu-reset", START],
        "off": [BRIDGES, REPORT, "sudo poweroff"],
        "reboot": [REPORT, REBOOT],
        "sxid": [REPORT, REBOOT],
    }
    commands, advice = by_action.get(words.action, [LOOK]), None
    params: dict[str, Any] = match.groupdict()
    if words.action == "sxid" and (sxid := sxids().get(int(params["sxid"]))):
        advice = Remedy(sxid.remedy, commands)
    return _BY_WORDS[words].found(
        evidence=[_evidence(view, event)], commands=commands, advice=advice, **params
    )

"""Checks on a document of nvidia-smi that somebody sent."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..registry import check

_SENT = Remedy(
    "Have it written into a file and sent whole.", ["nvidia-smi -q > nvidia-smi.txt 2>&1"]
)
_PRINTED = Remedy(
    "See whether it ends there again, and whether another program bears its name.",
    [
        "nvidia-smi -q -x | tail -3",
        "type -a nvidia-smi",
        "sudo dmesg | grep -iE 'nvrm|xid|nvidia-smi'",
    ],
)


@check(
    "DRV-011",
    title="nvidia-smi's document is whole",
    problem="nvidia-smi's document was cut",
    about="A document that somebody copied, or that nvidia-smi itself did not bring to its end, may end in"
    " the midst of a GPU: what comes after is not known, and nothing is said of it, nor of further GPUs."
    " Judged by its end, which XML has to close, and in which text has a GPU's processes.",
    sources=("nvidia-smi(1)",),
)
def document_is_whole(view: SnapshotView) -> Iterator[Verdict]:
    smi = facts_of(view.machine.nvidia_smi, "nvidia-smi")
    if known(smi.form) not in ("xml", "text"):
        raise Skip("nvidia-smi's document: there is none")
    if not smi.cut:
        yield Passed("it is whole")
        return
    seen, attached = len(known(smi.gpus) or []), known(smi.gpu_count)
    of = f" of {attached}" if attached and attached > seen else ""
    yield Finding(
        "warn",
        f"nvidia-smi's document ends in the midst of GPU {seen}{of}: nothing is known of what comes after.",
        evidence=[view.evidence("machine.nvidia_smi.cut", f"after {seen} GPUs{of}")],
        remedy=_SENT if view.machine.origin == "nvidia-smi" else _PRINTED,
    )

"""What the checks on single GPUs share: judging one by one, lost GPUs, resets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import msgspec

from ..facts.base import Unavailable, known
from ..facts.evidence import Evidence
from ..facts.gpu import Gpu
from ..facts.missing import CannotJudge, Skip
from ..facts.recording import once
from ..facts.view import SnapshotView, fact, need, show
from ..findings.causes import Cause, Param
from ..findings.model import Finding, Passed, Remedy, Unjudged, Verdict, unjudged
from ..findings.several import for_all
from ..findings.shell import word
from ..findings.subjects import about_gpu
from .driver_state import HOLDERS, NO_GPUS, REBOOT, REPORT
from .verdicts import Verdicts, check

# What every driver knows of a working GPU: an error there is about the GPU, elsewhere about that fact.
VITAL = ("uuid", "name", "memory_total_mib")
# nvmlReturn_t
CORRUPTED_INFOROM, LOST, RESET_REQUIRED = 14, 15, 16
_OLDER = re.compile(r"\(NVML error (\d{1,5})\)")  # collectors before 0.3 wrote the code there alone

# Remedies of many causes; "{gpu}" and "{minor}" in their commands are filled in by `found`.
RESET = (
    "Stop everything that uses the GPU, keep the driver's report (a reset erases it), then reset the GPU;"
    " reboot if the reset is refused."
)
RESETS = (
    "sudo fuser -v /dev/nvidia{minor}",
    REPORT,
    "sudo nvidia-smi --gpu-reset -i {gpu}",
)
REPLACE = "Take the GPU out of service, run the vendor's field diagnostic and ask for a replacement (RMA)."

_OF_THE_HOST = re.compile(r"\b(?:fans|RMA|[Rr]eseat|replacement|power supplies)\b")
_GUEST = (
    "This is a virtual machine: tell its provider, or whoever runs its host, and move to another one"
    " meanwhile. For the host:"
)


Judge = Callable[[SnapshotView, Gpu], Iterable[Verdict]]


def gpu_check(code: str, **causes: Any) -> Callable[[Judge], Judge]:
    """Register a judge of one GPU as a check on all of them. ``causes``: as of `check`."""

    def register(judge: Judge) -> Judge:
        @wraps(judge)
        def of_all(view: SnapshotView) -> Verdicts:
            return judge_gpus(view, lambda gpu: judge(view, gpu))

        check(code, follows=NO_GPUS, **causes)(of_all)
        return judge

    return register


def judge_gpus(view: SnapshotView, judge: Callable[[Gpu], Iterable[Verdict]]) -> Verdicts:
    """Judge each GPU that is not lost (GPU-001); equal verdicts become one."""
    lost = lost_gpus(view)

    def of_one(gpu: Gpu) -> Iterable[Verdict]:
        if id(gpu) in lost:
            raise Skip("the GPU is lost (GPU-001)")
        return judge(gpu)

    return together(each_gpu(view, of_one))


def each_gpu(view: SnapshotView, judge: Callable[[Gpu], Iterable[Verdict]]) -> Verdicts:
    """Judge each GPU: a missing fact leaves that GPU unjudged, and no other."""
    if not view.gpus:
        raise Skip("the driver reports no GPU")
    for gpu in view.gpus:
        try:
            yield from judge(gpu)
        except CannotJudge as why:
            yield unjudged(why, about_gpu(gpu))


@once
def lost_gpus(view: SnapshotView) -> frozenset[int]:
    """The ``id`` of each of the view's GPUs that is lost."""
    return frozenset(id(gpu) for gpu in view.gpus if is_lost(gpu))


def is_lost(gpu: Gpu) -> bool:
    """Whether it is gone, or a call to it did not come back, or the driver does not even know its name."""
    errors = errors_of(gpu)
    gone = known(gpu.stopped) is not None or LOST in errors.values()
    return gone or any(name in errors for name in VITAL)


def errors_of(gpu: Gpu) -> dict[str, int]:
    """{name of a fact: the nvmlReturn_t that the driver answered with instead}"""
    codes = zip(Gpu.__struct_fields__, map(error_code, msgspec.structs.astuple(gpu)), strict=True)
    return {name: code for name, code in codes if code is not None}


def error_code(one: object) -> int | None:
    """The nvmlReturn_t of a fact for which the driver answered with an error; None of any other."""
    if not isinstance(one, Unavailable) or one.unavailable not in ("error", "lost"):
        return None
    if one.unavailable == "lost":
        return LOST
    older = _OLDER.search(one.detail)
    return int(older[1]) if one.code is None and older else one.code


def _state(one: object) -> str:
    return one.unavailable if isinstance(one, Unavailable) else ""


def need_any(gpu: Gpu, fields: Iterable[str], what: str) -> None:
    """Raises CannotJudge if none of these facts is known."""
    facts = [getattr(gpu, name) for name in fields]
    if all(known(one) is None for one in facts):
        for one in facts:
            need(one, what)
        raise Skip(f"{what}: not known")


def together(verdicts: Iterable[Verdict]) -> Verdicts:
    """The verdicts; those with the same words for several GPUs are merged into one."""
    groups: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(_same(verdict), []).append(verdict)
    for same in groups.values():
        first = same[0]
        if isinstance(first, Unjudged):
            yield from same
        elif isinstance(first, Passed) or len(same) == 1:
            yield first
        else:
            findings = [one for one in same if isinstance(one, Finding)]
            evidence = {item.fact: item for one in findings for item in one.evidence}
            yield msgspec.structs.replace(
                first,
                subjects=[subject for one in findings for subject in one.subjects],
                evidence=list(evidence.values()),
                remedy=for_all([one.remedy for one in findings if one.remedy]),
            )


def _same(verdict: Verdict) -> tuple[str, ...]:
    if isinstance(verdict, Finding):
        return (verdict.level, verdict.cause.key, verdict.message)
    return ("", verdict.detail if isinstance(verdict, Passed) else verdict.reason)


def found(
    view: SnapshotView,
    cause: Cause,
    gpu: Gpu,
    fields: str,
    *,
    evidence: Iterable[Evidence] = (),
    advice: Remedy | None = None,
    **params: Param,
) -> Finding:
    """The cause, found on one GPU. fields: the names of the facts that it rests on.

    Facts that are not known are left out of the evidence, unless an error is why. The cause's commands
    may have "{gpu}", "{minor}" and numbers of ``params`` in them.
    """
    names = fields.split()
    shown = [
        name for name in names if _state(getattr(gpu, name)) in ("", "lost", "error")
    ] or names[:1]
    values = {"gpu": address_of(gpu), "minor": minor_of(gpu), **params}
    finding = cause.found(
        about_gpu(gpu),
        [*(_evidence(view, gpu, name) for name in shown), *evidence],
        commands=[command.format(**values) for command in cause.commands],
        advice=advice,
        **params,
    )
    remedy, guest = finding.remedy, fact(view.machine.host, "hypervisor") is not None
    if guest and remedy is not None and _OF_THE_HOST.search(remedy.text):
        text = f"{_GUEST} {remedy.text}"
        return msgspec.structs.replace(finding, remedy=Remedy(text, list(remedy.commands)))
    return finding


def _evidence(view: SnapshotView, gpu: Gpu, name: str) -> Evidence:
    value = getattr(gpu, name)
    if isinstance(value, Unavailable):
        return view.evidence(f"{gpu_path(view, gpu)}.{name}", show(value))
    return view.gpu_evidence(gpu, name)


def gpu_path(view: SnapshotView, gpu: Gpu) -> str:
    """The GPU's place in the Snapshot, for facts that it does not have."""
    for section in ("nvml", "nvidia_smi"):
        for place, candidate in enumerate(fact(getattr(view.machine, section), "gpus") or []):
            if candidate.pci_address == gpu.pci_address:
                return f"machine.{section}.gpus[{place}]"
    return "machine.nvml.gpus"


def address_of(gpu: Gpu) -> str:
    address, index = known(gpu.pci_address), known(gpu.index)
    return word(address or (str(index) if index is not None else "0"))


def minor_of(gpu: Gpu) -> str:
    number = known(gpu.minor_number)
    return "*" if number is None else str(number)


def reset(gpu: Gpu, reason: str) -> Remedy:
    commands = [one.format(gpu=address_of(gpu), minor=minor_of(gpu)) for one in RESETS]
    return Remedy(f"{reason} {RESET}", commands)


def recovery(action: str, address: str | None) -> Remedy:
    name = action.strip().lower()
    if name == "drain p2p":
        return Remedy(
            "The driver asks to stop peer-to-peer traffic with the GPU, not for a reset: let the jobs that"
            " use it end, start none, and check again what the driver asks for.",
            [REPORT, HOLDERS, "nvidia-smi -q | grep -i 'recovery action'"],
        )
    reset = f"sudo nvidia-smi --gpu-reset -i {word(address)}" if address else REBOOT
    last = reset if "reset" in name else REBOOT
    text = f"The driver asks for: {action}. Stop everything that uses the GPU before that."
    return Remedy(text, [HOLDERS, REPORT, last])


def plural(count: int, noun: str) -> str:
    """ "1 GPU", "2 GPUs" """
    return f"{count} {noun}{'' if count == 1 else 's'}"

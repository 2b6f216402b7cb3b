"""What the checks on single GPUs share: judging one by one, lost GPUs, resets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import msgspec

from ..facts.base import Unavailable, known
from ..facts.gpu import Gpu
from ..facts.missing import CannotJudge, Skip
from ..facts.view import SnapshotView, show
from ..findings.model import Finding, Passed, Remedy, Unjudged, Verdict, unjudged
from ..findings.shell import word
from ..findings.subjects import about_gpu
from .driver_state import HOLDERS, REPORT

# Facts that every living GPU has on every driver: an error on one of these is the GPU's, not the fact's.
VITAL = ("uuid", "name", "memory_total_mib", "pci_address", "temperature_c")
# The errors by which NVML and nvidia-smi say that the device itself is in trouble.
_TROUBLE = ("unknown error", "is lost", "fallen off", "requires reset", "reset required", "err!")


def judge_gpus(view: SnapshotView, judge: Callable[[Gpu], Iterable[Verdict]]) -> Iterator[Verdict]:
    """Judge GPU by GPU; one that is lost is left to GPU-001, and equal verdicts become one."""

    lost = lost_gpus(view)

    def of_the_living(gpu: Gpu) -> Iterable[Verdict]:
        if id(gpu) in lost:
            raise Skip("the GPU is lost (GPU-001)")
        return judge(gpu)

    return together(each_gpu(view, of_the_living))


def each_gpu(view: SnapshotView, judge: Callable[[Gpu], Iterable[Verdict]]) -> Iterator[Verdict]:
    """Judge GPU by GPU: a fact that one GPU lacks leaves that GPU unjudged, and no other."""
    if not view.gpus:
        raise Skip("the driver reports no GPU")
    for gpu in view.gpus:
        try:
            yield from judge(gpu)
        except CannotJudge as why:
            yield unjudged(why, about_gpu(gpu))


@lru_cache(maxsize=1)  # for all checks on the same Snapshot
def lost_gpus(view: SnapshotView) -> frozenset[int]:
    """The ``id`` of each of the view's GPUs that is lost."""
    return frozenset(id(gpu) for gpu in view.gpus if is_lost(gpu))


def is_lost(gpu: Gpu) -> bool:
    return any(fact.unavailable == "lost" or name in VITAL for name, fact in troubled(gpu))


def troubled(gpu: Gpu) -> list[tuple[str, Unavailable]]:
    """The facts for which the driver gave an error that is about the device, with that error."""
    return [(n, fact) for n, fact in _errors(gpu) if fact.unavailable == "lost" or _trouble(fact)]


def _errors(gpu: Gpu) -> list[tuple[str, Unavailable]]:
    """The facts that an error, or the GPU's loss, keeps from being known."""
    return [
        (name, fact)
        for name, fact in zip(Gpu.__struct_fields__, msgspec.structs.astuple(gpu), strict=True)
        if type(fact) is Unavailable and fact.unavailable in ("lost", "error")
    ]


def _trouble(fact: Unavailable) -> bool:
    return fact.unavailable == "error" and any(word in fact.detail.lower() for word in _TROUBLE)


def together(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    """The verdicts, those that say the same of several GPUs made one: subjects and evidence joined."""
    groups: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(_saying(verdict), []).append(verdict)
    for same in groups.values():
        first = same[0]
        if len(same) == 1 or isinstance(first, Unjudged):
            yield from same
        elif isinstance(first, Passed):
            yield Passed(first.detail)
        else:
            evidence = [item for one in same if isinstance(one, Finding) for item in one.evidence]
            yield msgspec.structs.replace(
                first,
                subjects=[
                    about for one in same if isinstance(one, Finding) for about in one.subjects
                ],
                evidence=list({item.fact: item for item in evidence}.values()),
            )


def _saying(verdict: Verdict) -> tuple[str, ...]:
    if isinstance(verdict, Finding):
        return (verdict.level, verdict.message)
    return ("",) + ((verdict.detail,) if isinstance(verdict, Passed) else (verdict.reason,))


def finding(
    view: SnapshotView,
    level: str,
    gpu: Gpu,
    message: str,
    fields: str,
    remedy: Remedy,
    headline: str = "",
) -> Finding:
    """A Finding on one GPU; ``fields``: the names of the facts that it rests on, apart by blanks.

    Of those, the ones that are not known are left out of the evidence.
    """
    return Finding(
        "fail" if level == "fail" else "warn",
        message,
        about_gpu(gpu),
        [
            view.gpu_evidence(gpu, field)
            for field in fields.split()
            if known(getattr(gpu, field)) is not None
        ],
        remedy,
        headline,
    )


def errors_of(gpu: Gpu, words: tuple[str, ...]) -> list[str]:
    """The names of the facts for which the driver gave one of these errors."""
    return [
        name
        for name, fact in _errors(gpu)
        if fact.unavailable == "error" and any(word in fact.detail.lower() for word in words)
    ]


def about_errors(
    view: SnapshotView, gpu: Gpu, level: str, message: str, names: list[str], remedy: Remedy
) -> Finding:
    """A Finding whose evidence may be facts that are errors."""
    path = gpu_path(view, gpu)
    return Finding(
        "fail" if level == "fail" else "warn",
        message,
        about_gpu(gpu),
        [view.evidence(f"{path}.{name}", show(getattr(gpu, name))) for name in names[:3]],
        remedy,
    )


def gpu_path(view: SnapshotView, gpu: Gpu) -> str:
    """Where the GPU stands in the Snapshot, for facts that it does not have."""
    for section in ("nvml", "nvidia_smi"):
        probe = getattr(view.machine, section)
        gpus = None if probe is None or probe.facts is None else known(probe.facts.gpus)
        for place, candidate in enumerate(gpus or []):
            if candidate.pci_address == gpu.pci_address:
                return f"machine.{section}.gpus[{place}]"
    return "machine.nvml.gpus"


def address_of(gpu: Gpu) -> str:
    """What `nvidia-smi -i` takes for this GPU, as a word of a command: its PCI address, else its index."""
    address, index = known(gpu.pci_address), known(gpu.index)
    return word(address or (str(index) if index is not None else "0"))


def reset(gpu: Gpu, reason: str) -> Remedy:
    """How to reset one GPU; ``reason`` is a sentence."""
    return Remedy(
        f"{reason} Stop everything that uses the GPU, keep the driver's report, which a reset wipes out, then"
        " reset the GPU; reboot where the reset is refused.",
        [
            f"sudo fuser -v /dev/nvidia{_minor(gpu)}",
            REPORT,
            f"sudo nvidia-smi --gpu-reset -i {address_of(gpu)}",
        ],
    )


# The recovery action (lower case) that asks for no reset.
DRAIN_P2P = "drain p2p"


def drain_p2p() -> Remedy:
    return Remedy(
        "The driver asks that peer-to-peer traffic with the GPU be stopped, not for a reset: let the jobs"
        " that use it end, start none, and see what the driver asks for then.",
        [REPORT, HOLDERS, "nvidia-smi -q | grep -i 'recovery action'"],
    )


def replace(gpu: Gpu, reason: str) -> Remedy:
    """Take the GPU out of service; ``reason`` is a sentence."""
    return Remedy(
        f"{reason} Take the GPU out of service, run the vendor's field diagnostic and ask for a"
        " replacement (RMA).",
        [f"nvidia-smi -q -i {address_of(gpu)}", REPORT],
    )


def _minor(gpu: Gpu) -> str:
    number = known(gpu.minor_number)
    return "*" if number is None else str(number)

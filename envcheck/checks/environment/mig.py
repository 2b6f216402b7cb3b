"""What CUDA makes of several MIG instances: it shows a process one of them, and nothing else."""

from __future__ import annotations

from ...facts.base import Unavailable, known
from ...facts.gpu import Gpu
from ...facts.missing import CannotJudge
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView
from ...findings.commands import fill_in
from ...findings.model import Finding, Remedy
from ...findings.shell import word
from ...findings.subjects import about
from ..target import framework_facts
from ..visible import VARIABLE
from .common import told

_PROGRAM = "python3 " + fill_in("SCRIPT", "your program")
_TEXT = (
    "A process gets one MIG instance, whatever the framework: start one process for each, and name its"
    " instance. They cannot train one model together; for that, turn MIG off."
)


def one_of_several(view: SnapshotView) -> Finding | None:
    """Where CUDA_VISIBLE_DEVICES names several MIG instances, or leaves it to CUDA to take one."""
    gpus = _gpus(view)
    uuids = [known(one.uuid) or "" for gpu in gpus for one in known(gpu.mig_instances) or []]
    probe = view.target.environment
    value = None if probe is None or probe.facts is None else probe.facts.variables.get(VARIABLE)
    if value is not None:
        named = [entry.strip() for entry in value.split(",") if entry.strip().startswith("MIG-")]
        return _several_named(view, named) if len(named) > 1 else None
    whole = [gpu for gpu in gpus if not known(gpu.mig_enabled)]
    if not uuids or len(uuids) + len(whole) < 2 or not _shows_one(view):
        return None
    return _none_named(view, uuids, len(whole))


def _gpus(view: SnapshotView) -> list[Gpu]:
    try:
        return view.seen_gpus
    except CannotJudge:
        return []


def _shows_one(view: SnapshotView) -> bool:
    """Whether a framework was seen to get one device, or to fail over their number."""
    frameworks = framework_facts(view)
    return any(len(known(one.gpus) or []) == 1 or _failed(one) for one in frameworks)


def _failed(framework: Framework) -> bool:
    return (
        framework.imported
        and isinstance(framework.gpus, Unavailable)
        and framework.gpus.unavailable == "error"
    )


def _several_named(view: SnapshotView, named: list[str]) -> Finding:
    return Finding(
        "warn",
        f"{VARIABLE} names {len(named)} MIG instances, and CUDA takes one of them, {named[0]}.",
        subjects=about("variable", VARIABLE),
        evidence=[told(view, VARIABLE)],
        remedy=Remedy(_TEXT, _one_each(named)),
    )


def _none_named(view: SnapshotView, uuids: list[str], whole: int) -> Finding:
    failed = [one for one in framework_facts(view) if _failed(one)]
    others = f" and {whole} GPU{'' if whole == 1 else 's'} without MIG" if whole else ""
    effect = (
        f", over which {FRAMEWORKS[failed[0].name]} fails"
        if failed
        else ": every process that names none gets the same one"
    )
    count = len(uuids)
    return Finding(
        "fail" if failed else "warn",
        f"There are {count} MIG instance{'' if count == 1 else 's'}{others}, {VARIABLE} is not set, and CUDA"
        f" shows a process one MIG instance alone{effect}.",
        subjects=about("variable", VARIABLE),
        evidence=[
            view.evidence("seen.nvml.gpus", f"{count} MIG instances"),
            *[
                view.evidence(f"target.{one.name}.gpus")
                for one in framework_facts(view)
                if one.imported
            ][:3],
        ],
        remedy=Remedy(_TEXT, _one_each(uuids)),
    )


def _one_each(uuids: list[str]) -> list[str]:
    return ["nvidia-smi -L", *[f"{VARIABLE}={word(uuid)} {_PROGRAM}" for uuid in uuids[:2]]]

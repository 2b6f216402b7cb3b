"""What CUDA does with several MIG instances: it shows a process one of them, and nothing else."""

from __future__ import annotations

from ..declared import declared_causes
from ..reading import CannotJudge, Framework, SnapshotView, Unavailable, known
from ..target import framework_facts, title_of
from ..verdicts import Cause, Finding, about, fill_in, word
from ..visible import VARIABLE, setting
from .common import setting_evidence

CAUSE = declared_causes(__name__)

_PROGRAM = "python3 " + fill_in("SCRIPT", "your program")
SEVERAL_NAMED = CAUSE["several-mig-instances-named"]
NONE_NAMED = CAUSE["no-mig-instance-named"]
FAILS = CAUSE["framework-fails-over-mig"]


def one_of_several(view: SnapshotView) -> Finding | None:
    """The finding if CUDA_VISIBLE_DEVICES names several MIG instances, or leaves it to CUDA to take one."""
    value = setting(view)
    if value is not None:
        named = [entry.strip() for entry in value.split(",") if entry.strip().startswith("MIG-")]
        return _found(view, SEVERAL_NAMED, named, first=named[0]) if len(named) > 1 else None
    try:
        gpus = view.seen_gpus
    except CannotJudge:
        return None
    uuids = [known(one.uuid) or "" for gpu in gpus for one in known(gpu.mig_instances) or []]
    whole = sum(not known(gpu.mig_enabled) for gpu in gpus)
    frameworks = framework_facts(view)
    failed = [one for one in frameworks if _failed(one)]
    shows_one = failed or any(len(known(one.gpus) or []) == 1 for one in frameworks)
    if not uuids or len(uuids) + whole < 2 or not shows_one:
        return None
    others = f" and {whole} GPU{'' if whole == 1 else 's'} without MIG" if whole else ""
    if failed:
        return _found(view, FAILS, uuids, others=others, framework=title_of(failed[0]))
    return _found(view, NONE_NAMED, uuids, others=others)


def _failed(framework: Framework) -> bool:
    gpus = framework.gpus
    return framework.imported and isinstance(gpus, Unavailable) and gpus.unavailable == "error"


def _found(view: SnapshotView, cause: Cause, uuids: list[str], **params: str) -> Finding:
    imported = [one.name for one in framework_facts(view) if one.imported][:3]
    evidence = [view.evidence("seen.nvml.gpus", f"{len(uuids)} MIG instances")]
    evidence += [view.evidence(f"target.{name}.gpus") for name in imported]
    start = [f"{VARIABLE}={word(uuid)} {_PROGRAM}" for uuid in uuids[:2]]
    return cause.found(
        about("variable", VARIABLE),
        [setting_evidence(view, VARIABLE)] if cause is SEVERAL_NAMED else evidence,
        commands=["nvidia-smi -L", *start],
        advice=None,
        count=len(uuids),
        **params,
    )

"""The check on which GPUs a framework sees: the last link of the chain."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.missing import Skip
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..driver_state import NO_GPUS_THERE
from ..registry import check
from ..system_commands import on_system
from ..target import each_framework, need_gpus, python
from ..visible import MIG_INSTANCE, VARIABLE, VisibleDevices, setting, visible
from .causes import NO_GPU, explain
from .jax_causes import outdated

_BEFORE = (*NO_GPUS_THERE, "DRV-004", "DRV-007", "FRM-001", "FRM-007")


@check(
    "FRM-002",
    title="The framework sees every GPU that CUDA sees",
    problem="the framework does not see every GPU",
    about=(
        "The last link of the chain from the PCI bus to training. A framework that finds no GPU, or "
        "fewer than CUDA counts, says so in its log at most, and trains on the CPU, ten to a hundred "
        "times slower. A failure, with the reason that stands in its log: a library it could not load, "
        "a GPU it left out, an error of cuInit. What CUDA_VISIBLE_DEVICES leaves out is not counted."
    ),
    sources=(
        "tensorflow#60854, #63362, #65842, #85311, #96707",
        "NVIDIA/tensorflow#110",
    ),
    follows=(
        *_BEFORE,
        "PKG-013",
        "PKG-017",
        "LIB-005",
        "LIB-008",
        "FRM-003",
        "FRM-004",
        "FRM-005",
        "ENV-001",
    ),
)
def sees_every_gpu(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    cuda = view.seen.cuda
    if cuda is not None and cuda.facts is not None and known(cuda.facts.device_count) == 0:
        raise Skip("CUDA itself sees no GPU")

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        if known(facts.cuda_build) is False:
            raise Skip(f"{title} was built without CUDA")
        seen = len(need(facts.gpus, f"the GPUs that {title} sees"))
        choice = visible(view)
        if not choice.chosen:
            raise Skip(f"{VARIABLE} leaves no GPU visible")
        instances = any(one.name == MIG_INSTANCE for one in choice.chosen)
        expected = len(choice.chosen) if choice.certain and not instances else 1
        if seen >= expected:
            yield Passed(f"{title} sees {seen} GPU{'' if seen == 1 else 's'}{_of(choice)}")
            return
        built = known(facts.built_cuda) or ""
        update = on_system(view, "update-driver")
        found = outdated(view, facts) or explain(
            NO_GPU, facts.log, f"{python(view)} -m pip", built, update
        )
        why = found.says if found else "its log gives no reason"
        yield Finding(
            "fail",
            f"{title} sees {seen or 'none'} of the {expected} GPU{'' if expected == 1 else 's'} that "
            f"CUDA sees, so it trains on {'fewer' if seen else 'the CPU'}: {why}.",
            subjects=about("framework", title),
            evidence=[
                view.evidence(f"target.{facts.name}.gpus", _names(facts)),
                *_counts(view),
                *([_log(facts, found.words)] if found else []),
            ],
            remedy=found.remedy if found else _look(view, facts),
            headline=f"{title} sees {seen or 'none'} of {expected} GPU{'' if expected == 1 else 's'}",
        )

    yield from each_framework(view, judge)


def _of(choice: VisibleDevices) -> str:
    return "" if choice.certain else f" (which ones {VARIABLE} means could not be told)"


def _names(facts: Framework) -> str:
    return ", ".join(gpu.name for gpu in known(facts.gpus) or []) or "none"


def _counts(view: SnapshotView) -> list[Evidence]:
    cuda = view.seen.cuda
    if cuda is not None and cuda.facts is not None and known(cuda.facts.device_count) is not None:
        counted = [view.evidence("seen.cuda.device_count")]
    else:
        counted = [view.evidence("seen.nvml.gpu_count")]
    value = setting(view)
    if value is not None:
        counted.append(view.evidence("target.environment.variables", f"{VARIABLE}={value}"))
    return counted


def _log(facts: Framework, line: str) -> Evidence:
    return Evidence(f"target.{facts.name}.log", line, f"{FRAMEWORKS[facts.name]}'s log")


def _look(view: SnapshotView, facts: Framework) -> Remedy:
    calls = {
        "tensorflow": 'import tensorflow as tf; print(tf.config.list_physical_devices("GPU"))',
        "torch": "import torch; torch.cuda.init()",
        "jax": 'import jax; print(jax.devices("gpu"))',
    }
    return Remedy(
        "Ask it again with everything it has to say.",
        [f"TF_CPP_MIN_LOG_LEVEL=0 {python(view)} -c '{calls[facts.name]}'"],
    )

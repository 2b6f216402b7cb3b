"""Checks on environment variables that keep a GPU from work, or make it slow."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from packaging.requirements import Requirement

from ...facts.base import ProgramSetting
from ..declared import declared_rows
from ..reading import NotKnown, SnapshotView, fact, known
from ..registry import Judge
from ..settings import ENVIRONMENT, wrong_here
from ..target import (
    environment,
    framework,
    framework_facts,
    installed_if_known,
    need_gpus,
    tensorflows,
    title_of,
    variables,
    version_of,
)
from ..verdicts import Passed, Verdicts, check
from ..visible import visible
from .common import major

_VARIABLES = "seen.environment.variables"
# Settings that are choices: they change how a framework computes or holds memory.
_CHOICES = ("TF_", "XLA_", "TORCH_ALLOW", "CUBLAS_WORKSPACE", "CUDA_MODULE")


def is_true(value: str | None) -> bool:
    return (value or "").strip().lower() in ("1", "true", "yes", "on")


def _judge(code: str) -> Judge:
    def judge(view: SnapshotView) -> Verdicts:
        given = [
            ProgramSetting(name=name, value=value, source=ENVIRONMENT)
            for name, value in variables(view).items()
            if value.strip()
        ]
        found = [
            finding
            for row in declared_rows(__name__, code)
            for one in given
            for finding in wrong_here(view, [row], _VARIABLES, [one], _Conditions(view, one))
        ]
        if found and code == "ENV-017":
            need_gpus(view)
        yield from found
        if not found:
            yield Passed("; ".join(_choices(view)) if code == "ENV-010" else "nothing is set so")

    return judge


class _Conditions(dict[str, Callable[[], Any]]):
    """Of one variable. A word that is none of these names packages, of which one is installed."""

    def __init__(self, view: SnapshotView, one: ProgramSetting) -> None:
        self._view = view
        absent = one.name in (fact(environment(view), "absent_directories") or [])
        writable = fact(environment(view), "cuda_cache_writable")
        super().__init__(
            {
                "sm80": lambda: {"gpu": gpu} if (gpu := _with_tf32(view)) else None,
                "other-cuda": lambda: _other_cuda(view, one.value.strip()),
                "unwritable": lambda: writable is False,
                "absent": lambda: absent,
                "misspelt": lambda: _misspelt(view, one.value),
                "unread": lambda: not _reads_amp(view),
            }
        )

    def __missing__(self, packages: str) -> Callable[[], bool]:
        wanted = [Requirement(one) for one in packages.split("|")]
        return lambda: any(_installed(self._view, one) for one in wanted)


def _other_cuda(view: SnapshotView, value: str) -> dict[str, str]:
    torch = framework(view, "torch")
    cuda = (known(torch.built_cuda) if torch else "") or ""
    return {"cuda": cuda} if cuda and cuda.replace(".", "") != value else {}


def _misspelt(view: SnapshotView, value: str) -> dict[str, str]:
    near = fact(environment(view), "misspelt") or {}
    gone = next((one for one in value.split(":") if one in near), "")
    right = value.replace(gone, near[gone]) if gone else ""
    return {"gone": gone, "meant": near[gone], "right": right} if gone else {}


def _installed(view: SnapshotView, wanted: Requirement) -> bool:
    version = version_of(installed_if_known(view).get(wanted.name))
    return version is not None and wanted.specifier.contains(version, prereleases=True)


def _reads_amp(view: SnapshotView) -> bool:
    """Whether TensorFlow reads its variables for mixed precision, or it is not known which one is here."""
    facts = framework(view, "tensorflow")
    if facts is None or not facts.imported:
        return True
    month = variables(view).get("NVIDIA_TENSORFLOW_VERSION", "")[:5]
    if re.match(r"\d\d\.\d\d", month):
        second = (known(facts.version) or "").startswith("2.")
        return "19.03" <= month < ("21.10" if second else "99")
    versions = [known(facts.version) or ""]
    versions += [one.version for one in tensorflows(installed_if_known(view))]
    return any("+nv" in one for one in versions)


def _with_tf32(view: SnapshotView) -> str:
    """The visible GPUs that have TF32, in words."""
    need_gpus(view)
    chosen = visible(view).chosen
    capable = [one.name or one.capability for one in chosen if major(one.capability) >= 8]
    if not capable and not all(major(one.capability) for one in chosen):
        raise NotKnown("whether the visible GPUs have TF32")
    return capable[0] + (" and others" if len(capable) > 1 else "") if capable else ""


def _choices(view: SnapshotView) -> list[str]:
    values = variables(view)
    shown = [f"{name}={value}" for name, value in values.items() if name.startswith(_CHOICES)]
    for one in framework_facts(view):
        given = ", ".join(f"{name} {value}" for name, value in one.settings.items() if value)
        shown += [f"{title_of(one)}: {given}"] if one.settings else []
    return shown or ["nothing is set"]


for _code in ("ENV-004", "ENV-005", "ENV-010", "ENV-017"):
    check(_code)(_judge(_code))

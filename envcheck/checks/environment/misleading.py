"""Checks on environment variables that keep a GPU from work, or make it slow."""

from __future__ import annotations

import re

from packaging.requirements import Requirement

from ...data.misleading_variables import MisleadingVariable, misleading_variables
from ..reading import NotKnown, SnapshotView, fact, known
from ..registry import Judge
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
from ..verdicts import Cause, Finding, Passed, Verdicts, check
from ..verdicts import word as shell_word
from ..visible import visible
from .common import CUDA_GUIDE, major, misset

_ROWS = misleading_variables()
_CHECKS = {
    "ENV-004": (
        "TF32 is not switched off",
        "On GPUs from Ampere on, products and convolutions of 32-bit numbers run on Tensor Cores in TF32,"
        " many times faster; NVIDIA_TF32_OVERRIDE=0 switches that off in every NVIDIA library of a process.",
    ),
    "ENV-005": (
        "No variable slows the GPU down",
        "Variables that are for debugging make the CPU wait for every kernel (CUDA_LAUNCH_BLOCKING), or"
        " switch caches off: the driver's of compiled kernels, PyTorch's of memory.",
    ),
    "ENV-010": (
        "Nothing in the environment switches Tensor Cores off",
        "NVIDIA's TensorFlow reads TF_DISABLE_CUBLAS_TENSOR_OP_MATH and similar variables, which keep"
        " Tensor Cores from being used, and others that ask for mixed precision, which other builds ignore."
        " Settings that are choices are shown as a detail.",
    ),
    "ENV-017": (
        "No variable keeps programs from the GPU",
        "Some variables tell a library to compute on the CPU, to simulate a GPU, or to look for CUDA where"
        " it is not. They were set for one program, and stay in a start file for all.",
    ),
}
# Settings that are choices: they change how a framework computes or holds memory.
_CHOICES = ("TF_", "XLA_", "TORCH_ALLOW", "CUBLAS_WORKSPACE", "CUDA_MODULE")


def is_true(value: str | None) -> bool:
    return (value or "").strip().lower() in ("1", "true", "yes", "on")


def _cause(row: MisleadingVariable) -> Cause:
    return Cause(row.key, row.severity, row.headline, row.sentence, row.remedy, source=row.source)


_CAUSES = {row.key: _cause(row) for row in _ROWS}


def _judge(code: str) -> Judge:
    def judge(view: SnapshotView) -> Verdicts:
        values = variables(view)
        found = []
        for row in _ROWS:
            for name in row.variable if row.check == code else ():
                value = values.get(name, "").strip()
                finding = _found(view, row, name) if row.value.fullmatch(value) and value else None
                found += [finding] if finding else []
        yield from found
        if not found:
            yield Passed("; ".join(_choices(view)) if code == "ENV-010" else "nothing is set so")

    return judge


def _found(view: SnapshotView, row: MisleadingVariable, name: str) -> Finding | None:
    gpu = cuda = gone = meant = ""
    value = variables(view)[name]
    users = []
    for word in row.when:
        if word == "sm80":
            gpu = _with_tf32(view)
            if not gpu:
                return None
        elif word == "other-cuda":
            torch = framework(view, "torch")
            cuda = (known(torch.built_cuda) if torch else "") or ""
            if not cuda or cuda.replace(".", "") == value:
                return None
        elif word == "unwritable":
            if fact(environment(view), "cuda_cache_writable") is not False:
                return None
        elif word == "absent":
            if name not in (fact(environment(view), "absent_directories") or []):
                return None
        elif word == "misspelt":
            near = fact(environment(view), "misspelt") or {}
            gone = next((one for one in value.split(":") if one in near), "")
            if not gone:
                return None
            meant = near[gone]
        elif word == "unread":
            if _reads_amp(view):
                return None
        else:
            users.append(Requirement(word))
    if users and not any(_installed(view, one) for one in users):
        return None
    if row.check == "ENV-017":
        need_gpus(view)
    right = [f"export {name}={shell_word(value.replace(gone, meant))}"] if gone else []
    given = {"gpu": gpu, "cuda": cuda, "gone": gone, "meant": meant}
    return misset(view, _CAUSES[row.key], name, right, **given)


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


for _code, (_title, _about) in _CHECKS.items():
    check(
        _code,
        title=_title,
        causes=[_CAUSES[row.key] for row in _ROWS if row.check == _code],
        about=_about,
        sources=[CUDA_GUIDE, "misleading_variables.csv, a source in every row"],
    )(_judge(_code))

"""What JAX says of a CUDA library that is too old for it, in numbers; here as versions and a remedy."""

from __future__ import annotations

import re

from ...data.packages import component
from ...facts.base import known
from ...facts.missing import CannotJudge
from ...facts.target import Framework
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Remedy
from ...findings.shell import word
from ..target import installed, pip_install
from .causes import Explained

# jax/_src/xla_bridge.py, _check_cuda_versions: the installed version may be older than what it was built
# with, never older than the least supported one (0: it must be the same).
_OUTDATED = re.compile(
    r"Outdated (\w{2,20}) installation found\.? ?"
    r"(?:Version JAX was built against: (\d{1,9}) ?)?"
    r"(?:Minimum supported: (\d{1,9}) ?)?"
    r"(?:Installed version: (\d{1,9}))?"
)
_PARTS = {"cuda": "cuda-runtime", "cupti": "cuda-cupti"}
_FIRST_CUDNN_9 = 90000


def outdated(view: SnapshotView, facts: Framework) -> Explained | None:
    """Why JAX leaves its CUDA half out, where a library is older than it supports."""
    for line in facts.log:
        found = _OUTDATED.search(line)
        if found is not None and found[4]:
            return _explained(view, facts, found, line)
    return None


def _explained(view: SnapshotView, facts: Framework, found: re.Match[str], line: str) -> Explained:
    name = found[1]
    least = int(found[3] or 0) or int(found[2] or 0)
    wants, has = version(name, least), version(name, int(found[4]))
    return Explained(
        f"its {name} is too old for it (it needs {wants} or later, and loads {has})",
        line.strip()[:300],
        Remedy(
            f"Install {name} {wants} or later; where it is installed already, an older one comes first "
            "on LD_LIBRARY_PATH.",
            [_install(view, facts, _PARTS.get(name.lower(), name.lower()), wants)],
        ),
    )


def version(library: str, number: int) -> str:
    """A version as the library's own header writes it: 8907 is cuDNN 8.9.7, 90100 cuDNN 9.1.0."""
    if library == "CUDA":
        return f"{number // 1000}.{number % 1000 // 10}"
    wide = library == "cuBLAS" or (library == "cuDNN" and number >= _FIRST_CUDNN_9)
    major = 10000 if wide else 1000
    return f"{number // major}.{number % major // 100}.{number % 100}"


def _install(view: SnapshotView, facts: Framework, part: str, least: str) -> str:
    wheels = {}
    conda = False
    try:
        conda = facts_of(view.target.interpreter, "the target's interpreter").kind == "conda"
        wheels = installed(view)
    except CannotJudge:
        pass
    for name in wheels:
        its = component(name)
        if its is not None and its.name == part:
            return pip_install(view, f"{name}>={least}")
    if conda:
        package = "cuda-cudart" if part == "cuda-runtime" else part
        return f"conda install -c conda-forge {word(f'{package}>={least}')}"
    major = (known(facts.built_cuda) or "12").partition(".")[0]
    return pip_install(view, f"nvidia-{part}-cu{major}>={least}")

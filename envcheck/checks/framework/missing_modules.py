"""Imports that fail for a module: one that another package brings, or a part of the framework itself."""

from __future__ import annotations

import re

from ...data import table
from ...data.packages import TENSORFLOWS
from ...facts.missing import CannotJudge
from ...facts.target import Framework
from ...facts.view import SnapshotView
from ...findings.model import Remedy
from ..target import installed, pip_install, python_version
from .causes import Explained

_MISSING = re.compile(r"No module named '([\w.]{1,200})'")


def explain_missing(view: SnapshotView, facts: Framework, words: str) -> Explained | None:
    """None where the words are of no module, or of one whose package has its name."""
    found = _MISSING.search(words)
    if found is None:
        return None
    module = found[1]
    if module.startswith(f"{facts.name}."):
        return _half_installed(view, facts, module, found[0])
    row = next((row for row in table("module_packages") if _is_in(module, row["module"])), None)
    if row is None:
        return None
    version = python_version(view)
    newer = (
        bool(row["until_python"]) and version is not None and version > _pair(row["until_python"])
    )
    says = f"the module {module}, which it needs, is not installed"
    if newer:
        says = f"it needs the module {module}, which Python has no more after {row['until_python']}"
    if row["package"]:
        command = pip_install(view, row["package"])
        return Explained(says, found[0], Remedy("Install the package that brings it.", [command]))
    return Explained(
        says,
        found[0],
        Remedy(
            f"Use Python {row['until_python']} or older, or a release of the framework for this Python."
        ),
    )


def _half_installed(
    view: SnapshotView, facts: Framework, module: str, words: str
) -> Explained | None:
    names = TENSORFLOWS if facts.name == "tensorflow" else (facts.name,)
    try:
        owner = next((one for name, one in installed(view).items() if name in names), None)
    except CannotJudge:
        return None
    if owner is None:
        return None
    again = pip_install(view, f"{owner.name}=={owner.version}")
    return Explained(
        f"its own module {module} is missing: only a part of it is installed, or something else of its "
        "name comes first",
        words,
        Remedy(
            "Install it again over itself; see that no file or folder of that name lies where Python is "
            "started.",
            [f"{again} --force-reinstall --no-deps --no-cache-dir", f"ls -d {facts.name}*"],
        ),
    )


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _pair(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)

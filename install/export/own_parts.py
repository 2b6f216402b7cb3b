"""envcheck itself in a bundle: its wheel, what it needs for each Python, and the script that installs it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from packaging.specifiers import SpecifierSet

from ... import __version__
from ...exit_codes import Cannot, UsageError
from .. import pylock
from ..bundle import writing
from ..bundle.index import OWN
from ..bundle.writing import Content
from ..lockfile import LockedFile, Lockfile
from ..pythons import finding
from ..pythons.interpreter import Interpreter
from . import own_wheel, setup_script
from .own_wheel import OwnWheel


def interpreters(pythons: Sequence[str], requires: str) -> dict[str, Interpreter]:
    """One for each minor version that envcheck is to run under there.

    pythons: versions or paths; none: the one that it runs under here. Raises UsageError for one that is too
    old, Cannot for one that is not found.
    """
    found: dict[str, Interpreter] = {}
    for python in pythons or [sys.executable]:
        there = finding.interpreters(python)
        if not there:
            raise Cannot(
                f"--for-python {python}: there is no such Python on this machine, so which wheels it"
                " takes is not known",
                "install it, or name another",
            )
        if not SpecifierSet(requires).contains(there[0].version):
            raise UsageError(
                f"--for-python {python}: envcheck needs Python {requires}, and this is"
                f" {there[0].version}",
                "--python names the Python of the stack, which may be older",
            )
        found.setdefault(there[0].minor, there[0])
    return found


def files(tools: Mapping[str, Lockfile]) -> list[LockedFile]:
    """What is to be fetched for it. tools: minor version → what envcheck needs under it."""
    return list({file.sha256: file for lock in tools.values() for file in lock.files}.values())


def contents(
    own: OwnWheel,
    tools: Mapping[str, Lockfile],
    stored: Callable[[str], Path],
    mode: str,
    output: Path,
) -> dict[str, Content]:
    """The parts by their names. stored: where the file of a sha256 lies. mode, output: of the bundle."""
    made = {f"{OWN}/{own.name}": Content.of(own.data)}
    for minor, lock in tools.items():
        made |= {f"{OWN}/{file.name}": of_store(file, stored) for file in lock.files}
        others = [package for package in lock.packages if package.name != "pip"]
        itself = f"{own_wheel.DISTRIBUTION}=={__version__} --hash=sha256:{own.sha256}\n"
        listed = itself + pylock.for_pip(lock, others)
        made[f"{OWN}/requirements-{minor}.txt"] = Content.of(listed.encode())
    pip = next(p.file for lock in tools.values() for p in lock.packages if p.name == "pip")
    tar = output.name if writing.is_tar(output) else ""
    script = setup_script.script(list(tools), pip.name, pip.sha256, mode, tar)
    made["setup.sh"] = Content.of(script.encode())
    return made


def of_store(file: LockedFile, stored: Callable[[str], Path]) -> Content:
    path = stored(file.sha256)
    return Content(source=path, sha256=file.sha256, size=path.stat().st_size)


def listed(words: Sequence[str]) -> str:
    """ "3.10, 3.11 and 3.12"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

"""The commands that install Python packages into the target, by the installer that it has."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from ..facts.base import known
from ..facts.view import SnapshotView, fact
from ..findings.remedy import Remedy
from ..findings.shell import word, words
from .system_commands import on_system

_NAME_ALONE = re.compile(r"nvidia-[\w.-]{1,60}")
_EXACT = re.compile(r"([\w.-]{1,80}) ?\(?==([\w.+!]{1,40})\)? ?(?:;|\Z)")


def python(view: SnapshotView) -> str:
    return word(fact(view.target.interpreter, "executable") or "python3")


def by_uv(view: SnapshotView) -> bool:
    """Whether uv made the environment, or installed all packages whose installer is recorded."""
    if fact(view.target.interpreter, "uv") is True:
        return True
    packages = fact(view.target.packages, "distributions") or []
    return {known(one.installer) for one in packages} - {None} == {"uv"}


def by_conda(view: SnapshotView, name: str) -> bool:
    """Whether conda installed this distribution, which pip would only write over."""
    if fact(view.target.interpreter, "kind") != "conda":
        return False
    packages = fact(view.target.packages, "distributions") or []
    return any(one.normalized == name and known(one.installer) == "conda" for one in packages)


def pip(view: SnapshotView, command: str) -> str:
    """A pip command for the target: uv's where the environment is uv's and has no pip."""
    python_, has_pip = python(view), fact(view.target.interpreter, "pip")
    if has_pip is not True and by_uv(view):
        verb, _, rest = command.partition(" ")
        return f"uv pip {verb} --python {python_} {rest}".rstrip()
    if command.startswith(("install ", "uninstall ")) and _managed(view):
        verb, _, rest = command.partition(" ")
        command = f"{verb} --break-system-packages {rest}"
    return f"{python_} -m pip {command}"


def with_pip(view: SnapshotView, remedy: Remedy) -> Remedy:
    """A remedy that runs the target's pip: before it, what brings that where there is none.

    A distribution's own Python has no ensurepip.
    """
    if view.snapshot.target is None or fact(view.target.interpreter, "pip") is not False:
        return remedy
    own = fact(view.target.interpreter, "kind") == "interpreter"
    distribution = own and python(view).startswith("/usr/bin/")
    first = on_system(view, "python-pip") if distribution else [f"{python(view)} -m ensurepip"]
    run = f"{python(view)} -m pip "
    at = next((n for n, command in enumerate(remedy.commands) if run in command), None)
    if at is None:
        return remedy
    return Remedy(remedy.text, [*remedy.commands[:at], *first, *remedy.commands[at:]])


def _managed(view: SnapshotView) -> bool:
    """Whether the distribution forbids pip to change this interpreter (PEP 668)."""
    return fact(view.target.interpreter, "externally_managed") is True


def pip_install(view: SnapshotView, *requirements: str) -> str:
    """Of a name alone that version which an installed package asks for."""
    return pip(view, f"install {words([_pinned(view, one) for one in requirements])}")


def _pinned(view: SnapshotView, requirement: str) -> str:
    if not _NAME_ALONE.fullmatch(requirement):
        return requirement
    asked = (
        _EXACT.match(wanted)
        for one in fact(view.target.packages, "distributions") or []
        for wanted in known(one.requires) or []
    )
    name = canonicalize_name(requirement)
    pins = {found[2] for found in asked if found and canonicalize_name(found[1]) == name}
    return f"{requirement}=={pins.pop()}" if len(pins) == 1 else requirement


def pip_config(view: SnapshotView, what: str, as_root: bool) -> str:
    """pip's own configuration, which uv has no command for."""
    without = fact(view.target.interpreter, "pip") is False
    return f"{'sudo ' * as_root}{'python3' if without else python(view)} -m pip config {what}"


def pip_restore(view: SnapshotView, name: str, version: str) -> str:
    return pip_install(view, f"{name}=={version}") + " --force-reinstall --no-deps"


def pip_uninstall(view: SnapshotView, *names: str) -> str:
    by_pip = fact(view.target.interpreter, "pip") is True or not by_uv(view)
    return pip(view, f"uninstall {'-y ' if by_pip else ''}{words(list(names))}")


def pip_replace(view: SnapshotView, wanted: str, *names: str) -> str:
    """The command that leaves ``wanted`` in the place of these packages, whose files it shares.

    It is installed first, so that nothing is lost if there is no wheel of it for this Python, and once more
    at the end, because uninstalling the others removes shared files.
    """
    install = pip_install(view, wanted) + " --force-reinstall"
    return f"{install} && {pip_uninstall(view, *names)} && {install} --no-deps"


def conda_install(view: SnapshotView, what: str) -> str:
    """what: requirements and channels, as words of a shell."""
    prefix = fact(view.target.interpreter, "prefix")
    return f"conda install {f'-p {word(prefix)} ' if prefix else ''}{what}"

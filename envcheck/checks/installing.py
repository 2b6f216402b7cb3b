"""The commands that install Python packages into the target, by the installer that it has."""

from __future__ import annotations

from ..facts.base import known
from ..facts.view import SnapshotView, fact
from ..findings.shell import word, words
from .system_commands import on_system


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
    return f"{_with_pip(view, python_, has_pip)}{python_} -m pip {command}"


def _with_pip(view: SnapshotView, python_: str, has_pip: bool | None) -> str:
    """What brings pip to an interpreter without it; a distribution's own Python has no ensurepip."""
    if has_pip is not False:
        return ""
    own = fact(view.target.interpreter, "kind") == "interpreter" and python_.startswith("/usr/bin/")
    first = on_system(view, "python-pip") if own else [f"{python_} -m ensurepip"]
    return "".join(f"{command} && " for command in first)


def _managed(view: SnapshotView) -> bool:
    """Whether the distribution forbids pip to change this interpreter (PEP 668)."""
    return fact(view.target.interpreter, "externally_managed") is True


def pip_install(view: SnapshotView, *requirements: str) -> str:
    return pip(view, f"install {words(list(requirements))}")


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

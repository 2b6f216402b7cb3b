"""The Pythons that uv has installed, and those that it could install."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import msgspec
from packaging.version import InvalidVersion, Version

from .. import places, processes

DEADLINE = 20.0  # seconds; it answers in a tenth of one

# What uv itself needs to know of the machine. Its other variables are the user's, for the user's own uv.
_KEPT = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR", "UV_PYTHON_INSTALL_DIR")


class _Listed(msgspec.Struct):
    """One entry of ``uv python list --output-format json``."""

    version: str
    path: str | None = None
    arch: str = ""
    variant: str = "default"
    implementation: str = ""


def installed() -> list[str]:
    """Paths of the interpreters that uv has installed; empty where there is no uv."""
    listed = _list("--only-installed", "--managed-python", "--no-python-downloads")
    return [entry.path for entry in listed if entry.path]


def obtainable() -> list[str]:
    """The minor versions that uv could download for this machine, newest first: ["3.13", …, "3.8"].

    From the list inside uv: no network is asked. Empty where there is no uv, or where the user's own
    settings forbid uv to download Pythons.
    """
    if _forbidden():
        return []
    found: dict[str, Version] = {}
    for entry in _list("--only-downloads"):
        if (entry.implementation, entry.variant) != ("cpython", "default"):
            continue
        version = _released(entry.version)
        if version is not None and entry.arch == platform.machine():
            found[f"{version.major}.{version.minor}"] = version
    return sorted(found, key=lambda minor: found[minor], reverse=True)


def _released(text: str) -> Version | None:
    try:
        version = Version(text)
    except InvalidVersion:
        return None
    return None if version.is_prerelease else version


def _list(*options: str) -> list[_Listed]:
    """Without configuration, cache or network: the answer is the same wherever it is asked."""
    try:
        from uv import find_uv_bin

        program = find_uv_bin()
    except (ImportError, FileNotFoundError):
        return []
    argv = [program, "--no-config", "--offline", "--no-cache", "python", "list", *options]
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    result = processes.run(
        [*argv, "--output-format", "json"], deadline=DEADLINE, env=env, cwd=Path("/")
    )
    if not result.ok:
        return []
    try:
        return msgspec.json.decode(result.stdout, type=list[_Listed])
    except msgspec.DecodeError:
        return []


def _forbidden() -> bool:
    """Whether the user's settings keep uv from downloading Pythons: `uv python list` lists them anyway."""
    for variable in ("UV_OFFLINE", "UV_NO_MANAGED_PYTHON"):
        if os.environ.get(variable, "").lower() in ("1", "true", "yes", "on", "t", "y"):
            return True
    downloads = os.environ.get("UV_PYTHON_DOWNLOADS") or _setting("python-downloads")
    preference = os.environ.get("UV_PYTHON_PREFERENCE") or _setting("python-preference")
    return downloads == "never" or preference == "only-system"


def _setting(name: str) -> str:
    """A value of uv's configuration: the user's file first, then the machine's; "" where none has it."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    own = Path(home) if home.startswith("/") else places.home() / ".config"
    shared = [
        Path(part) for part in os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if part
    ]
    for file in [
        own / "uv/uv.toml",
        *(folder / "uv/uv.toml" for folder in shared),
        Path("/etc/uv/uv.toml"),
    ]:
        value = _value(file, name)
        if value is not None:
            return str(value).lower()
    return ""


def _value(file: Path, name: str) -> object:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    import tomli

    try:
        return tomli.loads(text).get(name)
    except (ValueError, RecursionError):
        return None  # what uv itself says to such a file is for uv's own user

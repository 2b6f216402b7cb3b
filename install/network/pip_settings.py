"""pip's settings, by its documented rules: which pip would answer `pip config` depends on the PATH."""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...exit_codes import UsageError


class Setting(msgspec.Struct, frozen=True):
    """One of pip's settings, and where it stands."""

    value: str
    origin: str


def pip_settings(environ: Mapping[str, str]) -> dict[str, Setting]:
    """pip's settings for ``pip install``: the later file wins, [install] over [global], PIP_* over all.

    Files and order: pip's documentation, "Configuration", and ``iter_config_files`` in pip 26.
    """
    sections: dict[str, dict[str, Setting]] = {"global": {}, "install": {}}
    for path in _pip_files(environ):
        for section, values in _read(path).items():
            if section in sections:
                sections[section] |= {k: Setting(v, str(path)) for k, v in values.items() if v}
    variables = {
        _key(name.removeprefix("PIP_")): Setting(value, name)
        for name, value in environ.items()
        if name.startswith("PIP_") and value
    }
    return sections["global"] | sections["install"] | variables


def _pip_files(environ: Mapping[str, str]) -> list[Path]:
    """pip's configuration files on Linux, there or not, the one that wins last."""
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - a user may have none
    system = (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
    files = [Path(base) / "pip" / "pip.conf" for base in system if base] + [Path("/etc/pip.conf")]
    if not (named and Path(named).exists()):
        personal = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        files += [home / ".pip" / "pip.conf", personal / "pip" / "pip.conf"]
    active = environ.get("VIRTUAL_ENV") or environ.get("CONDA_PREFIX")
    if active:
        files.append(Path(active) / "pip.conf")
    return [*files, Path(named)] if named else files


def _read(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8", errors="replace"), str(path))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"pip's configuration {path} cannot be read: {error.strerror}") from None
    except configparser.Error as error:
        # Its own message quotes the line, which may hold a password.
        numbers = [number for number, _ in getattr(error, "errors", [])]
        line = numbers[0] if numbers else getattr(error, "lineno", 0)
        raise UsageError(f"pip's configuration {path} is broken at line {line or '?'}") from None
    return {s: {_key(k): v.strip() for k, v in parser.items(s)} for s in parser.sections()}


def _key(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")

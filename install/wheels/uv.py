"""uv: which one runs here, and installing a lock with it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...exit_codes import PutBack
from .. import places, processes, pylock
from ..lockfile import LockedPackage, Lockfile
from . import arriving, child_env, logs, uv_errors

if TYPE_CHECKING:
    from ..store.fetch import Fetcher

# As pyproject.toml asks for it: what these versions write is read by `uv_compile` and `uv_errors`, and
# tests/functional/test_uv_contract.py says when another one writes it differently.
LEAST, BEYOND = (0, 13), (0, 14)

PIP = ("--preview-features", "pylock", "pip")  # uv's own pip, which reads pylock.toml

DEADLINE = 24 * 3600.0  # seconds for an installation: a slow line carries 5 GB in that time
_ANSWERS = 60.0  # seconds in which `uv --version` has to answer

_RETRIES = "1"  # what uv cannot get, envcheck's own session asks for again, and says why


@cache
def binary() -> Path | None:
    """uv beside envcheck, else on PATH, if it runs on this machine and is of a version that is known."""
    return next((p for p in _candidates() if LEAST <= (version_of(p) or (0,)) < BEYOND), None)


@cache
def version_of(path: Path) -> tuple[int, ...] | None:
    """(0, 13, 9); None where it does not run: built for another libc, lost, on a noexec mount."""
    result = processes.run(
        [path, "--no-config", "--version"], deadline=_ANSWERS, env=child_env.plain()
    )
    found = re.match(rb"uv (\d+)\.(\d+)\.(\d+)", result.stdout) if result.ok else None
    return tuple(int(part) for part in found.groups()) if found else None


def described() -> str:
    """ "uv 0.13.9"; "" where none runs."""
    path = binary()
    return "" if path is None else f"uv {'.'.join(map(str, version_of(path) or ()))}"


def install(
    directory: Path,
    lock: Lockfile,
    fetcher: Fetcher,
    packages: Sequence[LockedPackage],
    *,
    beat: Callable[[], None] | None = None,
) -> None:
    """Put the lock's ``packages`` into the environment, in portions, while others are still fetched.

    beat: called between looks; what it raises ends uv. Raises the error of a file that does not come, else
    PutBack with uv's own words.
    """
    listed = logs.work(directory) / "pylock.uv.toml"
    python = directory / "bin" / "python"
    argv: list[str | Path] = [*PIP, "install", "--no-deps", "--python", python, "-r", listed]
    env = {"UV_LINK_MODE": link_mode(directory)}
    try:
        for paths in arriving.portions((one.file for one in packages), fetcher, beat):
            portion = [one for one in packages if one.file.sha256 in paths]
            listed.write_text(pylock.for_uv(lock, portion, paths), encoding="utf-8")
            with logs.Log(directory, "install.log") as kept:
                result = run_offline(argv, env, kept, beat)
            if not result.ok:
                raise PutBack(
                    f"uv could not install {len(lock.packages)} packages into {directory}: "
                    f"{uv_errors.sentence(result)}",
                    hint=f"the whole log is in {kept.path}",
                )
    finally:
        listed.unlink(missing_ok=True)


def run_offline(
    arguments: Sequence[str | Path],
    env: Mapping[str, str],
    log: logs.Log,
    beat: Callable[[], None] | None = None,
) -> Any:
    """One run of uv with the files that it is given by path, and no index: a ``process.Result``."""

    def look(lines: list[str]) -> None:
        log.add(lines)
        if beat is not None:
            beat()

    argv = [*_program(), "--no-config", "--offline", *arguments, "--no-index"]
    whole = {**child_env.plain(), **_settings(), **env}
    result = processes.run(argv, deadline=DEADLINE, env=whole, cwd=_neutral(), tick=look)
    log.close(result.stderr)
    return result


def run_online(arguments: Sequence[str | Path], env: Mapping[str, str], settings: Path) -> Any:
    """One run of uv that asks indexes: a ``process.Result``. settings: the only uv.toml that counts."""
    argv = [*_program(), "--config-file", settings, *arguments]
    whole = {**child_env.plain(), **_settings(), "UV_HTTP_RETRIES": _RETRIES, **env}
    return processes.run(argv, deadline=DEADLINE, env=whole, cwd=settings.parent)


def _program() -> list[str | Path]:
    path = binary()
    if path is None:
        raise RuntimeError("a run of uv without a uv: the caller looks first")
    return [path, "--no-progress", "--color", "never"]


def link_mode(directory: Path) -> str:
    """Hard links take neither time nor room, and want one file system."""
    return "hardlink" if _cache().stat().st_dev == directory.stat().st_dev else "copy"


def _cache() -> Path:
    folder = places.uv_cache()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _settings() -> dict[str, str]:
    return {
        "UV_CACHE_DIR": str(_cache()),
        "UV_PYTHON_DOWNLOADS": "never",
    }


def _neutral() -> Path:
    """A working directory in which no project, workspace or .python-version is found."""
    return Path("/")


def _candidates() -> list[Path]:
    found = []
    try:
        from uv import find_uv_bin

        found.append(Path(find_uv_bin()))
    except (ImportError, FileNotFoundError):
        pass
    on_path = shutil.which("uv")
    return [*found, *([Path(on_path).absolute()] if on_path else [])]

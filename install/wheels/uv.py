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
from ..index.address import INDEX_URL
from ..lockfile import LockedPackage, Lockfile
from . import arriving, child_env, logs, uv_errors

if TYPE_CHECKING:
    from ..index.server import IndexServer
    from ..index.views import View

# As pyproject.toml asks for it: reads pylock.toml, and says errors the way `uv_errors` reads them.
LEAST = (0, 13)

PIP = ("--preview-features", "pylock", "pip")  # uv's own pip, which reads pylock.toml

DEADLINE = 24 * 3600.0  # seconds for an installation: a slow line carries 5 GB in that time
_ANSWERS = 60.0  # seconds in which `uv --version` has to answer

# uv's wait for bytes of one file: ours may stand in a queue behind gigabytes.
_PATIENCE = str(24 * 3600)


@cache
def binary() -> Path | None:
    """uv beside envcheck, else on PATH, if it runs on this machine and is new enough."""
    return next((path for path in _candidates() if (version_of(path) or (0,)) >= LEAST), None)


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
    server: IndexServer,
    files: View,
    packages: Sequence[LockedPackage],
    *,
    beat: Callable[[], None] | None = None,
) -> None:
    """Put the lock's ``packages`` into the environment, in portions, while others are still fetched.

    uv is given files instead of addresses: it unpacks a file on all processors, and a stream on one.
    beat: called between looks; what it raises ends uv. Raises what went wrong behind ``files``, else
    PutBack with uv's own words.
    """
    listed = logs.work(directory) / "pylock.uv.toml"
    python = directory / "bin" / "python"
    argv: list[str | Path] = [*PIP, "install", "--no-deps", "--python", python, "-r", listed]
    env = {"UV_LINK_MODE": link_mode(directory)}
    try:
        for paths in arriving.portions((one.file for one in packages), files, beat):
            portion = [one for one in packages if one.file.sha256 in paths]
            listed.write_text(pylock.for_uv(lock, portion, paths), encoding="utf-8")
            with logs.Log(directory, "install.log") as kept:
                result = run(argv, server, env, kept, beat)
            if not result.ok:
                raise PutBack(
                    f"uv could not install {len(lock.packages)} packages into {directory}: "
                    f"{uv_errors.sentence(result)}",
                    hint=f"the whole log is in {kept.path}",
                )
    finally:
        listed.unlink(missing_ok=True)


def run(
    arguments: Sequence[str | Path],
    server: IndexServer,
    env: Mapping[str, str],
    log: logs.Log | None = None,
    beat: Callable[[], None] | None = None,
) -> Any:
    """One run of uv against the server's index and nothing else: a ``process.Result``.

    Raises what went wrong behind the server, as soon as it has: uv would try again, and say less.
    """
    path = binary()
    if path is None:
        raise RuntimeError("uv.run without a uv: the caller looks first")

    def look(lines: list[str]) -> None:
        if log is not None:
            log.add(lines, server.secret)
        if server.errors:
            raise server.errors[0]
        if beat is not None:
            beat()

    argv = [path, "--no-config", "--no-progress", "--color", "never", *arguments]
    argv += ["--default-index", INDEX_URL]
    whole = {**child_env.plain(), **child_env.through(server.proxy), **_settings(), **env}
    result = processes.run(argv, deadline=DEADLINE, env=whole, cwd=_neutral(), tick=look)
    result.stderr = logs.hidden(result.stderr, server.secret)
    if log is not None:
        log.close(result.stderr)
    if server.errors:
        raise server.errors[0]
    return result


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
        "UV_HTTP_TIMEOUT": _PATIENCE,
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

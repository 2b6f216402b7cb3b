"""pip, where uv does not run or is not wanted: the lock's own, started from its wheel.

So pip's age is the lock's, not the interpreter's (3.6 brings 18.1, too old for manylinux2014), and the
environment gets nothing that is not locked, as ensurepip's setuptools would be.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...exit_codes import Cannot, PutBack
from .. import processes, pylock
from ..lockfile import LockedFile, LockedPackage, Lockfile
from . import child_env, logs
from .uv import DEADLINE

if TYPE_CHECKING:
    from ..index.server import IndexServer
    from ..index.views import View

_OPTIONS = (
    "--disable-pip-version-check",
    "--no-input",
    "--no-cache-dir",
    "--no-warn-script-location",
    "--no-deps",
)

_WRONG_BYTES = "DO NOT MATCH THE HASHES"


def described(lock: Lockfile) -> str:
    """ "pip 21.3.1": the lock's."""
    own = locked(lock)
    return f"pip {own.version}" if own else "pip"


def locked(lock: Lockfile) -> LockedPackage | None:
    return next((package for package in lock.packages if package.name == "pip"), None)


def sync(
    directory: Path,
    lock: Lockfile,
    server: IndexServer,
    files: View,
    packages: Sequence[LockedPackage] | None = None,
    *,
    beat: Callable[[], None] | None = None,
) -> None:
    """Install the lock's packages (or ``packages``) by hash into an environment that is still empty.

    Raises Cannot where the lock has no pip, PutBack with pip's own words.
    """
    own = locked(lock)
    if own is None:
        raise Cannot(
            "without uv, packages are installed by the pip of the lock, and this lock has none",
            hint="install uv (python3 -m pip install uv), which needs no pip",
        )
    folder = logs.work(directory) / "pip"
    folder.mkdir(exist_ok=True)
    try:
        wheel = _copy(own.file, files, folder)
        listed = folder / "requirements.txt"
        listed.write_text(pylock.for_pip(lock, packages), encoding="utf-8")
        program: list[str | Path] = [directory / "bin" / "python", "-I", wheel / "pip", "install"]
        options: list[str | Path] = ["--require-hashes", "--only-binary", ":all:", "-r", listed]
        with logs.Log(directory, "install.log") as kept:
            result = run([*program, *options], server, {}, kept, beat)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not result.ok:
        raise PutBack(
            f"pip could not install {len(lock.packages)} packages into {directory}: {words(result)}",
            hint=f"the whole log is in {kept.path}",
        )


def run(
    argv: Sequence[str | Path],
    server: IndexServer,
    env: Mapping[str, str],
    log: logs.Log,
    beat: Callable[[], None] | None = None,
) -> Any:
    """One run of pip against the server's index and nothing else: a ``process.Result``."""

    def look(lines: list[str]) -> None:
        log.add(lines, server.secret)
        if server.errors:
            raise server.errors[0]
        if beat is not None:
            beat()

    # The index's address holds a token: in the environment, which others cannot read.
    whole = {**child_env.plain(), "PIP_INDEX_URL": server.url, "NO_PROXY": "*", **env}
    result = processes.run(
        [*argv, *_OPTIONS], deadline=DEADLINE, env=whole, cwd=Path("/"), tick=look
    )
    result.stderr = logs.hidden(result.stderr, server.secret)
    log.close(logs.hidden(result.stdout, server.secret) + result.stderr)
    if server.errors:
        raise server.errors[0]
    return result


def words(result: Any) -> str:
    """pip's error: its ERROR lines, else its last line."""
    if result.outcome != "exited" or result.code < 0:
        return f"it {result.describe()}"
    text = result.stderr.decode("utf-8", "replace")
    if wrong := _wrong_bytes(text):
        return wrong
    lines = text.strip().splitlines()
    errors = [line.removeprefix("ERROR: ").strip() for line in lines if line.startswith("ERROR: ")]
    return " ".join(errors or lines[-1:]) or f"it {result.describe()}"


def _wrong_bytes(text: str) -> str:
    """What pip says of a file with another hash, three lines of it as one sentence; "" where it does not."""
    _, found, rest = text.partition(_WRONG_BYTES)
    lines = [line.split() for line in rest.splitlines()[1:]] if found else []
    for package, expected, got in zip(lines, lines[1:], lines[2:], strict=False):
        if package and expected[:2] == ["Expected", "sha256"] and got[:1] == ["Got"]:
            came, locked = " ".join(got[1:]), " ".join(expected[2:])
            return (
                f"{package[0].rstrip(':')} came with the sha256 {came}, and the lock has {locked}"
            )
    return ""


def _copy(file: LockedFile, files: View, folder: Path) -> Path:
    transfer = files.file(file.sha256)
    if transfer is None:
        raise PutBack(f"{file.name} is not among the files of its own lock")
    while not transfer.complete:
        transfer.wait_beyond(transfer.available(), 1.0)
    path = folder / file.name
    with transfer.open() as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
    return path

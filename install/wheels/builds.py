"""Builds one allowed sdist into the environment, with uv or with pip, and keeps the log."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import pylock
from ..lockfile import Lockfile
from . import logs, pip, sdists, uv
from .sdists import Job

if TYPE_CHECKING:
    from ..index.server import IndexServer

Beat = Callable[[], None] | None


def with_uv(
    job: Job, directory: Path, lock: Lockfile, server: IndexServer, beat: Beat = None
) -> None:
    """Raises PutBack with the build's last words. All wheels of the lock are installed before."""
    folder = sdists.work_folder(directory, job)
    try:
        listed = _written(folder / "pylock.sdist.toml", pylock.for_uv(lock, [job.package]))
        pins = _written(folder / "constraints.txt", sdists.constraints(job, lock))
        options: list[str | Path] = ["--no-deps", "--build-constraints", pins]
        overlay = None
        if not job.sdist.build.isolated:
            overlay = _tools_by_uv(job, directory, folder, lock, server, beat)
            options += ["--no-build-isolation-package", job.package.name]
        env = sdists.environment(job, directory, overlay)
        if overlay is not None or job.sdist.build.environment:
            # uv knows a wheel that it has built again by the sdist alone: not by its flags, nor by the
            # packages that it was built against.
            options.append("--no-cache")
        argv = [*uv.PIP, "install", "--verbose", *_at(directory), *options, "-r", listed]
        with logs.Log(directory, sdists.log_name(job)) as log:
            mode = {"UV_LINK_MODE": "copy"} if "--no-cache" in options else _link_mode(directory)
            result = uv.run(argv, server, {**env, **mode}, log, beat)
        _judge(job, result, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_pip(
    job: Job, directory: Path, lock: Lockfile, server: IndexServer, beat: Beat = None
) -> None:
    """The same with the environment's own pip.

    Never in pip's own isolation: that would start a second pip with the index's address, and so its
    secret, on the command line. The build's tools come from the lock, by hash.
    """
    folder = sdists.work_folder(directory, job)
    try:
        listed = _written(folder / "requirements.txt", pylock.for_pip(lock, [job.package]))
        overlay = _tools_by_pip(job, directory, folder, lock, server, beat)
        env = sdists.environment(job, directory, overlay)
        options: list[str | Path] = [
            "--require-hashes",
            "--verbose",
            "--no-build-isolation",
            "-r",
            listed,
        ]
        with logs.Log(directory, sdists.log_name(job)) as log:
            result = pip.run([*_pip(directory), *options], server, env, log, beat)
        _judge(job, result, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tools_by_uv(
    job: Job, directory: Path, folder: Path, lock: Lockfile, server: IndexServer, beat: Beat
) -> Path:
    """The build's tools, in a folder beside the environment's packages: a build sees both."""
    overlay = folder / "tools"
    tools = sdists.tools_of(job, lock)
    if tools:
        listed = _written(folder / "pylock.tools.toml", pylock.for_uv(lock, tools))
        argv = [*uv.PIP, "install", *_at(directory), "--no-deps", "--target", overlay, "-r", listed]
        with logs.Log(directory, sdists.log_name(job)) as log:
            _judge(job, uv.run(argv, server, _link_mode(directory), log, beat), log)
    return overlay


def _tools_by_pip(
    job: Job, directory: Path, folder: Path, lock: Lockfile, server: IndexServer, beat: Beat
) -> Path:
    overlay = folder / "tools"
    tools = sdists.tools_of(job, lock)
    if tools:
        listed = _written(folder / "tools.txt", pylock.for_pip(lock, tools))
        argv = [*_pip(directory), "--require-hashes", "--only-binary", ":all:"]
        with logs.Log(directory, sdists.log_name(job)) as log:
            result = pip.run([*argv, "--target", overlay, "-r", listed], server, {}, log, beat)
            _judge(job, result, log)
    return overlay


def _at(directory: Path) -> list[str | Path]:
    return ["--python", directory / "bin" / "python"]


def _pip(directory: Path) -> Sequence[str | Path]:
    return [directory / "bin" / "python", "-I", "-m", "pip", "install"]


def _link_mode(directory: Path) -> dict[str, str]:
    return {"UV_LINK_MODE": uv.link_mode(directory)}


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _judge(job: Job, result: Any, log: logs.Log) -> None:
    if not result.ok:
        raise sdists.failure(job, result, log.path)

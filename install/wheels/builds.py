"""Builds one allowed sdist into the environment, with uv or with pip, and keeps the log."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import pylock
from ..lockfile import Lockfile
from . import arriving, logs, pip, sdists, uv
from .sdists import Job

if TYPE_CHECKING:
    from ..store.fetch import Fetcher

Beat = Callable[[], None] | None


def with_uv(job: Job, directory: Path, lock: Lockfile, fetcher: Fetcher, beat: Beat = None) -> None:
    """Raises PutBack with the build's last words. All wheels of the lock are installed before."""
    folder = sdists.work_folder(directory, job)
    try:
        shelf, paths = _shelf(folder, job, lock, fetcher, beat)
        listed = _written(folder / "pylock.sdist.toml", pylock.for_uv(lock, [job.package], paths))
        pins = _written(folder / "constraints.txt", sdists.constraints(job, lock))
        options: list[str | Path] = ["--no-deps", "--build-constraints", pins]
        options += ["--find-links", shelf]
        overlay = None
        if not job.sdist.build.isolated:
            overlay = _tools_by_uv(job, directory, folder, lock, paths, beat)
            options += ["--no-build-isolation-package", job.package.name]
        env = sdists.environment(job, directory, overlay)
        if overlay is not None or job.sdist.build.environment:
            # uv knows a wheel that it has built again by the sdist alone: not by its flags, nor by the
            # packages that it was built against.
            options.append("--no-cache")
        argv = [*uv.PIP, "install", "--verbose", *_at(directory), *options, "-r", listed]
        with logs.Log(directory, sdists.log_name(job)) as log:
            mode = {"UV_LINK_MODE": "copy"} if "--no-cache" in options else _link_mode(directory)
            result = uv.run_offline(argv, {**env, **mode}, log, beat)
        _judge(job, result, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_pip(
    job: Job, directory: Path, lock: Lockfile, fetcher: Fetcher, beat: Beat = None
) -> None:
    """The same with the environment's own pip; the build's tools come from the lock, by hash."""
    folder = sdists.work_folder(directory, job)
    try:
        shelf, _ = _shelf(folder, job, lock, fetcher, beat)
        listed = _written(folder / "requirements.txt", pylock.for_pip(lock, [job.package]))
        overlay = _tools_by_pip(job, directory, folder, lock, shelf, beat)
        env = sdists.environment(job, directory, overlay)
        options: list[str | Path] = ["--verbose", "--no-build-isolation", "-r", listed]
        with logs.Log(directory, sdists.log_name(job)) as log:
            result = pip.run([*_pip(directory), *options], shelf, env, log, beat)
        _judge(job, result, log)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _shelf(
    folder: Path, job: Job, lock: Lockfile, fetcher: Fetcher, beat: Beat
) -> tuple[Path, dict[str, Path]]:
    """The sdist and all build tools of the lock in one folder, and where each file is, by sha256."""
    files = [job.package.file, *(tool.file for tool in lock.building)]
    shelf = arriving.shelf(folder / "shelf", files, fetcher, beat)
    return shelf, {file.sha256: shelf / file.name for file in files}


def _tools_by_uv(
    job: Job, directory: Path, folder: Path, lock: Lockfile, paths: dict[str, Path], beat: Beat
) -> Path:
    """The build's tools, in a folder beside the environment's packages: a build sees both."""
    overlay = folder / "tools"
    tools = sdists.tools_of(job, lock)
    if tools:
        listed = _written(folder / "pylock.tools.toml", pylock.for_uv(lock, tools, paths))
        argv = [*uv.PIP, "install", *_at(directory), "--no-deps", "--target", overlay, "-r", listed]
        with logs.Log(directory, sdists.log_name(job)) as log:
            _judge(job, uv.run_offline(argv, _link_mode(directory), log, beat), log)
    return overlay


def _tools_by_pip(
    job: Job, directory: Path, folder: Path, lock: Lockfile, shelf: Path, beat: Beat
) -> Path:
    overlay = folder / "tools"
    tools = sdists.tools_of(job, lock)
    if tools:
        listed = _written(folder / "tools.txt", pylock.for_pip(lock, tools))
        argv = [*_pip(directory), "--only-binary", ":all:", "--target", overlay, "-r", listed]
        with logs.Log(directory, sdists.log_name(job)) as log:
            _judge(job, pip.run(argv, shelf, {}, log, beat), log)
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

"""Installs a lock's files into an empty environment with uv.

uv gets each file's own address and its hash, and asks no index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ... import scratch
from ...exit_codes import CouldNotLook, PutBack
from ...findings.shell import word
from .. import places, pylock
from ..bundle.reading import Bundle
from ..catalogue.model import Stack
from ..downloads import Downloads
from ..lockfile import LockedFile, LockedPackage, Lockfile
from . import child_env, contents, logs, sdists, uv, uv_compile, uv_watch
from .indexes import Indexes

# uv knows a wheel that it has built again by the sdist alone: not by its flags, nor by the packages that it
# was built against.
_BUILDING = ("--verbose", "--no-build-isolation", "--no-cache", "--link-mode", "copy")

Arguments = Sequence[str | Path]


class FileSource(NamedTuple):
    """Where the files come from. indexes: None: no network, all are in the bundle or downloaded."""

    downloads: Downloads
    indexes: Indexes | None
    bundle: Bundle | None = None

    def url(self, file: LockedFile) -> str:
        if self.bundle is not None:
            return self.bundle.path(file).as_uri()
        return self.downloads.path(file).as_uri() if self.downloads.has(file) else file.url


class InstallTarget(NamedTuple):
    """An environment that is being installed into. seen: gets uv's lines as they come."""

    directory: Path
    source: FileSource
    seen: Callable[[list[str]], None] = lambda lines: None

    @property
    def linked(self) -> bool:
        """Hard links take neither time nor room, and need one file system."""
        places.uv_cache().mkdir(parents=True, exist_ok=True)
        return places.uv_cache().stat().st_dev == self.directory.stat().st_dev


def install(target: InstallTarget, lock: Lockfile, stack: Stack) -> None:
    """Install everything that the lock names.

    Raises Cannot for what may not be built, PutBack with uv's own words.
    """
    jobs = sdists.jobs(lock, stack)
    log = logs.path(target.directory, "install.log")
    wheels = [package for package in lock.packages if package.file.kind == "wheel"]
    result = _install_wheels(target, wheels, log)
    if not result.ok:
        raise PutBack(
            f"uv could not install {len(lock.packages)} packages into {target.directory}: "
            f"{uv.sentence(result)}",
            hint=f"the whole log is in {log}",
        )
    for job in jobs:
        _build(target, lock, job)


def _build(target: InstallTarget, lock: Lockfile, job: sdists.Job) -> None:
    """Build an sdist without a network, with its tools in a folder beside the environment's packages."""
    log = logs.path(target.directory, f"build-{job.package.name}.log")
    target = InstallTarget(target.directory, target.source)  # a build's output is no progress
    if target.source.bundle is None:
        target.source.downloads.fetch([job.package.file])
    with scratch.directory() as folder:
        if tools := sdists.tools_of(job, lock):
            result = _install_wheels(target, tools, log, folder)
            if not result.ok:
                raise sdists.failure(job, result, log)
        env = sdists.environment(job, target.directory, folder)
        result = _run(target, [job.package], log, _BUILDING, None, env)
    if not result.ok:
        raise sdists.failure(job, result, log)


def _install_wheels(
    target: InstallTarget, packages: Sequence[LockedPackage], log: Path, folder: Path | None = None
) -> Any:
    """Fetch and install wheels: a ``process.Result``. folder: for them, in place of the environment.

    Raises PutBack where one is not what was unpacked from it.
    """
    site = folder or next(target.directory.glob("lib/python*/site-packages"))
    before = contents.files(site)
    options: Arguments = ["--target", folder] if folder else []
    result = _run(target, packages, log, options, target.source.indexes)
    if result.ok and (different := contents.differing(site, before, linked=target.linked)):
        more = f" and {len(different) - 1} more" if different[1:] else ""
        raise PutBack(
            f"{different[0]}{more} is not what its wheel holds: the unpacked copy in uv's cache was"
            " changed",
            hint=f"remove the cache, and install again: rm -r {word(str(places.uv_cache()))}",
        )
    return result


def _run(
    target: InstallTarget,
    packages: Sequence[LockedPackage],
    log: Path,
    options: Arguments,
    indexes: Indexes | None,
    env: Mapping[str, str] | None = None,
) -> Any:
    """One run of uv: a ``process.Result``. indexes: whose files may be fetched; None: no network."""
    watch = uv_watch.Watch("the server of the packages")
    fetched = False

    def seen(lines: list[str]) -> None:
        nonlocal fetched
        fetched = fetched or any(line.startswith("Prepared ") for line in lines)
        target.seen(lines)

    def look(pid: int) -> None:
        if not fetched:
            watch(pid)

    with scratch.directory() as folder:
        listed, config = folder / "pylock.uv.toml", folder / "uv.toml"
        listed.write_text(pylock.for_uv(packages, target.source.url), encoding="utf-8")
        config.write_text(uv_compile.index_settings(target.source.indexes), encoding="utf-8")
        argv = [*uv.program(), "--config-file", config, "--preview-features", "pylock"]
        argv += ["--offline"] if indexes is None else []
        argv += ["pip", "install", "--no-deps", "--python", target.directory / "bin" / "python"]
        settings = {**uv.settings(), "UV_LINK_MODE": "hardlink" if target.linked else "copy"}
        if indexes is not None:
            settings |= child_env.online(folder) | uv_compile.access(indexes)
            settings["UV_HTTP_RETRIES"] = "5"
        try:
            return logs.run(
                [*argv, "-r", listed, *options],
                log=log,
                env={**settings, **(env or {}), "TMPDIR": str(folder)},
                deadline=uv.DEADLINE,
                seen=seen,
                watch=None if indexes is None else look,
            )
        except CouldNotLook as error:
            raise PutBack(str(error), error.hint) from None

"""Installs a lock's files into an empty environment with uv.

uv gets each file's own address and its hash, and asks no index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from ... import scratch
from ...exit_codes import CouldNotLook, PutBack
from ...findings.shell import word
from .. import places, pylock
from ..catalogue.model import Stack
from ..downloads import Downloads
from ..lockfile import LockedFile, LockedPackage, Lockfile
from ..progress import Meter
from . import child_env, contents, logs, sdists, uv, uv_compile, uv_watch
from .indexes import Indexes

_TRIES = 3  # of a run that could not fetch a file which can be had
# uv knows a wheel that it has built again by the sdist alone: not by its flags, nor by the packages that it
# was built against.
_BUILDING = ("--verbose", "--no-build-isolation", "--no-cache", "--link-mode", "copy")


class FileSource(NamedTuple):
    """Where the files come from. indexes: None without a network; then all are in ``downloads``."""

    downloads: Downloads
    indexes: Indexes | None

    def url(self, file: LockedFile) -> str:
        return self.downloads.path(file).as_uri() if self.downloads.has(file) else file.url


class FetchProgress:
    """What the output of uv shows of the fetching.

    sizes: bytes by package, of those that are to be fetched. fetched: called when all are there.
    """

    def __init__(
        self, sizes: Mapping[str, int], meter: Meter, fetched: Callable[[], None] = lambda: None
    ) -> None:
        self._sizes = sizes
        self._meter = meter
        self._fetched = fetched
        self._running: list[str] = []
        self._done = 0
        self.all_there = False

    def __call__(self, lines: list[str]) -> None:
        for line in lines:
            verb, _, what = line.strip().partition(" ")
            name = canonicalize_name(what.partition(" ")[0])  # "torch (800.0MiB)"
            if verb == "Downloading":
                self._running.append(name)
            elif verb == "Downloaded" and name in self._running:
                self._running.remove(name)
                self._done += self._sizes.get(name, 0)
            elif verb == "Prepared":
                self.all_there = True
                self._fetched()
        if self._running and not self.all_there:
            self._meter(self._done, sum(self._sizes.values()), ", ".join(self._running[:3]))


def install(
    directory: Path, lock: Lockfile, stack: Stack, source: FileSource, progress: FetchProgress
) -> None:
    """Install everything that the lock names.

    Raises Cannot for what may not be built, PutBack with uv's own words.
    """
    jobs = sdists.jobs(lock, stack)
    log = logs.path(directory, "install.log")
    wheels = [package for package in lock.packages if package.file.kind == "wheel"]
    result = _install_wheels(directory, source, wheels, log, progress)
    if not result.ok:
        raise PutBack(
            f"uv could not install {len(lock.packages)} packages into {directory}: "
            f"{uv.sentence(result)}",
            hint=f"the whole log is in {log}",
        )
    for job in jobs:
        _build(directory, lock, job, source, progress)


def _build(
    directory: Path, lock: Lockfile, job: sdists.Job, source: FileSource, progress: FetchProgress
) -> None:
    """Build an sdist without a network, with its tools in a folder beside the environment's packages."""
    log = logs.path(directory, f"build-{job.package.name}.log")
    source.downloads.fetch([job.package.file])
    with scratch.directory() as folder:
        if tools := sdists.tools_of(job, lock):
            result = _install_wheels(directory, source, tools, log, progress, folder)
            if not result.ok:
                raise sdists.failure(job, result, log)
        env = sdists.environment(job, directory, folder)
        result = _run(directory, source, [job.package], log, _BUILDING, env=env)
    if not result.ok:
        raise sdists.failure(job, result, log)


def _install_wheels(
    directory: Path,
    source: FileSource,
    packages: Sequence[LockedPackage],
    log: Path,
    progress: FetchProgress,
    target: Path | None = None,
) -> Any:
    """Fetch and install wheels: a ``process.Result``. target: a folder for them, in place of the environment.

    Raises PutBack where one cannot be fetched, or is not what was unpacked from it.
    """
    site = target or next(directory.glob("lib/python*/site-packages"))
    before = contents.files(site)
    options: list[str | Path] = [] if target is None else ["--target", target]
    for _ in range(_TRIES):
        result = _run(directory, source, packages, log, options, progress=progress)
        if result.ok or not _can_be_fetched(result, packages, source.indexes):
            break
    if result.ok and (different := contents.differing(site, before, linked=_linked(directory))):
        more = f" and {len(different) - 1} more" if different[1:] else ""
        raise PutBack(
            f"{different[0]}{more} is not what its wheel holds: the unpacked copy in uv's cache was"
            " changed",
            hint=f"remove the cache, and install again: rm -r {word(str(places.uv_cache()))}",
        )
    return result


def _run(
    directory: Path,
    source: FileSource,
    packages: Sequence[LockedPackage],
    log: Path,
    options: Sequence[str | Path],
    *,
    progress: FetchProgress | None = None,
    env: Mapping[str, str] | None = None,
) -> Any:
    """One run of uv: a ``process.Result``. Only with ``progress`` it may use the network."""
    indexes = source.indexes if progress is not None else None
    watch = uv_watch.Watch("the server of the packages")

    def look(pid: int) -> None:
        if progress is not None and not progress.all_there:
            watch(pid)

    with scratch.directory() as folder:
        listed, config = folder / "pylock.uv.toml", folder / "uv.toml"
        listed.write_text(pylock.for_uv(packages, source.url), encoding="utf-8")
        config.write_text(uv_compile.index_settings(source.indexes), encoding="utf-8")
        argv = [*uv.program(), "--config-file", config, "--preview-features", "pylock"]
        argv += ["--offline"] if indexes is None else []
        argv += ["pip", "install", "--no-deps", "--python", directory / "bin" / "python"]
        settings = {**uv.settings(), "UV_LINK_MODE": "hardlink" if _linked(directory) else "copy"}
        if indexes is not None:
            settings |= child_env.online(folder) | uv_compile.access(indexes)
            settings["UV_HTTP_RETRIES"] = "5"
        try:
            return logs.run(
                [*argv, "-r", listed, *options],
                log=log,
                env={**settings, **(env or {}), "TMPDIR": str(folder)},
                deadline=uv.DEADLINE,
                seen=progress or (lambda lines: None),
                watch=None if indexes is None else look,
            )
        except CouldNotLook as error:
            raise PutBack(str(error), error.hint) from None


def _can_be_fetched(
    result: Any, packages: Sequence[LockedPackage], indexes: Indexes | None
) -> bool:
    """Whether a file is named that uv did not get, but that can be had: it may try again.

    Raises PutBack with why a file cannot be had.
    """
    output = (result.stdout + result.stderr).decode("utf-8", "replace")
    urls = [one.file.url for one in packages if one.file.url in output]
    if indexes is None or not urls:
        return False
    for url in urls:
        try:
            indexes.ask(url)
        except CouldNotLook as error:
            name = url.rpartition("/")[2]
            raise PutBack(f"{name} could not be fetched: {error}", error.hint) from None
    return "ash mismatch" not in output and "Size mismatch" not in output


def _linked(directory: Path) -> bool:
    """Hard links take neither time nor room, and need one file system."""
    places.uv_cache().mkdir(parents=True, exist_ok=True)
    return places.uv_cache().stat().st_dev == directory.stat().st_dev

"""Installs a lock's files into an empty environment, with uv or with pip: the wheels as they arrive, and what
is built after them. Neither is ever given an index."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import scratch
from ...exit_codes import Cannot, PutBack
from ...findings.shell import word
from .. import places, pylock
from ..catalogue.model import Stack
from ..lockfile import LockedFile, LockedPackage, Lockfile
from ..request import Request
from . import child_env, logs, sdists, uv
from .unpacked import Unpacked

if TYPE_CHECKING:
    from ..store.fetch import Fetcher

# A portion starts the installer once, which takes some hundredths of a second.
ENOUGH = 64 * 1024 * 1024  # bytes
PATIENCE = 0.5  # seconds that less than enough waits for more
_LOOK = 0.02  # seconds between two looks

Arguments = Sequence[str | Path]


def installer(request: Request, lock: Lockfile | None = None) -> str:
    """ "uv 0.13.9" or "pip 21.3.1": what will install."""
    if _with_uv(request):
        return uv.described()
    own = None if lock is None else _pip_of(lock)
    return "pip" if own is None else f"pip {own.version}"


def install(
    directory: Path,
    lock: Lockfile,
    stack: Stack,
    request: Request,
    fetcher: Fetcher,
    fetched: Callable[[], None] = lambda: None,
) -> None:
    """Everything that the lock names. fetched: called when all wheels are there.

    Raises Cannot for what may not be built and for a lock without pip where that installs, PutBack with the
    installer's own words, and the error of a file that does not come.
    """
    jobs = sdists.jobs(lock, stack)
    tool = Uv(directory, lock) if _with_uv(request) else Pip(directory, lock, fetcher)
    wheels = [package for package in lock.packages if package.file.kind == "wheel"]
    log = logs.path(directory, "install.log")
    there = 0
    with tool.unpacked(_site_of(directory), directory) as unpacked:
        for paths in portions([wheel.file for wheel in wheels], fetcher):
            portion = [wheel for wheel in wheels if wheel.file.sha256 in paths]
            there += len(portion)
            if there == len(wheels):
                fetched()
            result = tool.run(portion, paths, log)
            if not result.ok:
                raise PutBack(
                    f"{tool.name} could not install {len(lock.packages)} packages into {directory}: "
                    f"{tool.words(result)}",
                    hint=f"the whole log is in {log}",
                )
            _add(unpacked, paths)
        _compare(unpacked)
    for job in jobs:
        _build(job, tool, fetcher)


def _build(job: sdists.Job, tool: Installer, fetcher: Fetcher) -> None:
    """An sdist, with its tools in a folder beside the environment's packages: the build sees both."""
    log = logs.path(tool.directory, f"build-{job.package.name}.log")
    tools = sdists.tools_of(job, tool.lock)
    paths: dict[str, Path] = {}
    for portion in portions([job.package.file, *(one.file for one in tools)], fetcher):
        paths |= portion
    with scratch.directory() as folder:
        if tools:
            with tool.unpacked(folder, folder) as unpacked:
                result = tool.run(tools, paths, log, ["--target", folder])
                if not result.ok:
                    raise sdists.failure(job, result, log)
                _add(unpacked, {tool.file.sha256: paths[tool.file.sha256] for tool in tools})
                _compare(unpacked)
        env = sdists.environment(job, tool.directory, folder)
        result = tool.run([job.package], paths, log, ["--verbose", *tool.building], env)
    if not result.ok:
        raise sdists.failure(job, result, log)


def _site_of(directory: Path) -> Path:
    return next(directory.glob("lib/python*/site-packages"))


def _add(unpacked: Unpacked | None, paths: Mapping[str, Path]) -> None:
    if unpacked is not None:
        for wheel in paths.values():
            unpacked.add(wheel)


def _compare(unpacked: Unpacked | None) -> None:
    """Raises PutBack where what was installed is not what the wheels hold."""
    differing = unpacked.differing() if unpacked is not None else []
    if differing:
        more = f" and {len(differing) - 1} more" if differing[1:] else ""
        raise PutBack(
            f"{differing[0]}{more} is not what its wheel holds: the unpacked copy in uv's cache was changed",
            hint=f"remove the cache, and install again: rm -r {word(str(places.uv_cache()))}",
        )


class Installer(ABC):
    """A tool that puts verified files, given by path, into one environment."""

    name: str
    building: Arguments  # the options of a build

    def __init__(self, directory: Path, lock: Lockfile) -> None:
        self.directory = directory
        self.lock = lock
        self.python = directory / "bin" / "python"

    def run(
        self,
        packages: Sequence[LockedPackage],
        paths: Mapping[str, Path],
        log: Path,
        options: Arguments = (),
        env: Mapping[str, str] | None = None,
    ) -> Any:
        """Install these: a ``process.Result``. paths: where their files are, by sha256."""
        with scratch.directory() as folder:
            argv = [*self.command(packages, paths, folder), *options]
            whole = {**self.settings(), **(env or {}), "TMPDIR": str(folder)}
            return logs.run(argv, log=log, env=whole, deadline=uv.DEADLINE)

    @abstractmethod
    def command(
        self, packages: Sequence[LockedPackage], paths: Mapping[str, Path], folder: Path
    ) -> list[str | Path]:
        """The command line. folder: for a file that lists the packages."""

    def unpacked(self, site: Path, prefix: Path) -> AbstractContextManager[Unpacked | None]:
        """Holds what is installed there against the wheels; None where it comes out of them at once."""
        return nullcontext()

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """The tool's variables."""

    @staticmethod
    @abstractmethod
    def words(result: Any) -> str:
        """Why a run failed, in its own words."""


class Uv(Installer):
    name = "uv"
    # uv knows a wheel that it has built again by the sdist alone: not by its flags, nor by the packages that
    # it was built against.
    building = ("--no-build-isolation", "--no-cache", "--link-mode", "copy")

    def command(
        self, packages: Sequence[LockedPackage], paths: Mapping[str, Path], folder: Path
    ) -> list[str | Path]:
        listed = folder / "pylock.uv.toml"
        listed.write_text(pylock.for_uv(packages, paths), encoding="utf-8")
        argv = uv.program()
        argv += ["--no-config", "--offline", "--preview-features", "pylock"]
        argv += ["pip", "install", "--no-index", "--no-deps", "--python", self.python]
        return [*argv, "-r", listed]

    def unpacked(self, site: Path, prefix: Path) -> AbstractContextManager[Unpacked | None]:
        return Unpacked(site, prefix)

    def settings(self) -> dict[str, str]:
        settings = uv.settings()
        # Hard links take neither time nor room, and want one file system.
        same = places.uv_cache().stat().st_dev == self.directory.stat().st_dev
        return {**settings, "UV_LINK_MODE": "hardlink" if same else "copy"}

    @staticmethod
    def words(result: Any) -> str:
        return uv.sentence(result)


class Pip(Installer):
    """pip, where uv does not run or is not wanted: the lock's own, started from its wheel.

    So pip's age is the lock's, not the interpreter's (3.6 brings 18.1, too old for manylinux2014), and the
    environment gets nothing that is not locked, as ensurepip's setuptools would be.
    """

    name = "pip"
    building = ("--no-build-isolation",)

    def __init__(self, directory: Path, lock: Lockfile, fetcher: Fetcher) -> None:
        super().__init__(directory, lock)
        own = _pip_of(lock)
        if own is None:
            raise Cannot(
                "without uv, packages are installed by the pip of the lock, and this lock has none",
                hint="install uv (python3 -m pip install uv), which needs no pip",
            )
        (paths,) = portions([own.file], fetcher)
        self._program = paths[own.file.sha256] / "pip"

    def command(
        self, packages: Sequence[LockedPackage], paths: Mapping[str, Path], folder: Path
    ) -> list[str | Path]:
        listed = folder / "requirements.txt"
        listed.write_text(pylock.for_pip(packages), encoding="utf-8")
        argv: list[str | Path] = [self.python, "-I", self._program, "install"]
        argv += ["--no-index", "--no-deps"]
        argv += ["--require-hashes", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
        argv += ["--no-warn-script-location", "-r", listed]
        for package in packages:
            argv += ["--find-links", paths[package.file.sha256].parent]
        return argv

    def settings(self) -> dict[str, str]:
        return child_env.plain()

    @staticmethod
    def words(result: Any) -> str:
        if result.outcome != "exited" or result.code < 0:
            return f"it {result.describe()}"
        text = result.stderr.decode("utf-8", "replace")
        told = text[max(0, text.find("ERROR: ")) :]
        return " ".join(told.replace("ERROR: ", "").split()) or f"it {result.describe()}"


def portions(wanted: Iterable[LockedFile], fetcher: Fetcher) -> Iterator[dict[str, Path]]:
    """Where the files are, by sha256, as they arrive: each once, so that one portion is unpacked while the
    next is fetched. Raises the FetchError of a file that does not come."""
    waiting = {file.sha256: file for file in wanted}
    since = time.monotonic()
    while waiting:
        transfers = {sha256: fetcher.want(file, first=True) for sha256, file in waiting.items()}
        for transfer in transfers.values():
            if transfer.error is not None:
                raise transfer.error
        here = [sha256 for sha256, transfer in transfers.items() if transfer.complete]
        ready = sum(transfers[sha256].total or 0 for sha256 in here)
        late = time.monotonic() - since >= PATIENCE
        if len(here) == len(waiting) or (here and (late or ready >= ENOUGH)):
            for sha256 in here:
                del waiting[sha256]
            yield {sha256: transfers[sha256].named() for sha256 in here}
            since = time.monotonic()
            continue
        time.sleep(_LOOK)


def _pip_of(lock: Lockfile) -> LockedPackage | None:
    return next((package for package in lock.packages if package.name == "pip"), None)


def _with_uv(request: Request) -> bool:
    return request.installer == "uv" and uv.binary() is not None

"""Installs a lock's files into an empty environment with uv, or with pip, which fetch them themselves.

Both get each file's own address and its hash, and neither asks an index.
"""

from __future__ import annotations

import html
import os
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from packaging.utils import canonicalize_name

from ... import scratch
from ...exit_codes import Cannot, CouldNotLook, PutBack
from ...findings.shell import word
from .. import places, pylock
from ..catalogue.model import Stack
from ..downloads import Downloads
from ..lockfile import LockedFile, LockedPackage, Lockfile
from ..progress import Meter
from ..request import Request
from . import child_env, contents, logs, sdists, uv, uv_compile, uv_watch
from .indexes import Indexes

Arguments = Sequence[str | Path]

_TRIES = 3  # of a run that could not fetch a file, as far as the file can be had


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
            elif verb == "Prepared" or line.startswith("Installing collected packages"):
                self.all_there = True
                self._fetched()
        if self._running and not self.all_there:
            self._meter(self._done, sum(self._sizes.values()), ", ".join(self._running[:3]))


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
    source: FileSource,
    progress: FetchProgress,
) -> None:
    """Install everything that the lock names.

    Raises Cannot for what may not be built and for a lock without pip if that installs, PutBack with the
    installer's own words.
    """
    jobs = sdists.jobs(lock, stack)
    if source.indexes is not None:
        for file in lock.files:
            source.indexes.session.permit(file.url)
    tool = (Uv if _with_uv(request) else Pip)(directory, lock, source)
    log = logs.path(directory, "install.log")
    wheels = [package for package in lock.packages if package.file.kind == "wheel"]
    result = tool.install(wheels, log, progress)
    if not result.ok:
        raise PutBack(
            f"{tool.name} could not install {len(lock.packages)} packages into {directory}: "
            f"{tool.words(result)}",
            hint=f"the whole log is in {log}",
        )
    for job in jobs:
        _build(job, tool, progress)


def _build(job: sdists.Job, tool: Installer, progress: FetchProgress) -> None:
    """Build an sdist without a network, with its tools in a folder beside the environment's packages."""
    log = logs.path(tool.directory, f"build-{job.package.name}.log")
    tools = sdists.tools_of(job, tool.lock)
    tool.source.downloads.fetch([job.package.file])
    with scratch.directory() as folder:
        if tools:
            result = tool.install(tools, log, progress, folder)
            if not result.ok:
                raise sdists.failure(job, result, log)
        env = sdists.environment(job, tool.directory, folder)
        options = ["--verbose", "--no-build-isolation", *tool.building]
        result = tool.run([job.package], log, options, env=env)
    if not result.ok:
        raise sdists.failure(job, result, log)


class Installer(ABC):
    """A tool that puts locked files into one environment."""

    name: str
    building: Arguments = ()  # further options of a build

    def __init__(self, directory: Path, lock: Lockfile, source: FileSource) -> None:
        self.directory = directory
        self.lock = lock
        self.source = source
        self.python = directory / "bin" / "python"

    def install(
        self,
        packages: Sequence[LockedPackage],
        log: Path,
        progress: FetchProgress,
        target: Path | None = None,
    ) -> Any:
        """Fetch and install wheels: a ``process.Result``. Raises PutBack where one cannot be fetched.

        target: a folder for them, in place of the environment.
        """
        options: list[str | Path] = [] if target is None else ["--target", target]
        for _ in range(_TRIES):
            result = self.run(packages, log, options, progress=progress)
            if result.ok or not self._can_be_fetched(result, packages):
                break
        return result

    def run(
        self,
        packages: Sequence[LockedPackage],
        log: Path,
        options: Arguments,
        *,
        progress: FetchProgress | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Any:
        """One run of the tool: a ``process.Result``. Only with ``progress`` it may use the network."""
        online = progress is not None and self.source.indexes is not None
        watch = uv_watch.Watch("the server of the packages")

        def look(pid: int) -> None:
            if progress is not None and not progress.all_there:
                watch(pid)

        with scratch.directory() as folder:
            settings = self.settings(folder, online)
            try:
                return logs.run(
                    [*self.command(packages, folder, online), *options],
                    log=log,
                    env={**settings, **(env or {}), "TMPDIR": str(folder)},
                    deadline=uv.DEADLINE,
                    seen=progress or (lambda lines: None),
                    watch=look if online else None,
                )
            except CouldNotLook as error:
                raise PutBack(str(error), error.hint) from None

    def _can_be_fetched(self, result: Any, packages: Sequence[LockedPackage]) -> bool:
        """Whether a file is named that the tool did not get, but that can be had: it may try again.

        Raises PutBack with why a file cannot be had.
        """
        whole = (result.stdout + result.stderr).decode("utf-8", "replace")
        indexes = self.source.indexes
        urls = [one.file.url for one in packages if one.file.url in whole]
        for url in urls if indexes else ():
            try:
                assert indexes is not None, "else there are no addresses"
                indexes.ask(url)
            except CouldNotLook as error:
                name = url.rpartition("/")[2]
                raise PutBack(f"{name} could not be fetched: {error}", error.hint) from None
        retry = "ash mismatch" not in whole and "Size mismatch" not in whole
        return bool(indexes and urls) and retry

    @abstractmethod
    def command(
        self, packages: Sequence[LockedPackage], folder: Path, online: bool
    ) -> list[str | Path]:
        """The command line. folder: for files that list the packages."""

    @abstractmethod
    def settings(self, folder: Path, online: bool) -> dict[str, str]:
        """The tool's variables. folder: for a file of certificates."""

    @staticmethod
    @abstractmethod
    def words(result: Any) -> str:
        """Why a run failed, in its own words."""


class Uv(Installer):
    name = "uv"
    # uv knows a wheel that it has built again by the sdist alone: not by its flags, nor by the packages that
    # it was built against.
    building = ("--no-cache", "--link-mode", "copy")

    def install(
        self,
        packages: Sequence[LockedPackage],
        log: Path,
        progress: FetchProgress,
        target: Path | None = None,
    ) -> Any:
        site = target or next(self.directory.glob("lib/python*/site-packages"))
        before = contents.files(site)
        result = super().install(packages, log, progress, target)
        different = contents.differing(site, before, linked=self._linked) if result.ok else []
        if different:
            more = f" and {len(different) - 1} more" if different[1:] else ""
            cache = word(str(places.uv_cache()))
            raise PutBack(
                f"{different[0]}{more} is not what its wheel holds: the unpacked copy in uv's cache was"
                " changed",
                hint=f"remove the cache, and install again: rm -r {cache}",
            )
        return result

    def command(
        self, packages: Sequence[LockedPackage], folder: Path, online: bool
    ) -> list[str | Path]:
        listed, config = folder / "pylock.uv.toml", folder / "uv.toml"
        listed.write_text(pylock.for_uv(packages, self.source.url), encoding="utf-8")
        config.write_text(uv_compile.index_settings(self.source.indexes), encoding="utf-8")
        argv = [*uv.program(), "--config-file", config, "--preview-features", "pylock"]
        argv += [] if online else ["--offline"]
        return [*argv, "pip", "install", "--no-deps", "--python", self.python, "-r", listed]

    def settings(self, folder: Path, online: bool) -> dict[str, str]:
        settings = {**uv.settings(), "UV_LINK_MODE": "hardlink" if self._linked else "copy"}
        if online and self.source.indexes is not None:
            settings |= child_env.online(folder) | uv_compile.access(self.source.indexes)
            settings["UV_HTTP_RETRIES"] = "5"
        return settings

    @property
    def _linked(self) -> bool:
        """Hard links take neither time nor room, and need one file system."""
        places.uv_cache().mkdir(parents=True, exist_ok=True)
        return places.uv_cache().stat().st_dev == self.directory.stat().st_dev

    @staticmethod
    def words(result: Any) -> str:
        return uv.sentence(result)


class Pip(Installer):
    """pip, where uv does not run or is not wanted: the lock's own, started from its wheel.

    So pip's age is the lock's, not the interpreter's (3.6 brings 18.1, too old for manylinux2014).
    """

    name = "pip"

    def __init__(self, directory: Path, lock: Lockfile, source: FileSource) -> None:
        super().__init__(directory, lock, source)
        own = _pip_of(lock)
        if own is None:
            raise Cannot(
                "without uv, packages are installed by the pip of the lock, and this lock has none",
                hint="install uv (python3 -m pip install uv), which needs no pip",
            )
        source.downloads.fetch([own.file])
        self._program = source.downloads.path(own.file) / "pip"

    def command(
        self, packages: Sequence[LockedPackage], folder: Path, online: bool
    ) -> list[str | Path]:
        listed, page = folder / "requirements.txt", folder / "files.html"
        listed.write_text(pylock.for_pip(packages), encoding="utf-8")
        links = [self._link(package.file) for package in packages]
        page.write_text("<!DOCTYPE html>\n<html><body>\n" + "\n".join(links) + "\n</body></html>\n")
        argv: list[str | Path] = [self.python, "-I", self._program, "install"]
        argv += ["--no-index", "--no-deps", "--find-links", page, "-r", listed]
        argv += ["--require-hashes", "--disable-pip-version-check", "--no-input"]
        argv += ["--cache-dir", places.cache() / "pip", "--no-warn-script-location"]
        hosts = self.source.indexes.insecure if self.source.indexes is not None else []
        return [*argv, *(option for host in hosts for option in ("--trusted-host", host))]

    def _link(self, file: LockedFile) -> str:
        url, indexes = self.source.url(file), self.source.indexes
        pair = None if indexes is None else indexes.session.credentials(url)
        if pair is not None and url.startswith("http"):
            parts = urlsplit(url)
            user = ":".join(quote(one, safe="") for one in pair)
            url = parts._replace(netloc=f"{user}@{parts.netloc}").geturl()
        return (
            f'<a href="{html.escape(url)}#sha256={file.sha256}">{html.escape(file.name)}</a><br/>'
        )

    def settings(self, folder: Path, online: bool) -> dict[str, str]:
        if not online:
            return child_env.plain()
        settings = {**child_env.plain(), **child_env.online(folder)}
        certificates = settings.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
        if certificates and os.path.isfile(certificates):  # noqa: PTH113 - old pips have their own list
            settings["PIP_CERT"] = certificates
        return settings

    @staticmethod
    def words(result: Any) -> str:
        if result.outcome != "exited" or result.code < 0:
            return f"it {result.describe()}"
        text = result.stderr.decode("utf-8", "replace")
        errors = text[max(0, text.find("ERROR: ")) :]
        return " ".join(errors.replace("ERROR: ", "").split()) or f"it {result.describe()}"


def _pip_of(lock: Lockfile) -> LockedPackage | None:
    return next((package for package in lock.packages if package.name == "pip"), None)


def _with_uv(request: Request) -> bool:
    return request.installer == "uv" and uv.binary() is not None

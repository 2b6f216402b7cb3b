"""What a catalogue file's values must mean, beyond their types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import NamedTuple
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ...data.versions import parse_version
from ..network.addresses import is_loopback, is_one_word
from .model import PUBLIC, Index, Release, Sdist, Stack

Path = tuple[str | int, ...]  # of a key: ("releases", 2, "python", 0)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LOADER = frozenset(("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME"))


class Mistake(NamedTuple):
    path: Path
    sentence: str


def mistakes(stack: Stack) -> Iterator[Mistake]:
    """Everything that is wrong with a stack whose types are right."""
    if wrong := _wrong_requirement(stack):
        yield Mistake(("requirement",), f'"{stack.requirement}" {wrong}')
    if not stack.releases:
        yield Mistake((), "the stack has no release: add one with [[releases]]")
    yield from _requirements(stack.constraints, ("constraints",), _constraint)
    yield from _environment(stack.environment, ("environment",))
    for name, how in stack.provides.items():
        if not _DISTRIBUTION.fullmatch(name) or not how.strip():
            yield Mistake(("provides", name), "this is not a package's name, and how it is given")
    for number, index in enumerate(stack.indexes):
        yield from _of_index(index, ("indexes", number))
    for number, sdist in enumerate(stack.sdists):
        yield from _of_sdist(sdist, ("sdists", number))
    for number, release in enumerate(stack.releases):
        yield from _of_release(release, ("releases", number))
    sdists = [f"{canonicalize_name(s.name)} {s.version}" for s in stack.sdists]
    versions = [parse_version(r.version) or r.version for r in stack.releases]
    yield from _twice([i.name for i in stack.indexes], "indexes", "name", "index")
    yield from _twice(sdists, "sdists", "name", "sdist")
    yield from _twice([r.release for r in stack.releases], "releases", "release", "release")
    yield from _twice(versions, "releases", "version", "release of version")


def _wrong_requirement(stack: Stack) -> str:
    if "{version}" not in stack.requirement:
        return "has no {version} for a release's version to go"
    try:
        parsed = Requirement(stack.requirement.replace("{version}", "1.0"))
    except InvalidRequirement as error:
        return f"is not a requirement: {_first_line(error)}"
    if str(parsed.specifier) != "==1.0":
        return "must pin the version with =={version}"
    same = canonicalize_name(parsed.name) == canonicalize_name(stack.distribution)
    return "" if same else f"asks for another package than {stack.distribution}"


def _of_index(index: Index, path: Path) -> Iterator[Mistake]:
    if index.name == PUBLIC:
        sentence = f'"{PUBLIC}" is the index that pip and uv are configured with'
        yield Mistake((*path, "name"), sentence)
    for number, url in enumerate(index.urls):
        if wrong := _wrong_url(url):
            yield Mistake((*path, "urls", number), wrong)


def _wrong_url(url: str) -> str:
    """Why an index's address is not taken; never with what may be a password in it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return "this is not a URL"
    if parts.username is not None or parts.password is not None:
        return f"an index's address holds no credentials; put those for {host} into netrc"
    if parts.scheme == "http" and not is_loopback(url):
        return f'"{url}" is not encrypted: an index must be https://'
    if parts.scheme not in ("http", "https") or not host or not is_one_word(url):
        return f'"{url}" is not an https:// address'
    if parts.query or parts.fragment:
        return f'"{url}" must end with the path of an index, without ? or #'
    return ""


def _of_sdist(sdist: Sdist, path: Path) -> Iterator[Mistake]:
    yield from _a_version(sdist.version, (*path, "version"))
    build = (*path, "build")
    yield from _requirements(sdist.build.requires, (*build, "requires"), _exact_pin)
    yield from _environment(sdist.build.environment, (*build, "environment"))


def _of_release(release: Release, path: Path) -> Iterator[Mistake]:
    for key in ("version", "driver", "cuda", "cudnn", "tensorrt"):
        if (value := getattr(release, key)) or key == "version":
            yield from _a_version(value, (*path, key))
    yield from _requirements(release.constraints, (*path, "constraints"), _constraint)
    yield from _requirements(release.extra_requirements, (*path, "extra-requirements"), _no_url)
    version = parse_version(release.version)
    if version is not None and version.is_prerelease and not release.prerelease:
        sentence = (
            f"{release.version} is a pre-release, and the release does not say prerelease = true"
        )
        yield Mistake((*path, "version"), sentence)
    if release.released:
        try:
            date.fromisoformat(release.released)
        except ValueError:
            sentence = f'"{release.released}" is not a date such as "2026-03-06"'
            yield Mistake((*path, "released"), sentence)


def _requirements(
    values: Sequence[str], path: Path, wrong: Callable[[Requirement], str]
) -> Iterator[Mistake]:
    for number, value in enumerate(values):
        try:
            reason = wrong(Requirement(value))
        except InvalidRequirement as error:
            reason = f"is not a requirement: {_first_line(error)}"
        if reason:
            yield Mistake((*path, number), f'"{value}" {reason}')


def _no_url(requirement: Requirement) -> str:
    return "names a URL, which no index policy covers" if requirement.url else ""


def _constraint(requirement: Requirement) -> str:
    if requirement.extras:
        return "has extras, and a constraint cannot have them"
    if not requirement.url and not requirement.specifier:
        return "says nothing of the version"
    return _no_url(requirement)


def _exact_pin(requirement: Requirement) -> str:
    pins = [s for s in requirement.specifier if s.operator == "==" and not s.version.endswith("*")]
    if requirement.url or len(pins) != 1 or len(requirement.specifier) != 1:
        return 'must be pinned exactly, as in "setuptools==59.6.0"'
    return ""


def _environment(values: dict[str, str], path: Path) -> Iterator[Mistake]:
    for name, value in values.items():
        wrong = ""
        if not _VARIABLE.fullmatch(name):
            wrong = f'"{name}" is not the name of a variable'
        elif name in _LOADER:
            wrong = f"{name} is left alone: programs outside the environment would get it too"
        elif "\n" in value or "\0" in value:
            wrong = f"the value of {name} must be a single line"
        if wrong:
            yield Mistake((*path, name), wrong)


def _twice(values: Sequence[object], table: str, key: str, what: str) -> Iterator[Mistake]:
    for number, value in enumerate(values):
        if value in values[:number]:
            yield Mistake((table, number, key), f'there is another {what} "{value}" above')


def _a_version(value: str, path: Path) -> Iterator[Mistake]:
    if parse_version(value) is None:
        yield Mistake(path, f'"{value}" is not a version (PEP 440)')


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".:")

"""What a catalogue file's values must mean, beyond their types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from typing import NamedTuple
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ...data.versions import parse_version
from ..network.addresses import is_loopback, is_one_word
from .model import PUBLIC, Index, Release, Sdist, Stack

Path = tuple[str | int, ...]  # of a key: ("releases", 2, "python", 0)

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")
_PATTERN = re.compile(r"(?:[a-z0-9*?-]|\[[a-z0-9-]+\])+")
_MINOR = re.compile(r"3\.\d+")
_GLIBC = re.compile(r"\d+\.\d+")
_CAPABILITY = re.compile(r"(?:sm|compute)_\d{2,3}[af]?")
_CHECK = re.compile(r"[A-Z]+-\d{3}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_WORD = re.compile(r"[a-z0-9_.+-]+")
_LOADER = frozenset(("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME"))


class Mistake(NamedTuple):
    path: Path
    sentence: str


def mistakes(stack: Stack) -> Iterator[Mistake]:
    """Everything that is wrong with a stack whose types are right."""
    yield from _of_stack(stack)
    for number, index in enumerate(stack.indexes):
        yield from _of_index(index, ("indexes", number))
    yield from _twice([i.name for i in stack.indexes], "indexes", "name", "index")
    for number, sdist in enumerate(stack.sdists):
        yield from _of_sdist(sdist, ("sdists", number))
    names = [f"{canonicalize_name(s.name)} {s.version}" for s in stack.sdists]
    yield from _twice(names, "sdists", "name", "sdist")
    for number, release in enumerate(stack.releases):
        yield from _of_release(release, ("releases", number))
    yield from _twice([r.release for r in stack.releases], "releases", "release", "release")
    versions = [parse_version(r.version) or r.version for r in stack.releases]
    yield from _twice(versions, "releases", "version", "release of version")


def _of_stack(stack: Stack) -> Iterator[Mistake]:
    yield from _fits(_NAME, stack.name, ("name",), "a name such as my-stack")
    yield from _fits(_DISTRIBUTION, stack.distribution, ("distribution",), "a package's name")
    yield from _of_requirement(stack)
    for key in ("title", "source"):
        yield from _filled(getattr(stack, key), (key,))
    if not stack.architectures:
        yield Mistake(("architectures",), '"architectures" is empty: name a machine, ["x86_64"]')
    if not stack.releases:
        yield Mistake((), "the stack has no release: add one with [[releases]]")
    yield from _all(_WORD, stack.architectures, ("architectures",), 'a machine such as "x86_64"')
    yield from _all(_WORD, stack.cpu_flags, ("cpu-flags",), 'a CPU flag such as "avx"')
    yield from _all(_CHECK, stack.must_pass, ("must-pass",), 'a check such as "FRM-001"')
    yield from _all(_NAME, stack.otherwise, ("otherwise",), "the name of a stack")
    yield from _requirements(stack.constraints, ("constraints",), _constraint)
    yield from _environment(stack.environment, ("environment",))
    for name, how in stack.provides.items():
        yield from _fits(_DISTRIBUTION, name, ("provides", name), "a package's name")
        yield from _filled(how, ("provides", name))


def _of_requirement(stack: Stack) -> Iterator[Mistake]:
    path: Path = ("requirement",)
    if "{version}" not in stack.requirement:
        yield Mistake(
            path, f'"{stack.requirement}" has no {{version}} for a release\'s version to go'
        )
        return
    try:
        parsed = Requirement(stack.requirement.replace("{version}", "1.0"))
    except InvalidRequirement as error:
        yield Mistake(path, f'"{stack.requirement}" is not a requirement: {_first_line(error)}')
        return
    if str(parsed.specifier) != "==1.0":
        yield Mistake(path, f'"{stack.requirement}" must pin the version with =={{version}}')
    if canonicalize_name(parsed.name) != canonicalize_name(stack.distribution):
        yield Mistake(
            path, f'"{stack.requirement}" asks for another package than {stack.distribution}'
        )


def _of_index(index: Index, path: Path) -> Iterator[Mistake]:
    yield from _fits(_NAME, index.name, (*path, "name"), "a name such as nvidia")
    if index.name == PUBLIC:
        yield Mistake(
            (*path, "name"), f'"{PUBLIC}" is the index that pip and uv are configured with'
        )
    yield from _filled(index.source, (*path, "source"))
    for key, values in (("urls", index.urls), ("packages", index.packages)):
        if not values:
            yield Mistake((*path, key), f'"{key}" of the index {index.name} is empty')
    for number, url in enumerate(index.urls):
        if wrong := _wrong_url(url):
            yield Mistake((*path, "urls", number), wrong)
    wanted = 'a pattern on normalised package names such as "nvidia-*"'
    yield from _all(_PATTERN, index.packages, (*path, "packages"), wanted)
    yield from _all(_PATTERN, index.but_not, (*path, "but-not"), wanted)


def _wrong_url(url: str) -> str:
    """Why an index's address is not taken; never with what may be a password in it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return "this is not a URL"
    if parts.username is not None or parts.password is not None:
        return (
            f"an index's address holds no credentials; put those for {host} into netrc or a keyring"
        )
    if parts.scheme == "http" and not is_loopback(url):
        return f'"{url}" is not encrypted: an index must be https://'
    if parts.scheme not in ("http", "https") or not host or not is_one_word(url):
        return f'"{url}" is not an https:// address'
    if parts.query or parts.fragment:
        return f'"{url}" must end with the path of an index, without ? or #'
    return ""


def _of_sdist(sdist: Sdist, path: Path) -> Iterator[Mistake]:
    yield from _fits(_DISTRIBUTION, sdist.name, (*path, "name"), "a package's name")
    yield from _a_version(sdist.version, (*path, "version"))
    yield from _fits(
        _SHA256, sdist.sha256, (*path, "sha256"), "64 hexadecimal digits, in lower case"
    )
    for key in ("why", "source"):
        yield from _filled(getattr(sdist, key), (*path, key))
    build = (*path, "build")
    yield from _requirements(sdist.build.requires, (*build, "requires"), _exact_pin)
    yield from _environment(sdist.build.environment, (*build, "environment"))
    wanted = 'a program\'s name such as "cmake"'
    yield from _all(_WORD, sdist.build.programs, (*build, "programs"), wanted)


def _of_release(release: Release, path: Path) -> Iterator[Mistake]:
    yield from _fits(_RELEASE, release.release, (*path, "release"), 'a name such as "2.21.0"')
    yield from _a_version(release.version, (*path, "version"))
    yield from _filled(release.source, (*path, "source"))
    if not release.python:
        yield Mistake((*path, "python"), f'release {release.release} has no Python: ["3.11"]')
    yield from _all(_MINOR, release.python, (*path, "python"), 'a minor version such as "3.11"')
    for key in ("driver", "cuda", "cudnn", "tensorrt"):
        if value := getattr(release, key):
            yield from _a_version(value, (*path, key))
    if release.glibc:
        yield from _fits(_GLIBC, release.glibc, (*path, "glibc"), 'a version such as "2.17"')
    wanted = 'a capability such as "sm_80" or "compute_90"'
    at = (*path, "compute-capabilities")
    yield from _all(_CAPABILITY, release.compute_capabilities, at, wanted)
    yield from _requirements(release.constraints, (*path, "constraints"), _constraint)
    yield from _requirements(release.extra_requirements, (*path, "extra-requirements"), _no_url)
    yield from _of_facts(release, path)


def _of_facts(release: Release, path: Path) -> Iterator[Mistake]:
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
    for key, size in (
        ("download-mib", release.download_mib),
        ("installed-mib", release.installed_mib),
    ):
        if size < 0:
            yield Mistake((*path, key), "a size cannot be negative")


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
        yield from _fits(_VARIABLE, name, (*path, name), "a variable's name")
        if name in _LOADER:
            sentence = f"{name} is left alone: programs outside the environment would get it too"
            yield Mistake((*path, name), sentence)
        if "\n" in value or "\0" in value:
            yield Mistake((*path, name), f"the value of {name} must be a single line")


def _fits(pattern: re.Pattern[str], value: str, path: Path, wanted: str) -> Iterator[Mistake]:
    if not pattern.fullmatch(value):
        yield Mistake(path, f'"{value}" is not {wanted}')


def _all(
    pattern: re.Pattern[str], values: Iterable[str], path: Path, wanted: str
) -> Iterator[Mistake]:
    seen = set()
    for number, value in enumerate(values):
        yield from _fits(pattern, value, (*path, number), wanted)
        if value in seen:
            yield Mistake((*path, number), f'"{value}" stands here twice')
        seen.add(value)


def _twice(values: Sequence[object], table: str, key: str, what: str) -> Iterator[Mistake]:
    for number, value in enumerate(values):
        if value in values[:number]:
            yield Mistake((table, number, key), f'there is another {what} "{value}" above')


def _filled(value: str, path: Path) -> Iterator[Mistake]:
    if not value.strip():
        yield Mistake(path, f'"{path[-1]}" is empty')


def _a_version(value: str, path: Path) -> Iterator[Mistake]:
    if parse_version(value) is None:
        yield Mistake(path, f'"{value}" is not a version (PEP 440)')


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".:")

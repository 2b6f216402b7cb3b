"""From a catalogue file's text to a Stack; each error is one sentence with the file and the key's path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, get_args
from urllib.parse import urlsplit

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data.versions import parse_version
from ...exit_codes import UsageError
from ...suggestions import did_you_mean
from ..network.addresses import is_loopback, is_one_word
from . import model
from .model import PUBLIC, Build, Index, Release, Sdist, Stack

Path = tuple[str | int, ...]  # of a key: ("releases", 2, "python", 0)

_FORM = "envcheck explain stack-file describes the form"
_TOO_LONG = re.compile(r"[0-9]{200}")  # three times a sha256; Python refuses 4,300 digits
_TABLES = (Stack, Index, Sdist, Build, Release)
_FORMS = {
    repr(meta.pattern)[1:-1]: meta.title
    for form in vars(model).values()
    for meta in get_args(form)[1:]
    if isinstance(meta, msgspec.Meta)
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOADER = frozenset(("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME"))


def read(text: str, where: str) -> Stack:
    """The stack that ``text`` describes, its releases newest first; ``where`` names the file in errors.

    Raises UsageError that points at the first mistake: of TOML, of the schema, or of what a value means.
    """
    data = _parsed(text, where)
    try:
        stack = msgspec.convert(data, Stack)
    except msgspec.ValidationError as error:
        raise _schema_error(str(error), data, where) from None
    for path, sentence in _mistakes(stack):
        raise mistake(where, path, sentence)
    newest_first = sorted(stack.releases, key=lambda one: Version(one.version), reverse=True)
    return msgspec.structs.replace(stack, releases=newest_first)


def mistake(where: str, path: Path, sentence: str) -> UsageError:
    """ "my.toml: releases[1].python[0]: …"; the first release is releases[0]."""
    at = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    place = f"{where}: {at.removeprefix('.')}" if at else where
    return UsageError(f"{place}: {sentence}", _FORM)


def _parsed(text: str, where: str) -> dict[str, Any]:
    import tomli

    if long := _TOO_LONG.search(text):  # also in text, where versions are read as numbers
        line = text.count("\n", 0, long.start()) + 1
        raise UsageError(f"{where}:{line}: this is no stack: a number in it is too long")
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        sentence = f"this is not TOML: {error.msg[:1].lower()}{error.msg[1:]}"
        raise UsageError(f"{where}:{error.lineno}:{error.colno}: {sentence}", _FORM) from None
    except RecursionError:
        raise UsageError(f"{where}: this is no stack: it is nested too deeply") from None


def _schema_error(message: str, data: Any, where: str) -> UsageError:
    what, _, at = message.partition(" - at `$")
    path = _path(at.rstrip("`"), data)
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        known = {field.encode_name for kind in _TABLES for field in msgspec.structs.fields(kind)}
        meant = did_you_mean(found[1].replace("_", "-"), known)
        return mistake(where, (*path, found[1]), f'"{found[1]}" is no key here{meant}')
    if found := re.fullmatch(r"Object missing required field `(.*)`", what):
        return mistake(where, path, f'"{found[1]}" is missing')
    if found := re.fullmatch(r"Expected `str` matching regex '(.*)'", what):
        return mistake(where, path, f'"{_at(data, path)}" is not {_FORMS[found[1]]}')
    return mistake(where, path, what)


def _path(at: str, data: Any) -> Path:
    """``.releases[0].python[1]`` as a path. Of a table with free keys, ``[...]`` is the first wrong one."""
    path: Path = ()
    for key, index in re.findall(r"\.([\w-]+)|\[(\d+|\.\.\.)\]", at):
        if index == "...":
            key = next((k for k, v in _at(data, path).items() if not isinstance(v, str)), "")
        path = (*path, int(index) if index.isdigit() else key)
    return path


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _mistakes(stack: Stack) -> Iterator[tuple[Path, str]]:
    """What is wrong with the values of a stack whose types are right."""
    if wrong := _wrong_requirement(stack):
        yield ("requirement",), f'"{stack.requirement}" {wrong}'
    if not stack.releases:
        yield (), "the stack has no release: add one with [[releases]]"
    yield from _requirements(stack.constraints, ("constraints",), _constraint)
    yield from _environment(stack.environment, ("environment",))
    for number, index in enumerate(stack.indexes):
        path: Path = ("indexes", number)
        if index.name == PUBLIC:
            yield (*path, "name"), f'"{PUBLIC}" is the index that pip and uv are configured with'
        for place, url in enumerate(index.urls):
            if wrong := _wrong_url(url):
                yield (*path, "urls", place), wrong
    for number, sdist in enumerate(stack.sdists):
        path = ("sdists", number)
        yield from _version(sdist.version, (*path, "version"))
        yield from _requirements(sdist.build.requires, (*path, "build", "requires"), _exact_pin)
        yield from _environment(sdist.build.environment, (*path, "build", "environment"))
    names = [release.release for release in stack.releases]
    for number, release in enumerate(stack.releases):
        path = ("releases", number)
        if release.release in names[:number]:
            yield (*path, "release"), f'there is another release "{release.release}" above'
        yield from _of_release(release, path)


def _of_release(release: Release, path: Path) -> Iterator[tuple[Path, str]]:
    for key in ("version", "driver", "cuda", "cudnn", "tensorrt"):
        if (value := getattr(release, key)) or key == "version":
            yield from _version(value, (*path, key))
    yield from _requirements(release.constraints, (*path, "constraints"), _constraint)
    yield from _requirements(release.extra_requirements, (*path, "extra-requirements"), _no_url)
    version = parse_version(release.version)
    if version is not None and version.is_prerelease and not release.prerelease:
        why = f"{release.version} is a pre-release, and the release does not say prerelease = true"
        yield (*path, "version"), why


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


def _wrong_url(url: str) -> str:
    """Why an index's address is not taken; never with what may be a password in it."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
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


def _requirements(
    values: list[str], path: Path, wrong: Callable[[Requirement], str]
) -> Iterator[tuple[Path, str]]:
    for number, value in enumerate(values):
        try:
            reason = wrong(Requirement(value))
        except InvalidRequirement as error:
            reason = f"is not a requirement: {_first_line(error)}"
        if reason:
            yield (*path, number), f'"{value}" {reason}'


def _no_url(requirement: Requirement) -> str:
    return "names a URL, which no index policy covers" if requirement.url else ""


def _constraint(requirement: Requirement) -> str:
    if requirement.extras:
        return "has extras, and a constraint cannot have them"
    if not requirement.url and not requirement.specifier:
        return "says nothing of the version"
    return _no_url(requirement)


def _exact_pin(requirement: Requirement) -> str:
    exact = re.fullmatch(r"==[^=*,]+", str(requirement.specifier)) and not requirement.url
    return "" if exact else 'must be pinned exactly, as in "setuptools==59.6.0"'


def _environment(values: dict[str, str], path: Path) -> Iterator[tuple[Path, str]]:
    for name, value in values.items():
        if not _VARIABLE.fullmatch(name):
            yield (*path, name), f'"{name}" is not the name of a variable'
        elif name in _LOADER:
            why = f"{name} is not set: programs outside the environment would get it too"
            yield (*path, name), why
        elif "\n" in value or "\0" in value:
            yield (*path, name), f"the value of {name} must be a single line"


def _version(value: str, path: Path) -> Iterator[tuple[Path, str]]:
    if parse_version(value) is None:
        yield path, f'"{value}" is not a version (PEP 440)'


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".:")

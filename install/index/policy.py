"""What an installer may see of an index's page: the rules, and the words for what they keep out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data import packages
from ..catalogue.model import PUBLIC, Stack
from .routes import Route
from .simple import ProjectFile

RefusedKind = Literal["placeholder", "sdist", "hash", "platform", "other"]
NAMED = 3  # versions in a sentence


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """One file that is kept from the installer."""

    filename: str
    version: Version | None
    kind: RefusedKind
    why: str  # "a placeholder: it only holds the name"


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A project's page, judged; both lists in the page's order."""

    files: list[ProjectFile]
    refused: list[Refused]


def accept(
    files: Sequence[ProjectFile],
    *,
    name: str,
    route: Route,
    stack: Stack,
    architecture: str = "x86_64",
) -> Accepted:
    """Judge a project's files.

    Wheels for Linux on ``architecture``, and the sdists that the catalogue names with version and sha256.
    A file without sha256 passes only where the page has none at all: then it has to be fetched once to be
    locked. Yanked files pass with their mark, since which of them may be taken is the resolver's rule.
    """
    hashless = not any(file.sha256 for file in files)
    accepted: list[ProjectFile] = []
    refused: list[Refused] = []
    for file in files:
        found = _refusal(file, name, route, stack, architecture, hashless)
        if found is None:
            accepted.append(file)
        else:
            kind, why = found
            refused.append(
                Refused(filename=file.filename, version=file.version, kind=kind, why=why)
            )
    return Accepted(files=accepted, refused=refused)


def explain(name: str, route: Route, where: str, judged: Accepted | None) -> str:
    """Why an installer does not find what it wants of this project, in one sentence; "" for no reason.

    where: the index's URL without credentials. judged: None where the index has no such project.
    """
    index = "the public index" if route.index_name == PUBLIC else f"the {route.index_name} index"
    alone = "" if route.index_name == PUBLIC else f"; {name} is taken from no other index"
    if judged is None:
        return f"{index} ({where}) has no {name}{alone}"
    offered = {file.version for file in judged.files}
    reasons: dict[str, set[Version]] = {}
    for refused in judged.refused:
        # A version that is there as an accepted wheel lacks nothing; installers for Windows explain nothing.
        version = refused.version
        if version is not None and version not in offered and refused.kind != "other":
            reasons.setdefault(refused.why, set()).add(version)
    told = [f"{_listed(versions)} ({why})" for why, versions in reasons.items()]
    if not told:
        return "" if offered else f"{index} ({where}) has no usable file of {name}{alone}"
    return f"of {name} at {index} ({where}), refused: {', '.join(told)}{alone}"


def _refusal(
    file: ProjectFile, name: str, route: Route, stack: Stack, architecture: str, hashless: bool
) -> tuple[RefusedKind, str] | None:
    """The first rule that keeps a file out."""
    if file.kind == "other" or file.version is None:
        return "other", "neither a wheel nor an sdist"
    if file.name != name:
        return "other", f"a file of another project, {file.name}"
    why = _placeholder(name, file.version, route.index_name)
    if why:
        return "placeholder", why
    if file.kind == "sdist":
        why = _sdist(file, stack)
        return ("sdist", why) if why else None
    if not _for_this_machine(file.platform, architecture):
        return "platform", _no_wheel_for(architecture)
    if not file.sha256 and not hashless:
        return "hash", "no sha256, which the index gives for the other files"
    return None


@lru_cache(maxsize=8192)  # a page names a version once for each of its files
def _placeholder(name: str, version: Version, index: str) -> str:
    known = packages.placeholder(name, str(version))
    if known is None and name.startswith("nvidia-") and version.base_version == "0.0.1":
        # Under every name that NVIDIA held, the table's or not, this was the placeholder's number.
        return "a placeholder" if version.is_devrelease else ""
    if known is None:
        return ""
    if version.major == 99 and index == PUBLIC:
        return f"not NVIDIA's software: {known.why}"
    return f"a placeholder: {known.why}"


def _sdist(file: ProjectFile, stack: Stack) -> str:
    """Why this source distribution may not be built; "" where the catalogue allows it."""
    allowed = [sdist for sdist in stack.sdists if canonicalize_name(sdist.name) == file.name]
    if not allowed:
        return "an sdist, whose build runs its code; the catalogue allows none of that name"
    same = [sdist for sdist in allowed if Version(sdist.version) == file.version]
    if not same:
        versions = ", ".join(sdist.version for sdist in allowed)
        return f"an sdist; the catalogue allows that of {versions} alone"
    if file.sha256 not in {sdist.sha256 for sdist in same}:
        has = f"with the sha256 {file.sha256}" if file.sha256 else "without sha256"
        return f"an sdist {has}; the catalogue allows the one with {same[0].sha256}"
    return ""


@lru_cache  # one text for thousands of files
def _no_wheel_for(architecture: str) -> str:
    return f"no wheel for Linux on {architecture}"


def _for_this_machine(platform: str, architecture: str) -> bool:
    tags = platform.split(".")
    return any(
        tag == "any" or ("linux" in tag and tag.endswith(f"_{architecture}")) for tag in tags
    )


def _listed(versions: set[Version]) -> str:
    """ "1.0", "1.0 and 1.1", "1.0, 1.1, 1.2 and 40 more", newest first."""
    ordered = [str(version) for version in sorted(versions, reverse=True)]
    if len(ordered) > NAMED:
        ordered = [*ordered[:NAMED], f"{len(ordered) - NAMED} more"]
    return " and ".join([", ".join(ordered[:-1]), ordered[-1]] if len(ordered) > 1 else ordered)

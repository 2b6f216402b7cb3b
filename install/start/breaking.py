"""What `pip install` or `pip uninstall` would break in an environment, before it runs, without a network.

Only what is sure is said: a package that is installed needs another version of what was named, or needs what
is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from .. import drift

_PIP = re.compile(r"(pip|uv)[0-9.]*")
_PYTHON = re.compile(r"python[0-9.]*")
# pip's and uv's options that are followed by a value.
_WITH_VALUE = (
    *("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-c", "--constraint"),
    *("-r", "--requirement", "-e", "--editable", "-t", "--target", "--prefix", "--root", "--src"),
    *("--proxy", "--timeout", "--retries", "--cert", "--cache-dir", "--progress-bar", "--report"),
    *(
        "-C",
        "--config-settings",
        "--upgrade-strategy",
        "--python",
        "--platform",
        "--python-version",
    ),
)


def sentences(directory: Path, command: Sequence[str]) -> list[str]:
    """ "this breaks jax 0.12.0.1, which needs numpy>=2.0 (numpy<2)"; none for another command."""
    action, words = _of_pip(command)
    if not action:
        return []
    there = drift.installed(directory)
    python = next((path.name[6:] for path in directory.glob("lib/python*")), "")
    wanted = dict(_requirements(words))
    told = []
    for name, requirement in wanted.items():
        if action == "install" and not _changes(there.get(name), requirement):
            continue
        for user, one in there.items():
            if user in wanted:
                continue  # it may become another version, which needs something else
            for needs in _needs(one, name, python):
                if action == "uninstall" or not _both(needs.specifier, requirement.specifier):
                    about = requirement if action == "install" else f"removing {name}"
                    version = f"{user} {one.version}"
                    told.append(
                        f"this breaks {version}, which needs {needs.name}{needs.specifier} ({about})"
                    )
    return told


def _of_pip(command: Sequence[str]) -> tuple[str, list[str]]:
    """("install" or "uninstall", the words after it); "" for a command that is neither."""
    words = list(command)
    if words and _PYTHON.fullmatch(Path(words[0]).name) and words[1:2] == ["-m"]:
        words = words[2:]
    if not words or not _PIP.fullmatch(Path(words[0]).name):
        return "", []
    words = words[2:] if Path(words[0]).name == "uv" and words[1:2] == ["pip"] else words[1:]
    if words[:1] in (["install"], ["uninstall"]):
        return words[0], words[1:]
    return "", []


def _requirements(words: Sequence[str]) -> Iterator[tuple[str, Requirement]]:
    """Those that name a package: no options, files or addresses."""
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-") and "/" not in word:
            try:
                requirement = Requirement(word)
            except InvalidRequirement:
                continue
            yield canonicalize_name(requirement.name), requirement


def _changes(there: Distribution | None, requirement: Requirement) -> bool:
    """Whether what is installed does not do, so that another version is taken."""
    if there is None:
        return bool(requirement.specifier)
    try:
        return not requirement.specifier.contains(there.version, prereleases=True)
    except InvalidVersion:
        return False


def _needs(one: Distribution, name: str, python: str) -> Iterator[Requirement]:
    environment = {"extra": "", "python_version": python, "python_full_version": f"{python}.0"}
    for line in one.requires or []:
        try:
            needs = Requirement(line)
            applies = needs.marker is None or needs.marker.evaluate(environment)
        except (InvalidRequirement, InvalidVersion, ValueError):
            continue
        if applies and canonicalize_name(needs.name) == name:
            yield needs


def _both(one: SpecifierSet, other: SpecifierSet) -> bool:
    """Whether some version may meet both: those that they name are tried, and their neighbours."""
    named = [found for both in (one, other) for found in both]
    tried = {Version("0"), Version("99999")}
    for specifier in named:
        try:
            version = Version(specifier.version.removesuffix(".*"))
        except InvalidVersion:
            return True  # not known
        tried |= {version, Version(f"{version.public}.post1"), *_neighbours(version)}
    return any(
        one.contains(v, prereleases=True) and other.contains(v, prereleases=True) for v in tried
    )


def _neighbours(version: Version) -> Iterator[Version]:
    """One that is a little newer, and one that is a little older."""
    release = list(version.release)
    yield Version(".".join(map(str, [*release, 0, 1])))
    while release and not release[-1]:
        release.pop()
    if release:
        release[-1] -= 1
        yield Version(".".join(map(str, [*release, 99999])))

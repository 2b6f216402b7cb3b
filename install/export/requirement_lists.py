"""A lock as lists of requirements, a file each, which uv installs from.

They hold names, versions and hashes, and no address: an index may be private.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from .. import pylock
from ..catalogue.model import PUBLIC, Sdist, Stack
from ..lockfile import LockedPackage, Lockfile

ENVCHECK = "envcheck-requirements.txt"  # what envcheck itself needs
ITSELF = "envcheck-itself.txt"  # its own wheel's hash

Use = Literal["environment", "building", "sdist"]


class RequirementList(msgspec.Struct, frozen=True, kw_only=True):
    """Packages of one index, which one `uv pip install` is given."""

    name: str  # of its file
    use: Use
    index: str  # its name; PUBLIC
    url: str = ""  # that it was locked from; "" of the public one
    lines: list[str]
    sdist: Sdist | None = None  # that this one package is built from


def of_lock(stack: Stack, lock: Lockfile) -> list[RequirementList]:
    """Each package of the lock in exactly one, in the order in which they are installed: the public index's
    first, and what is built last."""
    sdists = {sdist.sha256: sdist for sdist in stack.sdists}
    built = [one for one in lock.packages if one.file.sha256 in sdists]
    ready = [one for one in lock.packages if one not in built]
    found = []
    uses: list[tuple[Use, str, list[LockedPackage]]] = [
        ("environment", "requirements", ready),
        ("building", "requirements-build", lock.building),
    ]
    for use, stem, packages in uses:
        for index in (PUBLIC, *sorted(index.name for index in stack.indexes)):
            own = [one for one in packages if _index_of(stack, one.name) == index]
            if own:
                name = f"{stem}.txt" if index == PUBLIC else f"{stem}-{index}.txt"
                url = "" if index == PUBLIC else own[0].index
                found.append(
                    RequirementList(name=name, use=use, index=index, url=url, lines=_lines(own))
                )
    for one in built:
        index = _index_of(stack, one.name)
        url = "" if index == PUBLIC else one.index
        made = RequirementList(
            name=f"requirements-sdist-{one.name}.txt", use="sdist", index=index, url=url,
            lines=_lines([one]), sdist=sdists[one.file.sha256],
        )  # fmt: skip
        found.append(made)
    return found


def text(lines: Iterable[str]) -> bytes:
    return "\n".join(["# written by envcheck", *lines, ""]).encode()


def _lines(packages: Iterable[LockedPackage]) -> list[str]:
    return pylock.for_pip(sorted(packages, key=lambda package: package.name)).splitlines()


def _index_of(stack: Stack, package: str) -> str:
    """The name of the one index that the package comes from."""
    return next((index.name for index in stack.indexes if index.claims(package)), PUBLIC)

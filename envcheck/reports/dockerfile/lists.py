"""A lock's packages as lists of requirements with hashes: what one pip is given at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ...install.catalogue.model import PUBLIC, Sdist, Stack
from ...install.lockfile import LockedPackage, Lockfile


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """Packages of one index, and the file's name that holds them where they lie in a context."""

    name: str
    index: str  # its name; PUBLIC
    packages: list[LockedPackage]  # by name
    sdist: Sdist | None = None  # that this one package is built from

    @property
    def lines(self) -> list[str]:
        return [f"{p.name}=={p.version} --hash=sha256:{p.file.sha256}" for p in self.packages]


class Lists(msgspec.Struct, frozen=True, kw_only=True):
    """All of a lock, in the order in which they are installed."""

    pip: list[Listed]
    wheels: list[Listed]
    building: list[Listed]  # what the sdists are built with; not part of the environment
    sdists: list[Listed]

    @property
    def all(self) -> list[Listed]:
        return [*self.pip, *self.wheels, *self.building, *self.sdists]


def lists(stack: Stack, lock: Lockfile) -> Lists:
    """Each package of the lock in exactly one list."""
    allowed = {sdist.sha256: sdist for sdist in stack.sdists}
    pip = [p for p in lock.packages if p.name == "pip"]
    wheels = [p for p in lock.packages if p.file.kind == "wheel" and p.name != "pip"]
    built = [p for p in lock.packages if p.file.sha256 in allowed]
    return Lists(
        pip=list(_by_index(stack, pip, "requirements-pip")),
        wheels=list(_by_index(stack, wheels, "requirements")),
        building=list(_by_index(stack, lock.building, "requirements-build")),
        sdists=[
            Listed(
                name=f"requirements-sdist-{p.name}.txt",
                index=index_of(stack, p),
                packages=[p],
                sdist=allowed[p.file.sha256],
            )
            for p in built
        ],
    )


def index_of(stack: Stack, package: LockedPackage) -> str:
    """The name of the one index that the package comes from."""
    for index in stack.indexes:
        if index.claims(package.name):
            return index.name
    return PUBLIC


def _by_index(stack: Stack, packages: Iterable[LockedPackage], stem: str) -> Iterator[Listed]:
    """The public index's first."""
    grouped: dict[str, list[LockedPackage]] = {}
    for package in packages:
        grouped.setdefault(index_of(stack, package), []).append(package)
    for index, found in sorted(grouped.items(), key=lambda item: (item[0] != PUBLIC, item[0])):
        name = f"{stem}.txt" if index == PUBLIC else f"{stem}-{index}.txt"
        yield Listed(
            name=name, index=index, packages=sorted(found, key=lambda package: package.name)
        )

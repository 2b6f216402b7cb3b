"""For tests of the catalogue: all releases of a stack at once, and what they say of one package."""

from __future__ import annotations

from collections.abc import Callable

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from envcheck.install.catalogue.model import Release, Stack


def for_each(stack: Stack) -> Callable[[Callable[[Release], None]], Callable[[], None]]:
    """One test over all releases of a stack; hundreds of small ones would cost more than they test."""

    def over_all(test: Callable[[Release], None]) -> Callable[[], None]:
        def looped() -> None:
            for release in stack.releases:
                try:
                    test(release)
                except AssertionError as error:
                    raise AssertionError(f"{stack.name} {release.release}: {error}") from error

        return looped

    return over_all


def constraints(stack: Stack, release: Release, name: str, python: str = "3.8") -> SpecifierSet:
    """What a stack and its release together say of one package on one Python."""
    found = [Requirement(text) for text in [*stack.constraints, *release.constraints]]
    return SpecifierSet(
        ",".join(
            str(r.specifier)
            for r in found
            if r.name == name
            and (r.marker is None or r.marker.evaluate({"python_version": python}))
        )
    )

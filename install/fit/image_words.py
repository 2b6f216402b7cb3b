"""What can be said of a request for a container by its words alone."""

from __future__ import annotations

from collections.abc import Iterable

from ...data.releases import month_key
from ...exit_codes import UsageError
from ..catalogue import containers
from ..catalogue.containers import ImageRelease, ImageStack
from ..registry import reference
from ..registry.reference import Reference
from ..request import Request


def check(request: Request) -> None:
    """Raises UsageError for what is wrong whatever the machine is: before looking at it takes a second."""
    if request.image:
        own(request)
        return
    stacks(request)
    if request.release:
        found(request)


def own(request: Request) -> Reference:
    """The image that the request names. Raises UsageError for what is none, and for another one beside it."""
    others = {
        "--release": request.release,
        "--flavour": request.flavour,
        "--stack": request.stack,
    }
    for option, value in others.items():
        if value:
            raise UsageError(f"--image names one image, and {option} another one: use one of them")
    return reference.parse(request.image)


def stacks(request: Request) -> list[ImageStack]:
    """The flavours that the request leaves. Raises UsageError where it leaves none."""
    known = containers.flavours()
    names = [stack.name for stack in known]
    if request.stack and request.stack not in names:
        raise UsageError(
            f'no stack "{request.stack}" among the containers: there are {" and ".join(names)}',
            "--flavour tf1 or tf2 names one; --image REF takes any other image",
        )
    left = [
        stack
        for stack in known
        if request.flavour in ("", stack.flavour) and request.stack in ("", stack.name)
    ]
    if not left:
        raise UsageError(f"--flavour {request.flavour} is not {request.stack}: name one of both")
    return left


def found(request: Request) -> list[ImageRelease]:
    """The releases that it names: one of each flavour at most. Raises UsageError, naming the nearest."""
    left = stacks(request)
    named = [
        release for stack in left for release in stack.releases if _is(release, request.release)
    ]
    if not named:
        raise _no_release(left, request.release)
    return named


def _is(release: ImageRelease, asked: str) -> bool:
    """By "23.03", "23.3", or its tag: "23.03-tf1-py3"."""
    wanted = _month(asked)
    tag = release.reference.rpartition(":")[2]
    return asked == tag or (wanted is not None and month_key(release.release) == wanted)


def _month(text: str) -> tuple[int, int] | None:
    try:
        year, number = month_key(text)
    except ValueError:
        return None
    return (year, number) if 1 <= number <= 12 else None


def _no_release(left: list[ImageStack], asked: str) -> UsageError:
    wanted = _month(asked)
    names = {release.release for stack in left for release in stack.releases}
    if wanted is None:
        ordered = sorted(names, key=month_key)
        near = f"a release is a month, {ordered[0]} to {ordered[-1]}"
    else:
        near = f"the nearest: {' and '.join(_nearest(names, wanted))}"
    elsewhere = [
        f"--flavour {stack.flavour} has it"
        for stack in containers.flavours()
        if any(_is(release, asked) for release in stack.releases)
    ]
    among = f"{left[0].name} has" if len(left) == 1 else "the containers have"
    return UsageError(
        f'{among} no release "{asked}"; {near}',
        "; ".join([*elsewhere, "`envcheck releases --mode container` shows all of them"]),
    )


def _nearest(names: Iterable[str], wanted: tuple[int, int]) -> list[str]:
    """The two months nearest in time, the older first."""

    def months(name: str) -> int:
        year, number = month_key(name)
        return year * 12 + number

    at = wanted[0] * 12 + wanted[1]
    near = sorted(sorted(names, key=months), key=lambda name: abs(months(name) - at))
    return sorted(near[:2], key=months)

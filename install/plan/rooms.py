"""The places that an installation writes to: whether they can be, and what room they are asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from ...exit_codes import Cannot, UsageError
from ..fit.room import RoomAt
from .plan import Room

MIB = 1024 * 1024

# What an environment has that is not linked from unpacked wheels: its directories, scripts, and byte code.
OWN_MIB = 40
OWN_SHARE = 0.05
LONGEST_PATH = 4096  # PATH_MAX, with its closing zero
LONGEST_NAME = 255
INSIDE = 400  # bytes that wheels are allowed for the paths inside an environment

# What activation scripts, shebangs or PATH cannot carry, in one or another of the tools and shells.
_FORBIDDEN = {
    ":": "a colon",
    '"': "a quotation mark",
    "$": "a dollar sign",
    "`": "a backtick",
    "\\": "a backslash",
}


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What planning needs to know beyond the choice and the lock."""

    directory: str  # that holds the versions
    version: str  # the new version's name in it
    installer: str  # "uv 0.13.9"
    environment: RoomAt
    store: RoomAt
    unpacked: RoomAt  # uv's cache
    in_store: Mapping[str, int] = {}  # sha256 → bytes
    in_unpacked: frozenset[str] = frozenset()  # names of files that uv has unpacked already
    remarks: list[str] = []  # what was noticed on the way, a sentence each
    offline: bool = False  # what is not in the store comes from a bundle
    rate: float = 0.0  # bytes per second of the last installation; 0: there was none


class Amounts(Protocol):
    """Bytes."""

    to_fetch: int
    unpacked: int  # what all of it takes when unpacked
    not_unpacked: float  # the share of it that uv has not unpacked before
    estimated: bool


def check_path(directory: str, version: str) -> None:
    """Raises UsageError for a path that some tool between here and the shell cannot take."""
    hint = "--path DIR names another place"
    for character in directory:
        if not character.isprintable() or "\ud800" <= character <= "\udfff":
            raise UsageError(
                f"{directory!r}: a path with a line end or another character that cannot be printed"
                " breaks shebangs and configuration files",
                hint,
            )
        if character in _FORBIDDEN:
            raise UsageError(
                f"{directory}: a path with {_FORBIDDEN[character]} in it cannot stand in PATH or in"
                " every shell's activation script",
                hint,
            )
    length = len(directory.encode()) + 1 + len(version.encode()) + INSIDE
    longest = max(len(name.encode()) for name in directory.split("/"))
    if length > LONGEST_PATH or longest > LONGEST_NAME:
        raise UsageError(
            f"{directory[:60]}… is too long: the file system takes {LONGEST_NAME} bytes for a name and"
            f" {LONGEST_PATH} for a path, and packages need {INSIDE} of them",
            hint,
        )


def check_places(here: Surroundings, *, with_uv: bool) -> None:
    """Raises Cannot for the first place that cannot be written to, or run from."""
    cache = "XDG_CACHE_HOME=DIR names another cache"
    asked = [
        (here.environment, "the environment", "--path DIR names another place"),
        (here.store, "fetched files", cache),
        (here.unpacked, "uv's unpacked wheels", cache),
    ]
    for place, what, hint in asked if with_uv else asked[:2]:
        if place.read_only:
            raise Cannot(f"{place.path}, for {what}, is on a file system mounted read-only", hint)
        if not place.writable:
            raise Cannot(f"{place.path}, for {what}, cannot be written to by this user", hint)
    if here.environment.noexec:
        raise Cannot(
            f"{here.environment.path} is on a file system mounted noexec: neither Python nor the"
            " framework's libraries could be loaded from it",
            "--path DIR names another place",
        )


def rooms(amounts: Amounts, here: Surroundings, *, with_uv: bool) -> list[Room]:
    """What each file system is asked to hold, the fullest first.

    Raises Cannot, naming every one on which something is missing, and how much.
    """
    linked = with_uv and here.environment.device == here.unpacked.device
    own = OWN_MIB * MIB + round(amounts.unpacked * OWN_SHARE)
    wanted = [(here.store, "fetched files", amounts.to_fetch)]
    if with_uv:
        to_cache = round(amounts.unpacked * amounts.not_unpacked)
        wanted.append((here.unpacked, "uv's unpacked wheels", to_cache))
    wanted.append((here.environment, "the environment", own if linked else own + amounts.unpacked))
    by_device: dict[int, list[tuple[RoomAt, str, int]]] = {}
    for place, what, size in wanted:
        by_device.setdefault(place.device, []).append((place, what, size))
    asked = [_room(parts, amounts.estimated) for parts in by_device.values()]
    _check_rooms(asked)
    return sorted(asked, key=lambda room: -room.needed_mib)


def _room(parts: Sequence[tuple[RoomAt, str, int]], estimated: bool) -> Room:
    largest = max(parts, key=lambda part: part[2])[0]
    free = [place.free_mib for place, _what, _size in parts if place.free_mib is not None]
    return Room(
        path=largest.path,
        what=[what for _place, what, size in parts if size],
        needed_mib=-(-sum(size for _place, _what, size in parts) // MIB),
        free_mib=min(free) if free else None,
        estimated=estimated,
    )


def _check_rooms(rooms: Iterable[Room]) -> None:
    """Raises Cannot, naming every file system on which something is missing, and how much."""
    full = [
        f"{room.path} needs {'about ' * room.estimated}{gib(room.needed_mib)} for"
        f" {' and '.join(room.what)}, has {gib(room.free_mib or 0)}, and so"
        f" {gib(room.missing_mib)} are missing"
        for room in rooms
        if room.missing_mib
    ]
    if full:
        raise Cannot(
            "not enough disk: " + "; ".join(full),
            "envcheck prune removes old versions and unused files; --path DIR puts the environment and"
            " XDG_CACHE_HOME=DIR the cache on another file system",
        )


def gib(mib: float) -> str:
    """ "3.1 GiB", and "412 MiB" below one."""
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"

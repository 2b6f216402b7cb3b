"""The places that an installation writes to: whether they can be, and what room they are asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from ...exit_codes import Cannot, UsageError
from ..fit.disk_space import DiskSpace
from .models import Room

MIB = 1024 * 1024

# What an environment has that is not linked from unpacked wheels: its directories, scripts, and byte code.
OWN_MIB = 40
OWN_SHARE = 0.05
LONGEST_PATH = 4096  # PATH_MAX, with its closing zero
LONGEST_NAME = 255
INSIDE = 400  # bytes that wheels are allowed for the paths inside an environment
FEW = 100  # the same for a container's version: its records, an image file

_ELSEWHERE = "--path DIR names another place"

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
    environment: DiskSpace
    store: DiskSpace
    unpacked: DiskSpace  # uv's cache
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


class Wanted(NamedTuple):
    """Bytes that something will take at a place."""

    place: DiskSpace
    what: str  # "fetched files"
    size: int
    estimated: bool


def check_path(directory: str, version: str) -> None:
    """Raises UsageError for a path that some tool between here and the shell cannot take."""
    check_name(directory, version, inside=INSIDE)
    for character in directory:
        if character in _FORBIDDEN:
            raise UsageError(
                f"{directory}: a path with {_FORBIDDEN[character]} in it cannot stand in PATH or in"
                " every shell's activation script",
                _ELSEWHERE,
            )


def check_name(directory: str, version: str, *, inside: int = FEW) -> None:
    """Raises UsageError for a path that the file system, or a configuration file, cannot take.

    inside: bytes that are needed for the paths in it.
    """
    for character in directory:
        if not character.isprintable() or "\ud800" <= character <= "\udfff":
            raise UsageError(
                f"{directory!r}: a path with a line end or another character that cannot be printed"
                " breaks shebangs and configuration files",
                _ELSEWHERE,
            )
    length = len(directory.encode()) + 1 + len(version.encode()) + inside
    longest = max(len(name.encode()) for name in directory.split("/"))
    if length > LONGEST_PATH or longest > LONGEST_NAME:
        raise UsageError(
            f"{directory[:60]}… is too long: the file system takes {LONGEST_NAME} bytes for a name and"
            f" {LONGEST_PATH} for a path, and {inside} of them are needed inside it",
            _ELSEWHERE,
        )


def check_places(here: Surroundings, *, with_uv: bool) -> None:
    """Raises Cannot for the first place that cannot be written to, or run from."""
    cache = "XDG_CACHE_HOME=DIR names another cache"
    places = [
        (here.environment, "the environment", _ELSEWHERE),
        (here.store, "fetched files", cache),
        (here.unpacked, "uv's unpacked wheels", cache),
    ]
    check_writable(places if with_uv else places[:2])
    if here.environment.noexec:
        raise Cannot(
            f"{here.environment.path} is on a file system mounted noexec: neither Python nor the"
            " framework's libraries could be loaded from it",
            _ELSEWHERE,
        )


def check_writable(places: Iterable[tuple[DiskSpace, str, str]]) -> None:
    """Raises Cannot for the first (place, what for, hint) that this user cannot write to."""
    for place, what, hint in places:
        if place.read_only:
            raise Cannot(f"{place.path}, for {what}, is on a file system mounted read-only", hint)
        if not place.writable:
            raise Cannot(f"{place.path}, for {what}, cannot be written to by this user", hint)


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
    return asked(
        [Wanted(place, what, size, amounts.estimated) for place, what, size in wanted],
        "envcheck prune removes old versions and unused files; --path DIR puts the environment and"
        " XDG_CACHE_HOME=DIR the cache on another file system",
    )


def asked(wanted: Iterable[Wanted], hint: str) -> list[Room]:
    """What each file system is asked to hold, the fullest first.

    Raises Cannot, with this hint, naming every one on which something is missing, and how much.
    """
    by_device: dict[int, list[Wanted]] = {}
    for one in wanted:
        by_device.setdefault(one.place.device, []).append(one)
    found = [_room(parts) for parts in by_device.values()]
    _check_rooms(found, hint)
    return sorted(found, key=lambda room: -room.needed_mib)


def _room(parts: Sequence[Wanted]) -> Room:
    largest = max(parts, key=lambda one: one.size).place
    free = [one.place.free_mib for one in parts if one.place.free_mib is not None]
    return Room(
        path=largest.path,
        what=[one.what for one in parts if one.size],
        needed_mib=-(-sum(one.size for one in parts) // MIB),
        free_mib=min(free) if free else None,
        estimated=any(one.estimated for one in parts),
    )


def _check_rooms(rooms: Iterable[Room], hint: str) -> None:
    """Raises Cannot, naming every file system on which something is missing, and how much."""
    full = [
        f"{gib(room.missing_mib)} more needed at {room.path} ({'about ' * room.estimated}"
        f"{gib(room.needed_mib)} for {' and '.join(room.what)}, {gib(room.free_mib or 0)} free)"
        for room in rooms
        if room.missing_mib
    ]
    if full:
        raise Cannot("not enough space: " + "; ".join(full), hint)


def gib(mib: float) -> str:
    """ "3.1 GiB", and "412 MiB" below one."""
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"

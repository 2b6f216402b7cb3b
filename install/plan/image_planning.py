"""From a container's choice and its lock to the plan: pure, and the last place where it is refused."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..fit.disk_space import DiskSpace
from ..fit.models import ImageChoice
from ..registry.image import Image
from .models import ImagePlan, Room, Step
from .rooms import Wanted, asked, check_name, check_writable
from .shared import VERIFY_SECONDS, number, rate, reasons, verify_and_swap

# No manifest says what layers unpack to. A Debian 12 root: 119 MB of gzip became 259 MB, measured with
# podman 4.3.1; tensorflow[and-cuda]'s wheels grow by 1.94.
UNPACKED_PER_COMPRESSED = 2.2
# Compressed bytes a second that podman unpacks into its storage on 2 cores: that root in 5.1 s.
UNPACK_RATE = 23e6

_Place = Literal["directory", "storage", "temporary"]
_Amount = Literal["compressed", "unpacked"]

# What an engine writes where. Podman copies layers to its temporary directory first,
# docker to its own storage; apptainer and enroot unpack there, and leave an image file.
_WRITES: dict[str, tuple[tuple[_Place, str, _Amount], ...]] = {
    "podman": (
        ("storage", "podman's storage", "unpacked"),
        ("temporary", "podman's copies of layers", "compressed"),
    ),
    "docker": (
        ("storage", "docker's storage", "unpacked"),
        ("storage", "docker's copies of layers", "compressed"),
    ),
    "apptainer": (
        ("directory", "the image file", "compressed"),
        ("temporary", "apptainer's unpacked image", "unpacked"),
    ),
    "enroot": (
        ("directory", "the image file", "compressed"),
        ("temporary", "enroot's unpacked image", "unpacked"),
    ),
}


class ImageSurroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What planning needs to know beyond the choice, the lock and the engine.

    A place of None is one that cannot be looked at (the storage of an engine on another machine): no room
    is asked of it.
    """

    directory: str  # that holds the versions
    version: str  # the new version's name in it
    place: DiskSpace  # of the directory
    storage: DiskSpace | None = None  # of the engine
    temporary: DiskSpace | None = None  # where the engine copies, or unpacks, on its way
    held: bool = False  # the engine has the image already: nothing is fetched
    remarks: list[str] = []  # what was noticed on the way, a sentence each
    offline: bool = False  # it comes from an archive
    rate: float = 0.0  # bytes per second of the last installation; 0: there was none


def unpacked_bytes(image: Image) -> int:
    """What the image takes in an engine's storage, estimated."""
    return round(image.download_bytes * UNPACKED_PER_COMPRESSED)


def plan(
    choice: ImageChoice, image: Image, *, engine: str, wiring: str, surroundings: ImageSurroundings
) -> ImagePlan:
    """Everything that will happen. Refuses what cannot: Cannot (no disk, no place), UsageError (path).

    engine: with its version, "podman 4.3.1". wiring: how the GPUs get in; "" where none is wired.
    """
    here = surroundings
    check_name(here.directory, here.version)
    check_writable([(here.place, "the container's versions", "--path DIR names another place")])
    sums = _ImageSums(image, here)
    speed, speed_from = rate(here.rate, offline=here.offline)
    return ImagePlan(
        stack=choice.stack.name,
        release=choice.candidate.release.release,
        title=choice.stack.title,
        reasons=reasons(choice.reasons, choice.newer_refused),
        notes=[*choice.candidate.notes, *here.remarks],
        directory=here.directory,
        version=here.version,
        steps=_steps(choice, image, sums, engine, wiring, here),
        rooms=_rooms(engine.split()[0], sums, here),
        download_bytes=sums.to_fetch,
        in_store_bytes=0,
        seconds=_seconds(sums, speed),
        rate=speed,
        rate_from=speed_from,
        engine=engine,
        reference=image.reference,
        digest=image.digest,
        manifest=image.manifest.digest,
        layers=sums.layers,
        compressed_bytes=sums.compressed,
        unpacked_bytes=sums.unpacked,
        wiring=wiring,
        user=image.user,
        contents=_contents(choice),
    )


class _ImageSums:
    """Bytes: what is to be fetched, what is there, and what becomes of both. Each layer counts once."""

    def __init__(self, image: Image, here: ImageSurroundings) -> None:
        blobs = {blob.sha256: blob.size for blob in image.layers}
        self.held = here.held
        self.layers = len(blobs)
        self.compressed = sum(blobs.values())
        self.to_fetch = 0 if here.held else self.compressed
        self.unpacked = unpacked_bytes(image)

    def of(self, amount: _Amount) -> int:
        if self.held:
            return 0
        return self.compressed if amount == "compressed" else self.unpacked


def _rooms(engine: str, sums: _ImageSums, here: ImageSurroundings) -> list[Room]:
    """What each file system is asked to hold."""
    places = {"directory": here.place, "storage": here.storage, "temporary": here.temporary}
    wanted = []
    for where, what, amount in _WRITES.get(engine, ()):
        place = places[where]
        if place is not None:
            wanted.append(Wanted(place, what, sums.of(amount), amount == "unpacked"))
    return asked(
        wanted,
        f"images and containers that nobody uses may go (`{engine} system prune` says which)"
        if engine in ("podman", "docker")
        else "envcheck prune removes old versions and unused files; --path DIR names another place",
    )


def _steps(
    choice: ImageChoice,
    image: Image,
    sums: _ImageSums,
    engine: str,
    wiring: str,
    here: ImageSurroundings,
) -> list[Step]:
    into = f"check that the GPUs get in: {wiring}" if wiring else "start it without a GPU"
    return [
        Step(name="resolve", sentence=f"hold {image.reference} to {image.manifest.digest}"),
        Step(name="fetch", sentence=_fetch(sums, engine.split()[0], here)),
        Step(name="wire", sentence=into),
        *verify_and_swap(choice.stack.must_pass, "inside a fresh container"),
    ]


def _fetch(sums: _ImageSums, engine: str, here: ImageSurroundings) -> str:
    if sums.held:
        return f"fetch nothing: {engine} has the image"
    layers = number(sums.layers, "layer")
    if here.offline:
        return f"load {layers} from the archive with {engine}"
    return f"fetch {layers} from the registry with {engine}"


def _seconds(sums: _ImageSums, speed: float) -> float:
    """The engine unpacks while the rest is fetched, so the slower of the two counts."""
    fetching = sums.to_fetch / speed
    return round(max(fetching, sums.of("compressed") / UNPACK_RATE) + VERIFY_SECONDS, 1)


def _contents(choice: ImageChoice) -> dict[str, str]:
    release = choice.candidate.release
    known = {
        "TensorFlow": release.tensorflow,
        "CUDA": release.cuda,
        "Python": release.python,
        "Ubuntu": release.ubuntu,
    }
    return known if any(known.values()) else {}

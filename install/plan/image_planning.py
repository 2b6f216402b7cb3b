"""From a container's choice and its lock to the plan: pure, and the last place where it is refused."""

from __future__ import annotations

from ..fit.disk_space import DiskSpace
from ..fit.models import ImageChoice
from ..registry.image import Image
from .models import ImagePlan, Step
from .shared import (
    ELSEWHERE,
    VERIFY_AND_SWAP,
    DiskUse,
    PlanInputs,
    check_writable,
    disk_needs,
    fetching,
    reasons,
)

# No manifest says what layers unpack to. A Debian 12 root: 119 MB of gzip became 259 MB, measured with
# podman 4.3.1; tensorflow[and-cuda]'s wheels grow by 1.94.
UNPACKED_PER_COMPRESSED = 2.2


class ImagePlanInputs(PlanInputs, frozen=True, kw_only=True):
    """What planning needs to know beyond the choice and the lock."""

    engine: str  # with its version, "podman 4.3.1"
    wiring: str  # how the GPUs get in; "" where none is wired
    place: DiskSpace  # of the directory
    storage: DiskSpace | None = None  # of the engine; None: it cannot be looked at
    held: bool = False  # the engine has the image already: nothing is fetched

    @property
    def engine_name(self) -> str:
        return self.engine.split()[0]


def unpacked_bytes(image: Image) -> int:
    """What the image takes in an engine's storage, estimated."""
    return round(image.download_bytes * UNPACKED_PER_COMPRESSED)


def plan(choice: ImageChoice, image: Image, here: ImagePlanInputs) -> ImagePlan:
    """Everything that will happen. Raises Cannot for a place that cannot be used, or has too little space."""
    check_writable(here.place, "the container's versions", ELSEWHERE)
    layers = {blob.sha256: blob.size for blob in image.layers}  # each counts once
    compressed = sum(layers.values())
    to_fetch = 0 if here.held else compressed
    release = choice.candidate.release
    contents = {
        choice.stack.framework or "TensorFlow": release.framework,
        "CUDA": release.cuda,
        "Python": release.python,
        "Ubuntu": release.ubuntu,
    }
    return ImagePlan(
        stack=choice.stack.name,
        release=release.release,
        title=choice.stack.title,
        reasons=reasons(choice),
        notes=[*choice.candidate.notes, *here.remarks],
        directory=here.directory,
        version=here.version,
        steps=[
            Step(name="resolve", sentence="pin the image"),
            fetching("fetch", to_fetch),
            Step(name="wire", sentence="check the GPUs" if here.wiring else "start it"),
            *VERIFY_AND_SWAP,
        ],
        disk_needs=disk_needs(
            [] if here.held else _disk_uses(compressed, unpacked_bytes(image), here),
            f"unused images and containers may go (`{here.engine_name} system prune` says which)",
        ),
        download_bytes=to_fetch,
        in_store_bytes=0,
        engine=here.engine,
        reference=image.reference,
        digest=image.digest,
        manifest=image.manifest.digest,
        layers=len(layers),
        compressed_bytes=compressed,
        unpacked_bytes=unpacked_bytes(image),
        wiring=here.wiring,
        user=image.user,
        contents=contents if any(contents.values()) else {},
    )


def _disk_uses(compressed: int, unpacked: int, here: ImagePlanInputs) -> list[DiskUse]:
    """Podman copies layers to its temporary directory first, which envcheck has in the directory; docker to
    its own storage."""
    name = here.engine_name
    copies = here.place if name == "podman" else here.storage
    uses = (
        (here.storage, "storage", unpacked, True),
        (copies, "copies of layers", compressed, False),
    )
    return [
        DiskUse(place, f"{name}'s {what}", size, estimated)
        for place, what, size, estimated in uses
        if place is not None
    ]

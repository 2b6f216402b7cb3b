"""A choice of a container, its image and a machine to plan with."""

from __future__ import annotations

from typing import Any

import fit_machines as m
import msgspec
from planned import sha256, space

from envcheck.install.fit.models import ImageChoice
from envcheck.install.fit.select import choose_image as choose
from envcheck.install.plan import image_planning
from envcheck.install.plan.image_planning import ImagePlanInputs
from envcheck.install.plan.models import ImagePlan
from envcheck.install.registry.image import Blob, Image
from envcheck.install.request import Request

MIB = 1024 * 1024
REFERENCE = "nvcr.io/nvidia/tensorflow:23.06-tf2-py3"


def choice(**wish: Any) -> ImageChoice:
    return choose(Request(mode="container", **wish), m.machine(["H100"], "535.54.03"))


def blob(name: str, size: int) -> Blob:
    return Blob(digest=f"sha256:{sha256(name)}", size=size)


def image(**changes: Any) -> Image:
    """Two layers of 3000 and 1000 MiB; the first one is there twice."""
    layers = [blob("large", 3000 * MIB), blob("small", 1000 * MIB), blob("large", 3000 * MIB)]
    whole = Image(
        reference=REFERENCE,
        digest=f"sha256:{sha256('index')}",
        manifest=blob("manifest", 2000),
        config=blob("config", 3000),
        layers=layers,
        architecture="amd64",
    )
    return msgspec.structs.replace(whole, **changes)


def here(**changes: Any) -> ImagePlanInputs:
    """Podman's storage on a file system of its own."""
    whole = ImagePlanInputs(
        directory="/data/envs/ngc-tf2",
        version="23.06-tf2-0badcafe",
        place=space("/data/envs/ngc-tf2"),
        storage=space("/var/lib/containers/storage", 2),
        engine="podman 4.3.1",
        wiring="by CDI (/etc/cdi/nvidia.yaml)",
    )
    return msgspec.structs.replace(whole, **changes)


def planned(of: ImageChoice | None = None, locked: Image | None = None, **inputs: Any) -> ImagePlan:
    return image_planning.plan(of or choice(), locked or image(), here(**inputs))

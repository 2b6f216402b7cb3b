"""Small images at a loopback registry, and how an engine holds them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import image_registry

from envcheck.install.engine import EngineImage, EngineName
from envcheck.install.registry.image import Blob, Image, PullOptions

ACCESS = PullOptions(insecure=True)  # plain http on loopback


@contextmanager
def served(folder: Path) -> Iterator[Image]:
    """An image of one layer, in a registry."""
    with image_registry.serve_registry(folder) as registry:
        layers = [image_registry.layer({"etc/hello": b"hello"})]
        pushed = registry.push("nvidia/stand-in", "1", layers, config={"Cmd": ["/hello"]})
        yield described(pushed, f"{registry.host}/nvidia/stand-in:1")


def described(pushed: image_registry.Pushed, reference: str) -> Image:
    report = json.loads(pushed.body)
    blobs = [
        Blob(digest=one["digest"], size=one["size"])
        for one in (report["config"], *report["layers"])
    ]
    return Image(
        reference=reference,
        digest=pushed.digest,
        manifest=Blob(digest=pushed.digest, size=len(pushed.body)),
        config=blobs[0],
        layers=blobs[1:],
        architecture="amd64",
    )


def held(engine: EngineName, program: str, image: Image, **changes: object) -> EngineImage:
    values: dict[str, object] = {
        "engine": engine,
        "program": program,
        "image_id": image.config.digest,
        "tag": "localhost/envcheck/stand-in:1-12345678",
        "reference": image.pinned,
        "before": False,
    }
    return EngineImage(**(values | changes))  # type: ignore[arg-type]

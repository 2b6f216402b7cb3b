"""Small images at a loopback registry, as envcheck's mirror would serve them, and how they are held."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import image_registry

from envcheck.install.engine import EngineImage, EngineName
from envcheck.install.registry.image import Blob, Image

NAME = "nvcr.io/nvidia/stand-in"  # nothing here asks NVIDIA's registry for it
SECRET = "s3cret0123456789"


@dataclass
class StandInMirror:
    """Debian's registry in the place of images/mirror.py's server."""

    host: str
    repository: str
    errors: Sequence[Exception] = field(default_factory=list)


@contextmanager
def served(folder: Path, content: bytes = b"hello") -> Iterator[tuple[Image, StandInMirror]]:
    """An image of one layer, and the registry that has it."""
    with image_registry.serve_registry(folder) as registry:
        repository = f"{SECRET}/nvidia/stand-in"
        layers = [image_registry.layer({"etc/hello": content})]
        pushed = registry.push(repository, "1", layers, config={"Cmd": ["/hello"]})
        yield described(pushed), StandInMirror(registry.host, repository)


def described(pushed: image_registry.Pushed) -> Image:
    told = json.loads(pushed.body)
    blobs = [
        Blob(digest=one["digest"], size=one["size"], media_type=one["mediaType"])
        for one in (told["config"], *told["layers"])
    ]
    return Image(
        reference=f"{NAME}:1",
        digest=pushed.digest,
        manifest=Blob(digest=pushed.digest, size=len(pushed.body), media_type=pushed.media_type),
        config=blobs[0],
        layers=blobs[1:],
        architecture="amd64",
        manifest_text=pushed.body.decode(),
        config_text=pushed.config.decode(),
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

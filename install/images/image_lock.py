"""The lock of the container mode: the image to the byte, as ``image.json`` keeps it."""

from __future__ import annotations

import msgspec

from ... import json_text
from ..registry.image import Image


class ImageFile(msgspec.Struct):
    """What stands in the file."""

    schema: int
    image: Image


class LockedImage:
    """The transaction's Artifact of the container mode. What packages are in it, the doctor says."""

    file_name = "image.json"
    versions: dict[str, str] = {}
    building: dict[str, str] = {}

    def __init__(self, image: Image) -> None:
        self._image = image
        self.digest = image.manifest.sha256  # in hex: what names a version of the environment

    def text(self) -> str:
        return json_text.render(ImageFile(1, self._image))

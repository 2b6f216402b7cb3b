"""The lock of the container mode: the image to the byte, as ``image.json`` keeps it."""

from __future__ import annotations

import msgspec

from ... import json_text
from ..registry.image import Image

NAME = "image.json"


class ImageFile(msgspec.Struct):
    """What stands in the file."""

    schema: int
    image: Image


def text(image: Image) -> str:
    """The file's content."""
    return json_text.render(ImageFile(1, image))

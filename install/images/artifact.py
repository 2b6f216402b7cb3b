"""An image as what a transaction installs."""

from __future__ import annotations

from ..registry.image import Image
from . import image_lock


class LockedImage:
    """The transaction's Artifact of the container mode. What packages are in it, the doctor says."""

    file_name = "image.json"
    versions: dict[str, str] = {}
    building: dict[str, str] = {}

    def __init__(self, image: Image) -> None:
        self._image = image
        self.digest = image_lock.digest(image)

    def text(self) -> str:
        return image_lock.text(self._image)

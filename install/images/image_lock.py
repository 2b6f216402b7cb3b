"""The lock of the container mode as a file: image.json.

Everything in it but the reference follows from the manifest's and the config's own bytes, and is reckoned
again when the file is read: a lock in which somebody changed a letter is refused.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ... import json_text
from ...exit_codes import EnvcheckError, UsageError
from ..registry import documents, reference
from ..registry.documents import ImageIndex
from ..registry.image import Image

SCHEMA = 1

LARGEST = 20 << 20  # bytes: a manifest and a config, with every letter of them escaped


class _LockFile(msgspec.Struct, forbid_unknown_fields=True):
    """What stands in the file."""

    schema: int
    image: Image


class _Version(msgspec.Struct):
    schema: int


def text(image: Image) -> str:
    """The file's content."""
    return json_text.render(_LockFile(SCHEMA, image))


def digest(image: Image) -> str:
    """The manifest's sha256 in hex: what names a version of the environment."""
    return image.manifest.sha256


def read(path: Path) -> Image:
    """Raises UsageError, which names the file, for one that is not there or not whole."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    return parse(data, str(path))


def parse(data: bytes, where: str) -> Image:
    """The lock in these bytes; where: what errors call it. Raises UsageError."""
    if len(data) > LARGEST:
        raise _no_lock(where, f"it is larger than {LARGEST >> 20} MiB")
    try:
        version = msgspec.json.decode(data, type=_Version).schema
        if version != SCHEMA:
            raise _no_lock(where, f"its schema is {version}, and this envcheck reads {SCHEMA}")
        image = msgspec.json.decode(data, type=_LockFile).image
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _no_lock(where, str(error)) from None
    _verify(where, image)
    return image


def _verify(where: str, image: Image) -> None:
    manifest, config = image.manifest_text.encode(), image.config_text.encode()
    for what, blob, data in (
        ("manifest", image.manifest, manifest),
        ("config", image.config, config),
    ):
        if documents.digest_of(data) != blob.digest or len(data) != blob.size:
            raise _no_lock(where, f"its {what} is not the one that {blob.digest} names")
    try:
        asked = reference.parse(image.reference)
        found = documents.read(asked, manifest, image.manifest.media_type)
        if isinstance(found, ImageIndex):
            raise _no_lock(where, "its manifest is an index")
        derived = documents.image_of(asked, image.digest, found, config)
    except EnvcheckError as error:
        raise _no_lock(where, str(error)) from None
    fields = (name for name in image.__struct_fields__)
    wrong = [name for name in fields if getattr(image, name) != getattr(derived, name)]
    if wrong:
        raise _no_lock(where, f"its {wrong[0]} does not follow from its manifest and its config")


def _no_lock(where: str, why: str) -> UsageError:
    return UsageError(f"{where} is not an image lock of envcheck: {why}")

"""What an engine holds for a version, as ``held.json`` says it, checked: engines are asked to remove that."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from .. import durable
from ..engine import EngineImage
from .layout import Version

_FILES = ("apptainer", "enroot")  # whose image is a file of the version's directory, without a tag
_PREFIX = "localhost/envcheck/"
_IMAGE = re.compile(r"sha256:[0-9a-f]{64}")
# Beside PATH's, as the collector looks for programs.
_USUAL = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"


class Unreadable(Exception):
    """``held.json`` is there, and does not say what an engine holds for this version."""


def tag_of(environment: str, version_id: str) -> str:
    """envcheck's own name of an image in an engine, whatever its environment is called."""
    name = re.sub(r"[^a-z0-9]+", "-", environment.lower()).strip("-") or "environment"
    return f"{_PREFIX}{name}:{_last_word(version_id)}"


def read(version: Version) -> EngineImage | None:
    """Raises Unreadable."""
    try:
        held = durable.load(version.held, EngineImage)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError):
        raise Unreadable from None
    if not held.reference.isprintable() or not _may_be_ours(version, held):
        raise Unreadable
    return held


def program_trouble(held: EngineImage) -> str:
    """ "", or why the program is not started: a record does not say what runs on this machine."""
    path = Path(held.program)
    folders = f"{os.environ.get('PATH', '')}:{_USUAL}".split(":")
    names = (held.engine, "singularity") if held.engine == "apptainer" else (held.engine,)
    if path.name in names and str(path.parent) in folders and path.is_absolute():
        return ""
    return f"{held.program!r} is no {held.engine} in a directory of PATH, and is not started"


def _may_be_ours(version: Version, held: EngineImage) -> bool:
    """Whether it names an image by envcheck's own tag of this version, or a file: that goes with it."""
    if held.engine in _FILES:
        return not held.tag
    ours = rf"{_PREFIX}[a-z0-9-]+:{re.escape(_last_word(version.id))}"
    return bool(_IMAGE.fullmatch(held.image_id) and re.fullmatch(ours, held.tag))


def _last_word(version_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", version_id)

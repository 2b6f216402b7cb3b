"""Where a root and its versions keep what, and how versions are called."""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path
from typing import Annotated

import msgspec

from .. import places
from ..request import Request

OWN = ".envcheck"  # of a root, and of each version in it

# "23.03-py3.8-1f0c9a2b", "…-2": of a version that was begun with that lock before. Of an image:
# "23.03-tf1-1f0c9a2b", "my-tag-image-1f0c9a2b". Nothing else is ever taken for a version's name.
_ID = r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,200}-(py[0-9]+\.[0-9]+|tf[0-9]|torch|jax|image)-[0-9a-f]{8}(-[0-9]+)?"
VersionId = Annotated[str, msgspec.Meta(pattern=rf"\A{_ID}\Z", max_length=255)]
_LONGEST = 90  # of an engine's 128, which the flavour, the digest and a number must fit in, too
_NUMBERED = re.compile(r"(-[0-9a-f]{8})-[0-9]+$")


class Version:
    """One version's directory: the virtual environment or what starts the image, and envcheck's own files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.id = directory.name
        self.python = directory / "bin" / "python"
        self.own = directory / OWN
        self.record = self.own / "record.json"
        self.lock = self.own / "pylock.toml"
        self.held = self.own / "held.json"  # the image that an engine holds for it
        self.start = self.own / "start.json"  # how its image is started
        self.files = self.own / "files.json"
        self.doctor = self.own / "doctor.json"
        self.logs = self.own / "logs"
        # The files that every verified version of an image has.
        self.of_image = (self.own / "image.json", self.held, self.start)

    @property
    def is_container(self) -> bool:
        """Whether it is an image's, as far as it has come."""
        return any(path.exists() for path in self.of_image)

    @property
    def is_directory(self) -> bool:
        """Whether its directory and envcheck's in it are there as such, and no links to others."""
        try:
            return stat.S_ISDIR(self.directory.lstat().st_mode) and not self.own.is_symlink()
        except OSError:
            return False


class Root:
    """The directory of one environment's versions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own = path / OWN
        self.owner = self.own / "owner.json"
        self.lock = self.own / "lock"  # its text says who holds it
        self.journal = self.own / "journal.jsonl"
        self.failed = self.own / "failed"  # logs of versions that were put back
        self.removing = self.own / "removing"  # a version on its way out
        self.next = self.own / "current"  # what ``current`` is about to become
        self.current = path / "current"

    @property
    def name(self) -> str:
        """ "tensorflow" under the environments' directory, the path elsewhere."""
        return self.path.name if self.path.parent == places.environments() else str(self.path)

    def version(self, version_id: str) -> Version:
        return Version(self.path / version_id)

    def versions(self) -> list[Version]:
        """Every directory in it that is a version, finished or not, by name."""
        try:
            names = sorted(entry.name for entry in os.scandir(self.path) if _is_version(entry))
        except OSError:
            return []
        return [self.version(name) for name in names]

    def current_id(self) -> str | None:
        """The version that ``current`` names, whether it is there or not; None where it names none."""
        try:
            name = str(self.current.readlink())
        except OSError:
            return None
        return name if is_id(name) else None

    def foreign(self) -> list[Path]:
        """What lies in the root and is not of its layout."""
        known = {OWN, *(version.id for version in self.versions())}
        known |= {"current"} if self.current.is_symlink() else set()
        try:
            return sorted(p for p in self.path.iterdir() if p.name not in known)
        except OSError:
            return []


def version_id(release: str, kind: str, digest: str) -> str:
    """ "2.21.0-py3.11-1f0c9a2b", "23.03-tf1-1f0c9a2b": a directory's name, and an image's tag.

    kind: "py3.11"; of an image its flavour ("tf1") or "image". digest: 64 hexadecimal digits.
    """
    safe = re.sub(r"[^A-Za-z0-9._+!-]", "-", release)[:_LONGEST].lstrip("._+!-") or "unnamed"
    return f"{safe}-{kind}-{digest[:8]}"


def is_id(name: str) -> bool:
    return re.fullmatch(_ID, name) is not None


def free_id(root: Root, wanted: str) -> str:
    """The name without a number, or with the first one that makes it free."""
    bare = _NUMBERED.sub(r"\1", wanted)
    number, name = 1, bare
    while os.path.lexists(root.path / name):
        number += 1
        name = f"{bare}-{number}"
    return name


def root_of(request: Request, stack: str) -> Root:
    """Where an environment of that stack goes: the request's path, or its own under the environments."""
    return Root(Path(request.path) if request.path else places.environments() / stack)


def now() -> str:
    """The time of day in UTC, "2026-11-21T17:00:00Z"."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _is_version(entry: os.DirEntry[str]) -> bool:
    if not is_id(entry.name) or not entry.is_dir(follow_symlinks=False):
        return False
    try:
        inside = os.listdir(entry.path)  # noqa: PTH208 - names are all that is asked for
    except OSError:  # gone since
        return False
    # Empty: killed in the very moment in which it was made.
    return not inside or (OWN in inside and not Path(entry.path, OWN).is_symlink())

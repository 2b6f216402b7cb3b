"""Where a root and its versions keep what, and whether a directory is a root of ours."""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ...exit_codes import Cannot, UsageError
from .. import durable, places
from ..request import Request
from . import guard

OWN = ".envcheck"  # of a root, and of each version in it
LAYOUT = 1

# "23.03-py3.8-1f0c9a2b", "…-2": of a version that was begun with that lock before. Of an image:
# "23.03-tf1-1f0c9a2b", "my-tag-image-1f0c9a2b". Nothing else is ever taken for a version's name.
_ID = r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,200}-(py[0-9]+\.[0-9]+|tf[0-9]|image)-[0-9a-f]{8}(-[0-9]+)?"
VersionId = Annotated[str, msgspec.Meta(pattern=rf"\A{_ID}\Z", max_length=255)]
_LONGEST_TAG = 90  # of an engine's 128, which the flavour, the digest and a number must fit in, too

_MODE = 0o775  # of what a root is made with, whatever umask allows

_NUMBERED = re.compile(r"(-[0-9a-f]{8})-[0-9]+$")


class Owner(msgspec.Struct, frozen=True):
    """``owner.json``: this directory is envcheck's, and in this layout."""

    owner: str
    layout: int
    created_at: str


class Version:
    """One version's directory: the virtual environment or what starts the image, and envcheck's own files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.id = directory.name
        self.own = directory / OWN
        self.record = self.own / "record.json"
        self.lock = self.own / "pylock.toml"
        self.image_lock = self.own / "image.json"
        self.held = self.own / "held.json"  # what an engine holds for it
        self.start = self.own / "start.json"  # how its image is started
        self.files = self.own / "files.json"
        self.doctor = self.own / "doctor.json"
        self.logs = self.own / "logs"
        self.activate = self.own / "activate"  # holds bin/activate* until the version is verified

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def of_image(self) -> tuple[Path, ...]:
        """The files that every verified version of an image has."""
        return (self.image_lock, self.held, self.start)

    @property
    def is_container(self) -> bool:
        """Whether it is an image's, as far as it has come."""
        return any(path.exists() for path in self.of_image)

    @property
    def is_directory(self) -> bool:
        """Whether its directory and envcheck's in it are there as such, and no links to others."""
        return _is_directory(self.directory) and not self.own.is_symlink()

    @property
    def is_there(self) -> bool:
        """Whether there is something to start: its Python, or what says how its image is started."""
        return self.python.exists() or self.start.exists()


class Root:
    """The directory of one environment's versions.

    any_owner: the user says that it may belong to somebody else.
    """

    def __init__(self, path: Path, *, any_owner: bool = False) -> None:
        self.path = path
        self.any_owner = any_owner
        self.own = path / OWN
        self.owner = self.own / "owner.json"
        self.lock = self.own / "lock"
        self.holder = self.own / "holder.json"
        self.journal = self.own / "journal.jsonl"
        self.failed = self.own / "failed"  # what versions that were put back have said
        self.removing = self.own / "removing"  # versions on their way out
        self.next = self.own / "current"  # what ``current`` is about to become
        self.current = path / "current"

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
        """What lies in the root and is not of its layout: somebody else's."""
        known = {OWN, *(version.id for version in self.versions())}
        known |= {"current"} if self.current.is_symlink() else set()
        try:
            return sorted(p for p in self.path.iterdir() if p.name not in known)
        except OSError:
            return []


def version_id(release: str, minor: str, digest: str) -> str:
    """ "2.21.0-py3.11-1f0c9a2b"; digest: ``pylock.digest``."""
    safe = re.sub(r"[^A-Za-z0-9._+!-]", "-", release).lstrip("._+!-") or "unnamed"
    return f"{safe}-py{minor}-{digest[:8]}"


def image_version_id(release: str, flavour: Literal["tf1", "tf2", "image"], digest: str) -> str:
    """ "23.03-tf1-1f0c9a2b"; also an image's tag. release: for "image", the tag that was asked for, or "".

    digest: of the manifest, 64 hexadecimal digits.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", release)[:_LONGEST_TAG].lstrip("._-") or "untagged"
    return f"{safe}-{flavour}-{digest[:8]}"


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
    path = Path(request.path) if request.path else places.environments() / stack
    return Root(path, any_owner=request.allow_other_owner)


def look(root: Root) -> bool:
    """Whether there is a root of ours; False where one can be made.

    Touches nothing. Raises UsageError for a directory that is not ours, that another user may have
    prepared, or that can never be.
    """
    path = root.path
    _refuse_by_name(path)
    try:
        guard.check_kinds(root)
        ours = is_root(path)
        # Asked once more: another envcheck may have claimed it since.
        if not ours and path.exists() and not _is_bare(path) and not is_root(path):
            raise UsageError(
                f"{path}: this directory exists, is not empty, and was not made by envcheck",
                hint="name an empty directory with --path, or a new one",
            )
        guard.check_owner(root)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    return ours


def is_root(path: Path) -> bool:
    """Whether a root of ours is there. Raises UsageError for one in a newer layout."""
    try:
        owner = durable.load(path / OWN / "owner.json", Owner)
    except (OSError, msgspec.DecodeError):
        return False
    if owner.owner == "envcheck" and owner.layout > LAYOUT:
        raise UsageError(
            f"{path}: was made by a newer envcheck, and this one does not know its layout",
            hint="use the newer envcheck",
        )
    return owner.owner == "envcheck"


def claim(root: Root) -> None:
    """Make it ours, where it is not. Raises UsageError as ``look``, Cannot where it cannot be made."""
    if look(root):
        return
    owner = Owner("envcheck", LAYOUT, now())
    try:
        root.path.mkdir(_MODE, parents=True, exist_ok=True)
        root.own.mkdir(_MODE, exist_ok=True)
        durable.write(root.owner, msgspec.json.encode(owner))
        durable.sync_directory(root.path)
        durable.sync_directory(root.path.parent)
    except OSError as error:
        raise Cannot(
            f"{error.filename or root.path}: cannot be made: {error.strerror}",
            hint="name another directory with --path",
        ) from None


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


def _is_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _refuse_by_name(path: Path) -> None:
    if not path.is_absolute():
        raise UsageError(f"{path}: this is not an absolute path")
    plain = Path(os.path.normpath(path))
    if plain == Path("/"):
        raise UsageError(
            "/: an environment cannot take the whole file system", hint="name a directory in it"
        )
    if _is_home(plain):
        raise UsageError(f"{path}: this is your home directory", hint="name a directory in it")
    # os.path's, which take what may not be looked at for what is not there.
    above = next(place for place in (path, *plain.parents) if os.path.exists(place))  # noqa: PTH110
    if not os.path.isdir(above):  # noqa: PTH112
        what = "this" if above == path else str(above)
        raise UsageError(f"{path}: {what} is a file, and an environment needs a directory")
    for parent in plain.parents:
        if is_root(parent):
            raise UsageError(
                f"{path}: lies inside {parent}, another environment of envcheck's",
                hint="name a directory outside of it",
            )


def _is_home(path: Path) -> bool:
    try:
        home = places.home()
        return path == home or path.samefile(home)
    except (OSError, Cannot):
        return False


def _is_bare(path: Path) -> bool:
    """Whether nothing is in it, or only what an envcheck left that was killed while it claimed it."""
    names = os.listdir(path)  # noqa: PTH208 - names are all that is asked for
    if names == [OWN]:
        return all(name.startswith(".owner.json.") for name in os.listdir(path / OWN))  # noqa: PTH208
    return not names

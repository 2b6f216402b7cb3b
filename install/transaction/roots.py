"""Which roots there are: those under the environments' directory, and those that `--path` made elsewhere.

And which one was installed last: what `envcheck doctor` checks and `envcheck run` starts.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from ...exit_codes import Cannot, UsageError
from .. import durable, places
from . import guard
from .layout import Root

# Where nothing is installed: what works on a machine with a GPU, and on one without.
NONE_YET = "envcheck install creates one; without a GPU: envcheck install tensorflow-cpu"


class _Last(msgspec.Struct, frozen=True):
    prefix: str


def known() -> list[Root]:
    """Every root of ours, by path."""
    try:
        paths = {path for path in places.environments().iterdir() if not path.is_symlink()}
    except OSError:
        paths = set()
    paths |= {Path(path) for path in _registered()}
    return [Root(path) for path in sorted(paths) if _is_root(path)]


def register(root: Root) -> None:
    """Remember a root that lies elsewhere. Raises OSError."""
    if root.path.parent != places.environments() and str(root.path) not in _registered():
        _change(root.path, add=True)


def forget(root: Root) -> None:
    """Raises OSError."""
    if _last() == str(root.current):
        _last_path().unlink(missing_ok=True)
    if str(root.path) in _registered():
        _change(root.path, add=False)


def remember(root: Root) -> None:
    """Register it, and make it the one installed last. Raises OSError."""
    register(root)
    places.state().mkdir(parents=True, exist_ok=True)
    durable.write(_last_path(), msgspec.json.encode(_Last(str(root.current))))


def last() -> str | None:
    """The prefix of the environment installed last, ROOT/current; None where there is none, or its directory
    belongs to another user by now."""
    prefix = _last()
    safe = prefix is not None and guard.is_safe(Root(Path(prefix).parent))
    return prefix if safe else None


def find(word: str) -> Root:
    """The root of a name, or of a path (also of ``current`` or a version in it); without a word the only one
    there is. Raises UsageError."""
    roots = known()
    names = ", ".join(root.name for root in roots)
    if not word and len(roots) != 1:
        raise UsageError(
            f"which environment? There are {names}" if roots else "there is no environment yet",
            hint="name one" if roots else NONE_YET,
        )
    path = Path(os.path.abspath(os.path.expanduser(word)))  # noqa: PTH100, PTH111 - links stay
    found = [root.path for root in roots if word in ("", root.name)]
    found += [one for one in (path, path.parent) if word and _is_root(one)]
    if not found:
        raise UsageError(
            f"{word}: there is no such environment" + (f"; there are {names}" if names else ""),
            hint="envcheck list shows all of them",
        )
    return Root(found[0])


def version_id(root: Root, word: str) -> str:
    """The id of the one version that begins with the word; the word itself where none does.

    Raises UsageError where more than one does.
    """
    ids = [version.id for version in root.versions()]
    found = [word] if word in ids else [name for name in ids if word and name.startswith(word)]
    if len(found) > 1:
        raise UsageError(
            f"{word}: more than one version begins like this: {', '.join(found)}",
            hint="write more of the one that you mean",
        )
    return found[0] if found else word


def _last_path() -> Path:
    return places.state() / "last-install.json"


def _last() -> str | None:
    try:
        return next(iter(_own_paths([durable.load(_last_path(), _Last).prefix])), None)
    except (OSError, Cannot, ValueError):
        return None


def _registered() -> list[str]:
    try:
        return _own_paths(durable.load(places.state() / "environments.json", list[str]))
    except (OSError, ValueError):
        return []


def _own_paths(paths: list[str]) -> list[str]:
    return [path for path in paths if path.startswith("/") and path.isprintable()]


def _change(path: Path, *, add: bool) -> None:
    places.state().mkdir(parents=True, exist_ok=True)
    handle = durable.opened(places.state() / "environments.lock", os.O_RDWR | os.O_CREAT)
    try:
        with suppress(OSError):  # without locks there, at worst one of two is not remembered
            fcntl.flock(handle, fcntl.LOCK_EX)
        paths = set(_registered()) - {str(path)} | ({str(path)} if add else set())
        durable.write(places.state() / "environments.json", msgspec.json.encode(sorted(paths)))
    finally:
        os.close(handle)


def _is_root(path: Path) -> bool:
    try:
        return guard.is_root(path)
    except UsageError:
        return True  # in a newer layout: ours, and whoever opens it says so

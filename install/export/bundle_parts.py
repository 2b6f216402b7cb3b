"""What every bundle has, however its content was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from ... import __version__
from .. import places
from ..bundle import writing
from ..bundle.index import BundleFile, BundleIndex
from ..bundle.writing import Content
from ..fit.models import Choice
from ..lockfile import LockedFile, Lockfile
from ..mode import Reporter


def index_of(lock: Lockfile) -> BundleIndex:
    """Without the files, and without envcheck itself."""
    return BundleIndex(
        envcheck=__version__,
        stack=lock.stack,
        release=lock.release,
        python=lock.python,
        architecture=lock.architecture,
        created_at=lock.created_at,
        pythons=[],
        files={},
    )


def write(
    output: Path, index: BundleIndex, contents: Mapping[str, Content], reporter: Reporter
) -> BundleIndex:
    """The index with all files in it. Raises as writing.write does."""
    listed = {name: BundleFile(c.sha256, c.size) for name, c in sorted(contents.items())}
    index = msgspec.structs.replace(index, files=listed)
    reporter.say(f"writing {output}")
    writing.write(output, index, contents)
    return index


def check_room(output: Path, files: Sequence[LockedFile], missing: Sequence[LockedFile]) -> None:
    """Raises Cannot. While it is written, a file exists twice: downloaded, and in the bundle."""
    needed = sum(file.size or 0 for file in files)
    root = places.downloads()
    cache = next(folder for folder in (root, *root.parents) if folder.is_dir())
    if cache.stat().st_dev == output.parent.stat().st_dev:
        needed += sum(file.size or 0 for file in missing)
    writing.check_room(output, needed)


def stack_text(choice: Choice) -> str:
    """The stack as TOML, as it was chosen from: of its releases the one, for this Python."""
    interpreter, release = choice.candidate.interpreter, choice.candidate.release
    if interpreter:
        release = msgspec.structs.replace(release, python=[interpreter.minor])
    stack = msgspec.structs.replace(choice.stack, releases=[release])
    filled: dict[str, Any] = _filled(msgspec.to_builtins(stack))
    return tomli_w.dumps(filled)


def _filled(value: Any) -> Any:
    """Without what says nothing: "", 0, [] and {}. What is false stays, and says so."""
    if isinstance(value, dict):
        return {key: _filled(one) for key, one in value.items() if one or one is False}
    return [_filled(one) for one in value] if isinstance(value, list) else value

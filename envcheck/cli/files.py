"""Writing a result where the user asked for it: whole, or not at all."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import safe_text
from ..exit_codes import UsageError
from .commands import lines_in_place
from .style import style_for

if TYPE_CHECKING:
    from pathlib import Path

    from ..facts.snapshot import Snapshot


def show(arguments: argparse.Namespace, data: Any, render: Callable[..., str]) -> None:
    """A command's result: as JSON, or as text with commands as they are called here."""
    output = getattr(arguments, "output", None)
    if getattr(arguments, "format", "text") == "json":
        from .. import json_text  # not for --help

        write(output, json_text.render(data))
    else:
        write(output, lines_in_place(render(data, **style_for(output)._asdict())))


def check_places(arguments: argparse.Namespace, *inputs: str) -> None:
    """Refuse --output and --save that cannot be written, or that name an input (inputs: of arguments)."""
    places = {}
    for name in inputs:
        given = getattr(arguments, name)
        places["--from" if name == "source" else f"--{name}"] = None if given == "-" else given
    output, save = arguments.output or "-", getattr(arguments, "save", None)
    check_distinct({**places, "--output": output, "--save": save})
    check_writable(output)
    check_writable(save, "--save")


def save(arguments: argparse.Namespace, snapshot: Snapshot) -> None:
    """What --save asks for."""
    if arguments.save is not None:
        from ..facts import snapshot as snapshots

        write(arguments.save, snapshots.dump(snapshot), "--save")


def check_writable(output: str | None, option: str = "--output") -> None:
    """Refuse an option's FILE that cannot be written before the work is done, not after it."""
    if output is None or output == "-":
        return
    from pathlib import Path  # here and below: `--help` needs none of it

    path = Path(output)
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{option} {output}: this is a directory; name a file in it")
    if not folder.is_dir():
        raise UsageError(f"{option} {output}: there is no directory {folder}")
    if path.exists() and not path.is_file():
        return  # a device or a pipe: written to as it is
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {output}: no permission to write in {folder}")


def write(
    output: str | None, content: str | bytes, option: str = "--output", *, private: bool = False
) -> None:
    """Write a result to FILE (replaced in one step) or to standard output. Text is made safe. private: it
    tells what identifies somebody, and FILE is for its owner alone."""
    data = safe_text.styled(content).encode() if isinstance(content, str) else content
    if output is None or output == "-":
        _print(data)
        return
    from pathlib import Path

    path = Path(output)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(path, data, private)
    except OSError as error:
        raise UsageError(f"{option} {output}: {error.strerror}; nothing was written") from None


def check_distinct(places: Mapping[str, str | None]) -> None:
    """Refuse one file (or standard output, "-") under two options: the second would replace the first."""
    from pathlib import Path

    seen: dict[str, str] = {}
    for option, place in places.items():
        if place is None or (place != "-" and Path(place).exists() and not Path(place).is_file()):
            continue
        name = place if place == "-" else os.path.realpath(place)
        if name in seen:
            raise UsageError(f"{option} {place}: {seen[name]} names the same file")
        seen[name] = option


def append(path: Path, content: str) -> None:
    """Write a line of a result that is still coming to its FILE."""
    data = safe_text.styled(content).encode()
    try:
        with path.open("ab", buffering=0) as file:
            if (written := file.write(data)) < len(data):  # the disk is full: no line is cut off
                file.truncate(file.tell() - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise UsageError(f"--output {path}: {error.strerror}; the result is incomplete") from None


def _abandon_stdout() -> None:
    """Keep the interpreter from writing the rest of a result to a standard output that is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(data: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader (head, less) has gone: nobody is left to tell
        _abandon_stdout()
    except OSError as error:
        _abandon_stdout()
        raise UsageError(f"standard output: {error.strerror}; the result is incomplete") from None


def _replace(path: Path, data: bytes, private: bool) -> None:
    import tempfile
    from pathlib import Path

    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not private:  # mkstemp makes it so
            umask = os.umask(0)
            os.umask(umask)
            Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise

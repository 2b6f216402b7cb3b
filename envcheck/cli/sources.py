"""Where a command gets its Snapshot from: this machine, or a file."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Collection
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__ as VERSION
from .. import collection, scratch
from ..collection import Collected, Inside, Kernels
from ..exit_codes import UsageError
from . import messages

if TYPE_CHECKING:  # imported while the collector works
    from ..facts.snapshot import Snapshot

OF_NVIDIA_SMI = (b"nvidia", b"nvml", b"gpu", b"no devices were found")


def live(
    target: str | None,
    *,
    engine: str | None = None,
    entrypoint: str | None = None,
    redact: bool = True,
    deadline: float | None = None,
    kernels: Kernels | None = None,
    only: Collection[str] = (),
    quiet: bool = False,
    seen: Snapshot | None = None,
    work: collection.Work | None = None,
    events: collection.Events | None = None,
    doing: Callable[[], str] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Collected:
    """Look at this machine and the target; shows progress on a terminal, unless ``quiet``. engine,
    entrypoint: of the container that ``target`` names. doing: what the work does now, in words. The others:
    as of collection.collect."""
    from ..reports.progress import Progress

    with Progress(StringIO() if quiet else sys.stderr) as progress:

        def collect(where: str | Inside | None, known: Snapshot | None = None) -> Collected:
            inside = where if isinstance(where, Inside) else None
            return collection.collect(
                None if isinstance(where, Inside) else where,
                inside=inside,
                seen=seen or known,
                redact=redact,
                deadline=deadline,
                kernels=kernels,
                only=only,
                progress=functools.partial(progress.update, doing=doing),
                work=work,
                events=events,
                meanwhile=meanwhile,
            )

        if target is not None:
            return collect(*_named(target, engine, entrypoint, deadline))
        if engine is not None:
            raise UsageError("--engine goes with --target image:REF or container:ID")
        implied, origin = implied_target()
        if implied is None:
            _refuse_levels_of_a_target(kernels)
        try:
            return collect(_installed(implied, entrypoint))
        except UsageError as error:
            an_option_s_fault = str(error).startswith("--")
            if implied is None or an_option_s_fault:
                raise
            progress.clear()
            messages.say(
                f"{origin} cannot be checked, so the doctor checks the machine alone: {error}"
            )
            return collect(None)


def _refuse_levels_of_a_target(kernels: Kernels | None) -> None:
    if kernels is not None and kernels.levels and "L0" not in kernels.levels:
        raise UsageError(
            f"--kernels {','.join(kernels.levels)} needs a target environment, and there is none",
            hint="--target PATH names a virtual environment or an interpreter",
        )


def read_snapshot(path: str) -> Collected:
    """A Snapshot that somebody collected, or what nvidia-smi printed; "-" is standard input.

    Raises UsageError naming the place.
    """
    from ..facts import snapshot as snapshots

    data = read(path, snapshots.LIMIT)
    if not data.lstrip().startswith(b"{"):
        printed = _printed(path, data)
        if printed is not None:
            return printed
    try:
        found = snapshots.load(data)
        _say_what_is_ignored(path, found, snapshots.unknown_fields(data, found))
        return Collected(found, {})
    except snapshots.SnapshotError as error:
        raise UsageError(
            f"{path}: {error}",
            hint="envcheck collect --output FILE writes a Snapshot; saved output of nvidia-smi -q or"
            " -q -x can be read, too",
        ) from None


def read(path: str, limit: int) -> bytes:
    """A file's bytes, one more than ``limit`` of them at most; "-" is standard input."""
    try:
        if path == "-":
            return sys.stdin.buffer.read(limit + 1)
        with Path(path).open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _printed(path: str, data: bytes) -> Collected | None:
    """A Snapshot of nvidia-smi's output; None where it is none."""
    if not any(word in data.replace(b"\0", b"").lower() for word in OF_NVIDIA_SMI):
        return None
    try:
        if path != "-":
            return collection.collect(nvidia_smi=path)
        with scratch.directory() as folder:
            file = folder / "nvidia-smi.txt"
            file.write_bytes(data)
            return collection.collect(nvidia_smi=str(file))
    except UsageError:
        return None


def _say_what_is_ignored(path: str, found: Snapshot, places: list[str]) -> None:
    if places:
        named = ", ".join(place[:80] for place in places[:3])
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        messages.say(
            f"{path}: written by envcheck {found.machine.collector.version[:20]}, this is {VERSION};"
            f" fields that it does not know are ignored: {named}{more}"
        )


def implied_target() -> tuple[str | None, str]:
    active = collection.active_environment()
    if active:
        return active, f"the active environment {active}"
    from ..install.transaction import roots

    installed = roots.last()
    return installed, f"the environment that envcheck installed last, {installed},"


def _named(
    target: str, engine: str | None, entrypoint: str | None, deadline: float | None
) -> tuple[str | Inside, Snapshot | None]:
    """What --target names, a path or the way into a container; and what was looked at for that."""
    kind, colon, rest = target.partition(":")
    if colon and kind == "container":
        from ..install.engines import inside

        if entrypoint is not None:
            raise UsageError(
                "--entrypoint requires --target image:REF: a running container has already run its own"
            )
        return inside.of_container(rest, engine or ""), None
    if colon and kind == "image":
        from ..install.engines import inside

        machine = collection.collect(only=inside.NEEDED, redact=False, deadline=deadline).snapshot
        return inside.of_image(rest, machine, engine or "", entrypoint), machine
    if engine is not None:
        raise UsageError("--engine goes with --target image:REF or container:ID")
    path = rest if colon and kind == "path" else target
    if not path:
        raise UsageError("--target: the path is empty")
    expanded = os.path.expanduser(path)  # noqa: PTH111 - a path is kept as its user wrote it
    return _installed(expanded, entrypoint) or expanded, None


def _installed(path: str | None, entrypoint: str | None) -> str | Inside | None:
    """The way into the container that envcheck installed in that directory, else the path itself."""
    if path is None or not is_container(path):
        if entrypoint is not None:
            raise UsageError("--entrypoint goes with --target image:REF, or an installed container")
        return path
    from ..install.engines import inside
    from ..install.start import start_file

    return inside.of_start(start_file.read(_start_file(path)), entrypoint=entrypoint)


def is_container(path: str) -> bool:
    """Whether envcheck installed a container in that directory, not a virtual environment."""
    return _start_file(path).is_file()


def _start_file(path: str) -> Path:
    return Path(path, ".envcheck", "start.json")

"""Which releases of a stack work on a machine, and all reasons against the others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from packaging.version import Version

from ...data.versions import parse_version
from ...snapshot import Snapshot
from ..catalogue.model import Release, Stack
from ..pythons.interpreter import Interpreter
from ..pythons.versions import listed
from ..request import Request
from .choice import Candidate, Refusal, StackFit
from .gpu_rules import gpu
from .machine_rules import FitMachine, read
from .python_rules import python
from .reasons import Reasons
from .room import RoomAt

# An environment with TensorFlow has some twenty thousand files.
_FEW_INODES = 50_000

# The keys of a release's ``sister``: those with this prefix are what its branch's README builds with.
_README = "readme-build-"
_LIBRARIES = {"cuda": "CUDA", "cudnn": "cuDNN", "tensorrt": "TensorRT"}


def fit(
    stack: Stack,
    snapshot: Snapshot,
    interpreters: Sequence[Interpreter] | None,
    obtainable: Sequence[str],
    request: Request,
    room: RoomAt | None = None,
) -> StackFit:
    """Judge every release of a stack, newest first.

    interpreters: those of the machine; None where they are not known (a Snapshot of another one).
    obtainable: minor versions of Python that could be got. room: of the directory to install into; None
    where it is not known. What the Snapshot does not know is a note, and never a pass in silence.
    """
    machine = read(snapshot)
    candidates = []
    for release in stack.releases:
        reasons = Reasons()
        _release(release, reasons)
        _machine(stack, release, machine, reasons)
        if stack.gpu:
            gpu(machine, release, request.allow_no_gpu, reasons)
        found, to_get = python(release, machine, interpreters, obtainable, request, reasons)
        _place(release, room, reasons)
        candidates.append(
            Candidate(
                release=release,
                refusals=reasons.refusals,
                notes=reasons.notes,
                open=reasons.open,
                interpreter=found,
                python_to_get=to_get,
            )
        )
    return StackFit(stack=stack, candidates=candidates)


def named(candidate: Candidate) -> Candidate:
    """The candidate as it stands when its user names it: what naming overrides becomes a note."""
    overridden = [refusal for refusal in candidate.refusals if refusal.overridable]
    if not overridden:
        return candidate
    notes = [_as_note(candidate.release, refusal) for refusal in overridden]
    if any(refusal.kind == "not-known" for refusal in overridden):
        notes += _sister(candidate.release)
    return msgspec.structs.replace(
        candidate,
        refusals=[refusal for refusal in candidate.refusals if not refusal.overridable],
        notes=[*notes, *candidate.notes],
    )


def _as_note(release: Release, refusal: Refusal) -> str:
    return f"{release.release} {refusal.sentence}."


def _sister(release: Release) -> list[str]:
    """What others say in the place of what is not known: shown as such, and nothing rests on it."""
    said: dict[str, list[str]] = {"": [], _README: []}
    for key, value in release.sister.items():
        prefix = _README if key.startswith(_README) else ""
        name = key.removeprefix(prefix)
        if value:
            said[prefix].append(f"{_LIBRARIES.get(name, name)} {value}")
    return [
        f"{who}: {', '.join(values)}; not confirmed."
        for who, values in zip(("Same-month base image", "Its README"), said.values(), strict=True)
        if values
    ]


def _release(release: Release, reasons: Reasons) -> None:
    """What speaks against it on any machine."""
    if release.broken:
        reasons.refuse("broken", f"is broken: {release.broken.rstrip('.')}")
    if release.prerelease:
        hint = f"--release {release.release} installs it all the same"
        reasons.refuse("prerelease", "is a pre-release", hint, overridable=True)


def _machine(stack: Stack, release: Release, machine: FitMachine, reasons: Reasons) -> None:
    """The processor and the C library."""
    built = stack.architectures
    if not machine.architecture:
        reasons.unknown(
            f"The machine's architecture is not known; it is built for {listed(built)}."
        )
    elif machine.architecture not in built:
        reasons.refuse(
            "architecture",
            f"is built for {listed(built)}, and this machine is {machine.architecture}",
            f"a stack of your own may have wheels for {machine.architecture}: --stack FILE",
        )
    _cpu(stack, machine, reasons)
    _libc(stack, release, machine, reasons)


def _cpu(stack: Stack, machine: FitMachine, reasons: Reasons) -> None:
    """CPU flags are x86's: another architecture's wheels do without."""
    if not stack.cpu_flags or machine.architecture not in ("x86_64", ""):
        return
    if machine.cpu_flags is None:
        reasons.unknown(
            f"It needs a CPU with {_flags(stack.cpu_flags)}; whether this has is not known."
        )
        return
    missing = [flag for flag in stack.cpu_flags if flag not in machine.cpu_flags]
    if missing:
        reasons.refuse(
            "cpu",
            f"needs a CPU with {_flags(missing)}, which this machine's has not",
            "a virtual machine may hide it: let its CPU model pass it through",
        )


def _flags(flags: Iterable[str]) -> str:
    return listed([flag.upper() for flag in flags])


def _libc(stack: Stack, release: Release, machine: FitMachine, reasons: Reasons) -> None:
    needs = f"glibc {release.glibc} or newer" if release.glibc else "glibc"
    if machine.libc and machine.libc != "glibc":
        hint = "use a distribution with glibc, or NVIDIA's container"
        reasons.refuse("libc", f"needs {needs}, and this machine has {machine.libc}", hint)
    elif not machine.glibc:
        reasons.unknown(f"The machine's glibc is not known; it needs {needs}.")
    elif _older(machine.glibc, release.glibc):
        hint = "a newer distribution has it, and so has NVIDIA's container"
        reasons.refuse("libc", f"needs {needs}, and this machine has {machine.glibc}", hint)
    elif not release.glibc:
        _libc_not_known(stack, release, machine, reasons)


def _libc_not_known(stack: Stack, release: Release, machine: FitMachine, reasons: Reasons) -> None:
    """Of a release that does not say: what the one before it needs is hardly too much for it."""
    later = stack.releases[stack.releases.index(release) + 1 :]
    before = next((r for r in later if r.glibc and {*r.python} & {*release.python}), None)
    if before is None:
        return
    said = f"{before.release} before it needs {before.glibc}"
    if _older(machine.glibc, before.glibc):
        reasons.refuse(
            "not-known",
            f"needs a glibc that is not known; {said}, and this machine has {machine.glibc}",
            f"--release {release.release} installs it all the same",
            overridable=True,
        )
    else:
        reasons.note(f"Which glibc it needs is not known; {said}.")


def _older(there: str, needed: str) -> bool:
    have = parse_version(there)
    return bool(needed) and have is not None and have < Version(needed)


def _place(release: Release, room: RoomAt | None, reasons: Reasons) -> None:
    """The file system that it will be installed on."""
    if room is None:
        return
    for is_so, what in (
        (room.read_only, "is mounted read-only"),
        (not room.read_only and not room.writable, "may not be written to by this user"),
        (room.noexec, "is mounted noexec, so that no library there can be loaded"),
    ):
        if is_so:
            reasons.refuse("place", f"has no place: {room.path} {what}", "--path names another one")
    needed = release.download_mib + release.installed_mib
    if room.free_mib is None:
        reasons.note(f"How much is free at {room.path} is not known.")
    elif needed > room.free_mib:
        reasons.refuse(
            "disk",
            f"needs {_gib(needed)} ({_gib(release.download_mib)} to download,"
            f" {_gib(release.installed_mib)} installed), and {room.path} has {_gib(room.free_mib)} free:"
            f" {_gib(needed - room.free_mib)} are missing",
            "free some, or name another file system with --path",
        )
    if room.free_inodes is not None and room.free_inodes < _FEW_INODES:
        reasons.note(f"Only {room.free_inodes} more files fit on the file system of {room.path}.")
    if room.network:
        reasons.note(f"{room.path} is on a network file system: installing and importing are slow.")


def _gib(mib: int) -> str:
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib} MiB"

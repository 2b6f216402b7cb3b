"""Which releases of a stack work on a machine, and all reasons against the others; for both modes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.version import Version

from ...data.versions import parse_version
from ...facts.snapshot import Snapshot
from ..catalogue.containers import ImageRelease, ImageStack
from ..catalogue.model import Release, Stack
from ..pythons.interpreter import Interpreter, listed
from ..request import Request
from . import image_rules
from .disk_space import DiskSpace, gib
from .gpu_rules import gpu
from .machine import FitMachine, machine_of
from .models import ImageFit, Reasons, StackFit
from .python_rules import python

# An environment with TensorFlow has some twenty thousand files.
_FEW_INODES = 50_000


def fit(
    stack: Stack,
    snapshot: Snapshot,
    interpreters: Sequence[Interpreter] | None,
    obtainable: Sequence[str],
    request: Request,
    space: DiskSpace | None = None,
    allow_no_gpu: bool | None = None,
) -> StackFit:
    """Judge every release of a stack, newest first.

    interpreters: those of the machine; None where they are not known (a Snapshot of another one).
    obtainable: minor versions of Python that could be got. space: of the directory to install into; None
    where it is not known. allow_no_gpu: in place of the request's. What the Snapshot does not know is a
    note, and never a pass in silence.
    """
    machine = machine_of(snapshot)
    without = request.allow_no_gpu if allow_no_gpu is None else allow_no_gpu
    candidates = []
    for release in stack.releases:
        reasons = Reasons()
        _release(release, reasons)
        _machine(stack, release, machine, reasons)
        if stack.gpu:
            gpu(machine, release, without, reasons)
        found, to_get = python(release, machine, interpreters, obtainable, request, reasons)
        _place(release, space, reasons)
        candidates.append(reasons.about(release, found, to_get))
    return StackFit(stack=stack, candidates=candidates)


def fit_images(stack: ImageStack, snapshot: Snapshot, *, allow_no_gpu: bool = False) -> ImageFit:
    """Judge every release of a flavour of NVIDIA's containers, newest first.

    The machine's glibc and Pythons do not matter: the image has its own. What the Snapshot does not know
    is a note, and never a pass in silence.
    """
    machine = machine_of(snapshot)
    candidates = []
    for release in stack.releases:
        reasons = Reasons()
        _image_architecture(stack, release, machine, reasons)
        _cpu(stack.cpu_flags, machine, reasons)
        image_rules.gpu(machine, stack, release, allow_no_gpu, reasons)
        candidates.append(reasons.about(release))
    return ImageFit(stack=stack, candidates=candidates)


def _release(release: Release, reasons: Reasons) -> None:
    """What speaks against it on any machine."""
    if release.broken:
        reasons.refuse("broken", f"is broken: {release.broken.rstrip('.')}")
    if release.prerelease:
        hint = f"--release {release.release} installs it anyway"
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
    _cpu(stack.cpu_flags, machine, reasons)
    _libc(stack, release, machine, reasons)


def _image_architecture(
    stack: ImageStack, release: ImageRelease, machine: FitMachine, reasons: Reasons
) -> None:
    """The registry knows better what there is; the tables know of no other architecture."""
    known = stack.architectures
    if not machine.architecture:
        reasons.unknown(
            f"The machine's architecture is not known; the tables are about {listed(known)}."
        )
    elif machine.architecture not in known:
        reasons.refuse(
            "not-known",
            f"may not be there for {machine.architecture}: it is known only for {listed(known)}",
            f"--release {release.release} asks the registry",
            overridable=True,
        )


def _cpu(needed: Sequence[str], machine: FitMachine, reasons: Reasons) -> None:
    """CPU flags are x86's: another architecture's code does without."""
    if not needed or machine.architecture not in ("x86_64", ""):
        return
    if machine.cpu_flags is None:
        reasons.unknown(
            f"It needs a CPU with {_flags(needed)}; whether this one has them is not known."
        )
        return
    missing = [flag for flag in needed if flag not in machine.cpu_flags]
    if missing:
        reasons.refuse(
            "cpu",
            f"needs a CPU with {_flags(missing)}, which this machine's CPU lacks",
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
            f"--release {release.release} installs it anyway",
            overridable=True,
        )
    else:
        reasons.note(f"Which glibc it needs is not known; {said}.")


def _older(there: str, needed: str) -> bool:
    have = parse_version(there)
    return bool(needed) and have is not None and have < Version(needed)


def _place(release: Release, space: DiskSpace | None, reasons: Reasons) -> None:
    """The file system that it will be installed on."""
    if space is None:
        return
    for is_so, what in (
        (space.read_only, "is mounted read-only"),
        (not space.read_only and not space.writable, "is not writable by this user"),
        (space.noexec, "is mounted noexec, so libraries in it cannot be loaded"),
    ):
        if is_so:
            reasons.refuse(
                "place", f"has no usable directory: {space.path} {what}", "--path names another one"
            )
    needed = release.download_mib + release.installed_mib
    if space.free_mib is None:
        reasons.note(f"How much is free at {space.path} is not known.")
    elif needed > space.free_mib:
        reasons.refuse(
            "disk",
            f"needs {gib(needed)} ({gib(release.download_mib)} to download,"
            f" {gib(release.installed_mib)} installed), and {space.path} has {gib(space.free_mib)} free:"
            f" {gib(needed - space.free_mib)} more needed",
            "make room, or name another file system with --path",
        )
    if space.free_inodes is not None and space.free_inodes < _FEW_INODES:
        reasons.note(f"Only {space.free_inodes} more files fit on the file system of {space.path}.")
    if space.network:
        reasons.note(
            f"{space.path} is on a network file system: installing and importing are slow."
        )

"""Which releases of a stack work on a machine, and all reasons against the others; for both modes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...data.versions import parse_version
from ...facts.snapshot import Snapshot
from ..catalogue.containers import ImageStack
from ..catalogue.model import Stack
from ..progress import size
from ..pythons.interpreter import Interpreter, listed
from ..request import Request
from . import gpu_rules, image_rules, python_rules
from .disk_space import DiskSpace
from .machine import machine_of
from .models import Candidate, FitMachine, ImageCandidate, ImageFit, JudgedRelease, StackFit

# An environment with TensorFlow has some twenty thousand files.


def fit(
    stack: Stack,
    snapshot: Snapshot,
    interpreters: Sequence[Interpreter] | None,
    obtainable: Sequence[str],
    request: Request,
    space: DiskSpace | None = None,
) -> StackFit:
    """Judge every release of a stack, newest first.

    interpreters: those of the machine; None where they are not known (a Snapshot of another one).
    obtainable: minor versions of Python that could be got. space: of the directory to install into; None
    where it is not known. What the Snapshot does not know is a note, and never a pass in silence.
    """
    machine = machine_of(snapshot)
    candidates = [Candidate(release=release) for release in stack.releases]
    for candidate in candidates:
        _release(candidate)
        _architecture(stack, candidate, machine)
        _cpu(stack.cpu_flags, candidate, machine)
        _libc(candidate, machine)
        if stack.gpu:
            gpu_rules.judge(candidate, machine, request.allow_no_gpu)
        python_rules.judge(candidate, machine, interpreters, obtainable, request)
        _place(candidate, space)
    return StackFit(stack=stack, candidates=candidates)


def fit_images(stack: ImageStack, snapshot: Snapshot, *, allow_no_gpu: bool = False) -> ImageFit:
    """Judge every release of a flavour of NVIDIA's containers, newest first.

    The machine's glibc and Pythons do not matter: the image has its own. What the Snapshot does not know
    is a note, and never a pass in silence.
    """
    machine = machine_of(snapshot)
    candidates = [ImageCandidate(release=release) for release in stack.releases]
    for candidate in candidates:
        _architecture(stack, candidate, machine)
        _cpu(stack.cpu_flags, candidate, machine)
        image_rules.judge(stack, candidate, machine, allow_no_gpu)
    return ImageFit(stack=stack, candidates=candidates)


def _release(candidate: Candidate) -> None:
    """What speaks against it on any machine."""
    if broken := candidate.release.broken:
        candidate.refuse("broken", f"is broken: {broken.rstrip('.')}")
    if candidate.release.prerelease:
        candidate.refuse_unless_named("is a pre-release", kind="prerelease")


def _architecture(
    stack: Stack | ImageStack, candidate: JudgedRelease[Any], machine: FitMachine
) -> None:
    built = listed(stack.architectures)
    if not machine.architecture:
        candidate.unknown(f"The machine's architecture is not known; it is built for {built}.")
    elif machine.architecture in stack.architectures:
        return
    elif isinstance(stack, Stack):
        candidate.refuse(
            "architecture",
            f"is built for {built}, and this machine is {machine.architecture}",
            f"a stack of your own may have wheels for {machine.architecture}: --stack FILE",
        )
    else:  # the registry knows better what there is
        candidate.refuse_unless_named(
            f"may not be there for {machine.architecture}: it is known only for {built}"
        )


def _cpu(needed: Sequence[str], candidate: JudgedRelease[Any], machine: FitMachine) -> None:
    """CPU flags are x86's: another architecture's code does without."""
    if not needed or machine.architecture not in ("x86_64", ""):
        return
    if machine.cpu_flags is None:
        candidate.unknown(
            f"It needs a CPU with {_flags(needed)}; whether this one has them is not known."
        )
    elif missing := [flag for flag in needed if flag not in machine.cpu_flags]:
        candidate.refuse(
            "cpu",
            f"needs a CPU with {_flags(missing)}, which this machine's CPU lacks",
            "a virtual machine may hide it: let its CPU model pass it through",
        )


def _flags(flags: Iterable[str]) -> str:
    return listed([flag.upper() for flag in flags])


def _libc(candidate: Candidate, machine: FitMachine) -> None:
    needed = candidate.release.glibc
    needs = f"glibc {needed} or newer" if needed else "glibc"
    if machine.libc and machine.libc != "glibc":
        hint = "use a distribution with glibc, or NVIDIA's container"
        candidate.refuse("libc", f"needs {needs}, and this machine has {machine.libc}", hint)
    elif not machine.glibc:
        candidate.unknown(f"The machine's glibc is not known; it needs {needs}.")
    elif not needed:
        candidate.note("Which glibc it needs is not known.")
    elif _older(machine.glibc, needed):
        hint = "a newer distribution has it, and so has NVIDIA's container"
        candidate.refuse("libc", f"needs {needs}, and this machine has {machine.glibc}", hint)


def _older(there: str, needed: str) -> bool:
    have, wanted = parse_version(there), parse_version(needed)
    return have is not None and wanted is not None and have < wanted


def _place(candidate: Candidate, space: DiskSpace | None) -> None:
    """The file system that it will be installed on."""
    if space is None:
        return
    for is_so, what in (
        (space.read_only, "is mounted read-only"),
        (not space.read_only and not space.writable, "is not writable by this user"),
        (space.noexec, "is mounted noexec, so libraries in it cannot be loaded"),
    ):
        if is_so:
            why = f"has no usable directory: {space.path} {what}"
            candidate.refuse("place", why, "--path names another one")
    fetched, installed = candidate.release.download_mib << 20, candidate.release.installed_mib << 20
    if space.free_mib is None:
        candidate.note(f"How much is free at {space.path} is not known.")
    elif (needed := fetched + installed) > (free := space.free_mib << 20):
        candidate.refuse(
            "disk",
            f"needs {size(needed)} ({size(fetched)} to download, {size(installed)} installed), and"
            f" {space.path} has {size(free)} free: {size(needed - free)} more needed",
            "make room, or name another file system with --path",
        )

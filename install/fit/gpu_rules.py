"""Whether a release runs on this machine's GPUs: is there one, the driver, the compute capabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from packaging.version import Version

from ...checks.fitness import code_for, is_entry, ptx_runs, tensorflow_list
from ...checks.visible import VisibleDevice
from ...data.capabilities import capability
from ...data.cuda import driver_fits
from ...data.versions import parse_version
from ..catalogue.model import Release
from .models import Candidate, FitMachine, JudgedRelease

UPDATE = "update the driver; envcheck doctor says how it was installed"


def judge(candidate: Candidate, machine: FitMachine, allow_no_gpu: bool) -> None:
    """Of a stack of wheels that needs a GPU."""
    cuda = candidate.release.cuda
    has_gpu = judge_presence(candidate, machine, needed_driver(candidate.release), allow_no_gpu)
    if has_gpu and _below_documented_driver(candidate, machine):
        return
    if not cuda:
        candidate.refuse_unless_named(
            "was built with an unknown CUDA, so the driver that it needs is not known either"
        )
    elif has_gpu:
        _driver(candidate, machine, cuda)
        for device in machine.gpus:
            _capability(candidate, machine, device)


def needed_driver(release: Release) -> str:
    """The oldest driver that runs this release's CUDA and that its documentation allows.

    "" where neither is known.
    """
    by_cuda = driver_fits(release.cuda, "0").needs if release.cuda else ""
    return max(filter(None, (by_cuda, release.driver)), key=Version, default="")


def _below_documented_driver(candidate: Candidate, machine: FitMachine) -> bool:
    """Refuse a release whose own documentation asks for a newer driver than this machine's.

    A libcuda that supports the release's CUDA (of a forward-compatibility package, say) is enough,
    and a Windows driver has other version numbers.
    """
    release = candidate.release
    if release.cuda and ptx_runs(release.cuda, machine.driver_cuda):
        return False
    if not release.driver or machine.driver_version is None or machine.windows_driver:
        return False
    if machine.driver_version >= Version(release.driver):
        return False
    candidate.refuse(
        "driver",
        f"needs driver {needed_driver(release)} or newer, and this machine has {machine.driver}",
        UPDATE,
    )
    return True


def judge_presence(
    candidate: JudgedRelease[Any], machine: FitMachine, needs: str, allow_no_gpu: bool
) -> bool:
    """Whether there may be a GPU. needs: the oldest driver, "" where that is not known."""
    if machine.gpu_state == "there":
        return True
    if machine.gpu_state == "not-known":
        candidate.unknown("Whether this machine has an NVIDIA GPU is not known.")
        return True
    cards = f"{machine.on_bus} GPU{'s' if machine.on_bus > 1 else ''}"
    there = {
        "absent": "this machine has no NVIDIA GPU",
        "silent": f"driver {machine.driver} lists none, although the PCI bus shows {cards}",
        "no-driver": f"no NVIDIA driver answers, although the PCI bus shows {cards}",
    }[machine.gpu_state]
    if allow_no_gpu:
        candidate.note(f"{there[0].upper()}{there[1:]}: nothing that needs one can be verified.")
    elif machine.gpu_state == "no-driver":
        least = f" {needs} or newer" if needs else ""
        hint = "install the driver first; envcheck doctor says what is missing"
        candidate.refuse("driver", f"needs an NVIDIA driver{least}, and {there}", hint)
    else:
        hint = "--allow-no-gpu installs the GPU build anyway (unverified)"
        if machine.gpu_state == "silent":
            hint = "envcheck doctor says why"
        candidate.refuse("gpu", f"needs an NVIDIA GPU, and {there}", hint)
    return False


def _driver(candidate: Candidate, machine: FitMachine, cuda: str) -> None:
    if machine.driver_cuda and ptx_runs(cuda, machine.driver_cuda):
        return
    if machine.windows_driver:
        windows_driver(candidate, machine, cuda)
        return
    if machine.driver_version is None:
        candidate.unknown(
            f"Whether the driver runs CUDA {cuda} is not known, because its version is not known."
        )
        return
    fit = driver_fits(cuda, str(machine.driver_version))
    if fit.fits is None:
        candidate.refuse_unless_named(
            f"was built with CUDA {cuda}, and whether driver {machine.driver} runs that is not known"
        )
    elif fit.how == "too-old":
        sentence = f"needs driver {fit.needs} or newer, and this machine has {machine.driver}"
        candidate.refuse("driver", sentence, UPDATE)
    elif fit.how == "minor-version":
        candidate.note(
            f"CUDA {cuda} runs on driver {machine.driver} by minor-version compatibility."
        )


def windows_driver(
    candidate: JudgedRelease[Any], machine: FitMachine, cuda: str, *, minor_versions: bool = True
) -> None:
    """Of a driver in Windows only the CUDA that it supports says something; the tables have Linux's."""
    built, driver = parse_version(cuda), parse_version(machine.driver_cuda)
    if built is None or driver is None:
        candidate.unknown(
            f"Whether the Windows driver {machine.driver} runs CUDA {cuda} is not known."
        )
    elif built.major > driver.major or built.major < 11:
        candidate.refuse(
            "driver",
            f"was built with CUDA {cuda}, and the Windows driver {machine.driver} supports "
            f"{machine.driver_cuda} at most",
            "update the driver in Windows",
        )
    elif built.release[:2] > driver.release[:2] and not minor_versions:
        candidate.refuse_unless_named(
            f"was built with CUDA {cuda}, and whether the Windows driver {machine.driver}, which supports"
            f" {machine.driver_cuda}, runs it is not known"
        )
    elif built.release[:2] > driver.release[:2]:
        candidate.note(
            f"CUDA {cuda} runs on a driver for {machine.driver_cuda} by minor-version compatibility."
        )


def _has_code(device: VisibleDevice, built: Sequence[str]) -> bool:
    return (
        bool(device.capability)
        and code_for(device.capability, tensorflow_list(list(built))).kind != "none"
    )


def _capability(candidate: Candidate, machine: FitMachine, device: VisibleDevice) -> None:
    """Of every GPU: a framework that finds no code for one of them dies there."""
    release, built = candidate.release, candidate.release.compute_capabilities
    if parse_version(device.capability) is None or not built:
        judge_toolkit(candidate, release.cuda, device)
        return
    code = code_for(device.capability, tensorflow_list(built))
    whom = _whom(device)
    if code.kind == "native":
        return
    if code.kind == "none" and not all(map(is_entry, built)):
        candidate.refuse_unless_named(
            f"was built for {', '.join(built)}, and whether that holds code for {whom} is not known"
        )
        return
    if code.kind == "none":
        sentence = f"has no code for {whom}, only for {', '.join(built)}"
        if any(_has_code(other, built) for other in machine.gpus):  # its user may hide this one
            sentence += "; it would do where CUDA_VISIBLE_DEVICES leaves it out"
            candidate.refuse_unless_named(sentence, kind="capability")
        else:
            candidate.refuse("capability", sentence)
        return
    compiles = ptx_runs(release.cuda, machine.driver_cuda)
    if compiles is False:
        candidate.refuse(
            "capability",
            f"has only PTX of CUDA {release.cuda} for {whom}, which a driver for CUDA"
            f" {machine.driver_cuda} does not compile",
            UPDATE,
        )
        return
    if compiles is None:
        candidate.unknown(f"Whether the driver compiles PTX of CUDA {release.cuda} is not known.")
    candidate.note(
        f"It has no machine code for {whom}: the driver compiles its {code.by} first, so the first"
        " start takes tens of minutes."
    )


def _whom(device: VisibleDevice) -> str:
    return f"{device.name or 'a GPU'} (compute capability {device.capability})"


def judge_toolkit(candidate: JudgedRelease[Any], cuda: str, device: VisibleDevice) -> None:
    """Where the build's own list is not known: what its CUDA could make code for at all."""
    if parse_version(device.capability) is None:
        candidate.unknown(f"The compute capability of {device.name or 'a GPU'} is not known.")
        return
    known, built, whom = capability(device.capability), parse_version(cuda), _whom(device)
    if known is None or built is None:
        candidate.unknown(f"Whether it has code for {whom} is not known.")
        return
    first, last = parse_version(known.first_cuda), parse_version(known.last_cuda)
    if last is not None and built.release[:2] > last.release[:2]:
        candidate.refuse(
            "capability",
            f"has no code for {whom}: CUDA {known.last_cuda} was the last that can make it",
        )
    elif first is not None and built.release[:2] < first.release[:2]:
        candidate.refuse_unless_named(
            f"has no machine code for {whom}, which CUDA {known.first_cuda} was the first to make; whether"
            " it has PTX for it is not known",
            kind="capability",
            more="; with PTX its first start takes tens of minutes",
        )
    else:
        candidate.note(
            f"Which GPUs it has code for is not known; its CUDA {cuda} can make it for {whom}."
        )

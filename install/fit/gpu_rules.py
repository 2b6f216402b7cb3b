"""Whether a release runs on this machine's GPUs: is there one, the driver, the compute capabilities."""

from __future__ import annotations

import re

from packaging.version import Version

from ...checks.fitness import code_for, is_entry, ptx_runs, tensorflow_list
from ...checks.visible import VisibleDevice
from ...data.capabilities import capability
from ...data.cuda import driver_fits, newest_cuda_for
from ...data.versions import parse_version
from ..catalogue.model import Release
from ..pythons.interpreter import listed
from .machine import FitMachine
from .models import Reasons

UPDATE = "update the driver; envcheck doctor says how it was installed"


def gpu(machine: FitMachine, release: Release, allow_no_gpu: bool, reasons: Reasons) -> None:
    """Judge a release of a stack that needs a GPU."""
    if machine.gpu_state == "not-known":
        reasons.unknown("Whether this machine has an NVIDIA GPU is not known.")
    elif machine.gpu_state != "there":
        if not release.cuda:
            _cuda_not_known(release, reasons)
        without(machine, needed_driver(release.cuda), allow_no_gpu, reasons)
        return
    if not release.cuda:
        _cuda_not_known(release, reasons)
        return
    _driver(machine, release.cuda, reasons)
    if machine.gpu_state == "there":
        _capabilities(machine, release, reasons)


def needed_driver(cuda: str) -> str:
    """The oldest driver that runs this CUDA; "" where the table does not say."""
    return driver_fits(cuda, "0").needs if cuda else ""


def without(machine: FitMachine, needs: str, allow_no_gpu: bool, reasons: Reasons) -> None:
    """Judge a machine whose driver lists no GPU; ``needs``: the oldest driver, "" where that is not known."""
    cards = f"{machine.on_bus} GPU{'s' if machine.on_bus > 1 else ''}"
    there = {
        "absent": "this machine has no NVIDIA GPU",
        "silent": f"driver {machine.driver} lists none, although the PCI bus shows {cards}",
        "no-driver": f"no NVIDIA driver answers, although the PCI bus shows {cards}",
    }[machine.gpu_state]
    if allow_no_gpu:
        reasons.note(f"{there[0].upper()}{there[1:]}: nothing that needs one can be verified.")
        return
    if machine.gpu_state == "no-driver":
        least = f" {needs} or newer" if needs else ""
        hint = "install the driver first; envcheck doctor says what is missing"
        reasons.refuse("driver", f"needs an NVIDIA driver{least}, and {there}", hint)
        return
    hint = (
        "envcheck doctor says why"
        if machine.gpu_state == "silent"
        else "--allow-no-gpu installs the GPU build anyway (unverified)"
    )
    reasons.refuse("gpu", f"needs an NVIDIA GPU, and {there}", hint)


def _cuda_not_known(release: Release, reasons: Reasons) -> None:
    reasons.refuse(
        "not-known",
        "was built with an unknown CUDA, so the driver that it needs is not known either",
        f"--release {release.release} installs it anyway",
        overridable=True,
    )


def _driver(machine: FitMachine, cuda: str, reasons: Reasons) -> None:
    if machine.driver_cuda and ptx_runs(cuda, machine.driver_cuda):
        return
    if machine.windows_driver:
        _windows_driver(machine, cuda, reasons)
        return
    version = re.match(r"\d+(\.\d+)*", machine.driver)  # without what a vGPU's may end in
    if version is None:
        reasons.unknown(
            f"Whether the driver runs CUDA {cuda} is not known, because its version is not known."
        )
        return
    fit = driver_fits(cuda, version[0])
    if fit.fits is None:
        reasons.refuse(
            "not-known",
            f"was built with CUDA {cuda}, and whether driver {machine.driver} runs that is not known",
            overridable=True,
        )
    elif fit.how == "too-old":
        reasons.refuse(
            "driver",
            f"needs driver {fit.needs} or newer, and this machine has {machine.driver}",
            UPDATE,
        )
    elif fit.how == "minor-version":
        reasons.note(f"CUDA {cuda} runs on driver {machine.driver} by minor-version compatibility.")


def _windows_driver(machine: FitMachine, cuda: str, reasons: Reasons) -> None:
    """Of a driver in Windows only the CUDA that it supports says something; the table has Linux's."""
    built, driver = parse_version(cuda), parse_version(machine.driver_cuda)
    if built is None or driver is None:
        reasons.unknown(
            f"Whether the Windows driver {machine.driver} runs CUDA {cuda} is not known."
        )
    elif built.major > driver.major or built.major < 11:
        reasons.refuse(
            "driver",
            f"was built with CUDA {cuda}, and the Windows driver {machine.driver} supports "
            f"{machine.driver_cuda} at most",
            "update the driver in Windows",
        )
    else:
        reasons.note(
            f"CUDA {cuda} runs on a driver for {machine.driver_cuda} by minor-version compatibility."
        )


def _capabilities(machine: FitMachine, release: Release, reasons: Reasons) -> None:
    """Every GPU: a framework that finds no code for one of them dies there."""
    for device in machine.gpus:
        name = device.name or "a GPU"
        if re.fullmatch(r"\d+\.\d+", device.capability) is None:
            reasons.unknown(f"The compute capability of {name} is not known.")
        elif release.compute_capabilities:
            _by_list(machine, release, device, name, reasons)
        else:
            by_toolkit(release.release, release.cuda, device, reasons)


def _by_list(
    machine: FitMachine, release: Release, device: VisibleDevice, name: str, reasons: Reasons
) -> None:
    built = release.compute_capabilities
    code = code_for(device.capability, tensorflow_list(built))
    whom = f"{name} (compute capability {device.capability})"
    if code.kind == "native":
        return
    if code.kind == "none":
        if all(map(is_entry, built)):
            _no_code(machine, release, device, whom, reasons)
        else:
            reasons.refuse(
                "not-known",
                f"was built for {', '.join(built)}, and whether that holds code for {whom} is not known",
                overridable=True,
            )
        return
    own = machine.driver_cuda or _own_cuda(machine)
    compiles = ptx_runs(release.cuda, own)
    if compiles is False:
        reasons.refuse(
            "capability",
            f"has only PTX of CUDA {release.cuda} for {whom}, which a driver for CUDA {own} does not"
            " compile",
            UPDATE,
        )
        return
    if compiles is None:
        reasons.unknown(f"Whether the driver compiles PTX of CUDA {release.cuda} is not known.")
    reasons.note(
        f"It has no machine code for {whom}: the driver compiles its {code.by} first, so the first"
        " start takes tens of minutes."
    )


def _no_code(
    machine: FitMachine, release: Release, device: VisibleDevice, whom: str, reasons: Reasons
) -> None:
    """Beside a GPU that it has code for, one that it has none for can be hidden: its user decides."""
    built = release.compute_capabilities
    sentence = f"has no code for {whom}, only for {', '.join(built)}"
    others = [
        other.name or "another GPU"
        for other in machine.gpus
        if other.capability not in ("", device.capability)
        and code_for(other.capability, tensorflow_list(built)).kind != "none"
    ]
    if not others:
        reasons.refuse("capability", sentence)
        return
    reasons.refuse(
        "capability",
        f"{sentence}; it would do where CUDA_VISIBLE_DEVICES leaves {listed(others)} alone",
        f"--release {release.release} installs it anyway",
        overridable=True,
    )


def _own_cuda(machine: FitMachine) -> str:
    """The CUDA that the driver was released with, by the table; "" where that is not known."""
    row = None if machine.windows_driver else newest_cuda_for(machine.driver)
    return row.minor if row is not None else ""


def by_toolkit(release: str, cuda: str, device: VisibleDevice, reasons: Reasons) -> None:
    """Where the build's own list is not known: what its CUDA could make code for at all."""
    known, built = capability(device.capability), parse_version(cuda)
    whom = f"{device.name or 'a GPU'} (compute capability {device.capability})"
    if known is None or built is None:
        reasons.unknown(f"Whether it has code for {whom} is not known.")
        return
    first, last = _version(known.first_cuda), _version(known.last_cuda)
    if last is not None and built.release[:2] > last.release[:2]:
        reasons.refuse(
            "capability",
            f"has no code for {whom}: CUDA {known.last_cuda} was the last that can make it",
        )
    elif first is not None and built.release[:2] < first.release[:2]:
        reasons.refuse(
            "capability",
            f"has no machine code for {whom}, which CUDA {known.first_cuda} was the first to make; whether"
            " it has PTX for it is not known",
            f"--release {release} installs it anyway; with PTX its first start takes tens"
            " of minutes",
            overridable=True,
        )
    else:
        reasons.note(
            f"Which GPUs it has code for is not known; its CUDA {cuda} can make it for {whom}."
        )


def _version(text: str) -> Version | None:
    return parse_version(text) if text else None

"""Whether a container runs with this machine's driver and GPUs, by the table's own columns.

These are facts of containers: the image carries a compat libcuda for the branches that the table names,
exactly those, and only data-centre GPUs may use it. What runs a CUDA as a wheel is another question.
"""

from __future__ import annotations

import re

from packaging.version import Version

from ...checks.visible import VisibleDevice
from ...data.data_centre_gpus import is_data_centre
from ...data.versions import parse_version
from ..catalogue.containers import ImageRelease, ImageStack
from ..pythons.interpreter import listed
from .gpu_rules import UPDATE, by_toolkit, without
from .machine import FitMachine
from .models import Reasons


def gpu(
    machine: FitMachine,
    stack: ImageStack,
    release: ImageRelease,
    allow_no_gpu: bool,
    reasons: Reasons,
) -> None:
    """Judge the driver and every GPU; a machine without any is refused unless that is allowed."""
    if machine.gpu_state == "not-known":
        reasons.unknown("Whether this machine has an NVIDIA GPU is not known.")
    elif machine.gpu_state != "there":
        without(machine, release.min_driver, allow_no_gpu, reasons)
        if not release.min_driver:
            _driver_not_known(release, reasons)
        return
    if not release.min_driver:
        _driver_not_known(release, reasons)
    elif machine.windows_driver:
        _windows_driver(machine, release, reasons)
    else:
        _driver(machine, release, reasons)
    for device in machine.gpus:
        _capability(stack, release, device, reasons)


def covering(driver: Version, branches: tuple[str, ...]) -> str:
    """The compat branch that a driver is of: 450.80.02 is of "450.51", 418.87 of "418.xx"; "" of none."""
    for branch in branches:
        head, _, rest = branch.partition(".")
        first = None if rest == "xx" else parse_version(branch)
        if str(driver.major) == head and (first is None or driver >= first):
            return branch
    return ""


def _all_the_same(release: ImageRelease) -> str:
    return f"--release {release.release} installs it anyway"


def _driver_not_known(release: ImageRelease, reasons: Reasons) -> None:
    reasons.refuse(
        "not-known",
        "needs a driver, and no source says which version",
        _all_the_same(release),
        overridable=True,
    )


def _driver(machine: FitMachine, release: ImageRelease, reasons: Reasons) -> None:
    text = re.match(r"\d+(\.\d+)*", machine.driver)  # without what a vGPU's may end in
    if text is None:
        reasons.unknown(
            f"It needs driver {release.min_driver} or newer; the version of this machine's is not known."
        )
        return
    driver = Version(text[0])
    if driver >= Version(release.min_driver):
        return
    if not release.compat_branches:
        _compat_not_known(machine, release, reasons)
        return
    branch = covering(driver, release.compat_branches)
    if not branch:
        reasons.refuse(
            "driver",
            f"needs driver {release.min_driver} or newer, or on data-centre GPUs one of the branches"
            f" {listed(list(release.compat_branches), 'or')}, and this machine has {machine.driver}",
            UPDATE,
        )
        return
    _compat(machine, release, branch, reasons)


def _compat_not_known(machine: FitMachine, release: ImageRelease, reasons: Reasons) -> None:
    sentence = f"needs driver {release.min_driver} or newer, and this machine has {machine.driver}"
    if _others(machine, False):
        reasons.refuse("driver", sentence, UPDATE)
        return
    reasons.refuse(
        "not-known",
        f"{sentence}; which older branches its compat libcuda is for is not known",
        _all_the_same(release),
        overridable=True,
    )


def _compat(machine: FitMachine, release: ImageRelease, branch: str, reasons: Reasons) -> None:
    """The driver is of a compat branch: that counts where every GPU is a data-centre GPU."""
    none, open_ = _others(machine, False), _others(machine, None)
    if none:
        reasons.refuse(
            "driver",
            f"needs driver {release.min_driver} or newer, and this machine has {machine.driver}: its compat"
            f" libcuda for branch {branch} is for data-centre GPUs alone, and {listed(none)}"
            f" {'is' if len(none) == 1 else 'are'} none",
            UPDATE,
        )
    elif open_ or not machine.names:
        whether = (
            f"{listed(open_)} {'is one' if len(open_) == 1 else 'are such'}"
            if open_
            else "this machine has any"
        )
        reasons.refuse(
            "not-known",
            f"runs on driver {machine.driver} by its compat libcuda, for data-centre GPUs alone, and"
            f" whether {whether} is not known",
            _all_the_same(release),
            overridable=True,
        )
    else:
        reasons.note(
            f"Driver {machine.driver} is older than {release.min_driver}: it runs by the image's own compat"
            f" libcuda, which branch {branch} on data-centre GPUs may have."
        )


def _others(machine: FitMachine, answer: bool | None) -> list[str]:
    """The GPUs of which the table gives this answer, asked whether they are data-centre GPUs."""
    return [name or "a GPU" for name in machine.names if is_data_centre(name) is answer]


def _windows_driver(machine: FitMachine, release: ImageRelease, reasons: Reasons) -> None:
    """Of a driver in Windows only the CUDA that it supports says something; the table has Linux's."""
    built, driver = parse_version(release.cuda), parse_version(machine.driver_cuda)
    windows = f"the Windows driver {machine.driver}".rstrip()
    if built is None or driver is None:
        reasons.unknown(
            f"It needs driver {release.min_driver} on Linux; whether {windows} would do is not known."
        )
    elif built.major > driver.major:
        reasons.refuse(
            "driver",
            f"was built with CUDA {release.cuda}, and {windows} supports {machine.driver_cuda} at most",
            "update the driver in Windows",
        )
    elif built.release[:2] > driver.release[:2]:
        reasons.refuse(
            "not-known",
            f"was built with CUDA {release.cuda}, and whether {windows}, which supports"
            f" {machine.driver_cuda}, runs it is not known: the table has the drivers of Linux",
            _all_the_same(release),
            overridable=True,
        )
    else:
        reasons.note(
            f"Its driver {release.min_driver} is one of Linux; {windows} supports CUDA"
            f" {machine.driver_cuda}, and it needs {release.cuda}."
        )


def _capability(
    stack: ImageStack, release: ImageRelease, device: VisibleDevice, reasons: Reasons
) -> None:
    have = parse_version(device.capability) if device.capability else None
    name = device.name or "a GPU"
    if have is None:
        reasons.unknown(f"The compute capability of {name} is not known.")
        return
    whom = f"{name} has {device.capability}"
    if release.min_capability:
        if have < Version(release.min_capability):
            sentence = f"needs compute capability {release.min_capability} or newer, and {whom}"
            reasons.refuse("capability", sentence)
            return
    elif near := _near(stack, release):
        if have < Version(near.min_capability):
            reasons.refuse(
                "not-known",
                f"needs a compute capability that is not known; {near.release} needs"
                f" {near.min_capability} or newer, and {whom}",
                _all_the_same(release),
                overridable=True,
            )
            return
        reasons.note("Which compute capability it needs at least is not known.")
    if release.cuda:
        by_toolkit(release.release, release.cuda, device, reasons)


def _near(stack: ImageStack, release: ImageRelease) -> ImageRelease | None:
    """The nearest release of which the least compute capability is known."""
    places = {one.release: place for place, one in enumerate(stack.releases)}
    return min(
        (one for one in stack.releases if one.min_capability),
        key=lambda one: abs(places[one.release] - places[release.release]),
        default=None,
    )

"""Whether a container runs with this machine's driver and GPUs, by the table's own columns.

These are facts of containers: the image carries a compat libcuda for the branches that the table names,
exactly those, and only data-centre GPUs may use it. What runs a CUDA as a wheel is another question.
"""

from __future__ import annotations

from packaging.version import Version

from ...checks.visible import VisibleDevice
from ...data.products import is_data_centre
from ...data.versions import parse_version
from ..catalogue.containers import ImageRelease, ImageStack
from ..pythons.interpreter import listed
from .gpu_rules import UPDATE, judge_presence, judge_toolkit, windows_driver
from .models import FitMachine, ImageCandidate


def judge(
    stack: ImageStack, candidate: ImageCandidate, machine: FitMachine, allow_no_gpu: bool
) -> None:
    """Judge the driver and every GPU; a machine without any is refused unless that is allowed."""
    needs = candidate.release.min_driver
    has_gpu = judge_presence(candidate, machine, needs, allow_no_gpu)
    if not needs:
        candidate.refuse_unless_named("needs a driver, and no source says which version")
    elif has_gpu and machine.windows_driver:
        windows_driver(candidate, machine, candidate.release.cuda, minor_versions=False)
    elif has_gpu:
        _driver(candidate, machine)
    for device in machine.gpus:
        _capability(stack, candidate, device)


def covering(driver: Version, branches: tuple[str, ...]) -> str:
    """The compat branch that a driver is of: 450.80.02 is of "450.51", 418.87 of "418.xx"; "" of none."""
    for branch in branches:
        head, _, rest = branch.partition(".")
        first = None if rest == "xx" else parse_version(branch)
        if str(driver.major) == head and (first is None or driver >= first):
            return branch
    return ""


def _driver(candidate: ImageCandidate, machine: FitMachine) -> None:
    release, driver = candidate.release, machine.driver_version
    if driver is None:
        candidate.unknown(
            f"It needs driver {release.min_driver} or newer; the version of this machine's is not known."
        )
        return
    if driver >= Version(release.min_driver):
        return
    needs = f"needs driver {release.min_driver} or newer"
    has = f"and this machine has {machine.driver}"
    none, open_ = _gpus(machine, data_centre=False), _gpus(machine, data_centre=None)
    branch = covering(driver, release.compat_branches)
    if not release.compat_branches and not none:
        candidate.refuse_unless_named(
            f"{needs}, {has}; which older branches its compat libcuda is for is not known"
        )
    elif not release.compat_branches:
        candidate.refuse("driver", f"{needs}, {has}", UPDATE)
    elif not branch:
        branches = listed(release.compat_branches, "or")
        sentence = f"{needs}, or on data-centre GPUs one of the branches {branches}, {has}"
        candidate.refuse("driver", sentence, UPDATE)
    elif none:
        candidate.refuse(
            "driver",
            f"{needs}, {has}: its compat libcuda for branch {branch} is for data-centre GPUs alone, and"
            f" {listed(none)} {'is' if len(none) == 1 else 'are'} none",
            UPDATE,
        )
    elif open_ or not machine.names:
        whether = "this machine has any"
        if open_:
            whether = f"{listed(open_)} {'is one' if len(open_) == 1 else 'are such'}"
        candidate.refuse_unless_named(
            f"runs on driver {machine.driver} by its compat libcuda, for data-centre GPUs alone, and"
            f" whether {whether} is not known"
        )
    else:
        candidate.note(
            f"Driver {machine.driver} is older than {release.min_driver}: it runs by the image's own compat"
            f" libcuda, which branch {branch} on data-centre GPUs may have."
        )


def _gpus(machine: FitMachine, *, data_centre: bool | None) -> list[str]:
    """Those that are data-centre GPUs, that are none, or of which that is not known."""
    return [name or "a GPU" for name in machine.names if is_data_centre(name) is data_centre]


def _capability(stack: ImageStack, candidate: ImageCandidate, device: VisibleDevice) -> None:
    release, have = candidate.release, parse_version(device.capability)
    whom = f"{device.name or 'a GPU'} has {device.capability}"
    near = release if release.min_capability else _near(stack, release)
    if have is not None and near is not None:
        least = near.min_capability
        if near is release and have < Version(least):
            sentence = f"needs compute capability {least} or newer, and {whom}"
            candidate.refuse("capability", sentence)
            return
        if have < Version(least):
            candidate.refuse_unless_named(
                f"needs a compute capability that is not known; {near.release} needs {least} or newer,"
                f" and {whom}"
            )
            return
        if near is not release:
            candidate.note("Which compute capability it needs at least is not known.")
    if release.cuda or have is None:
        judge_toolkit(candidate, release.cuda, device)


def _near(stack: ImageStack, release: ImageRelease) -> ImageRelease | None:
    """The nearest release of which the least compute capability is known."""
    places = {one.release: place for place, one in enumerate(stack.releases)}
    return min(
        (one for one in stack.releases if one.min_capability),
        key=lambda one: abs(places[one.release] - places[release.release]),
        default=None,
    )

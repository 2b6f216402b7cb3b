"""Checks on which libcuda a process maps: the driver's own, a stub, or a compat package's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.versions import parse_version
from ...facts.base import known
from ...facts.gpu import CudaDriver
from ...facts.kernel import Kernel
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about_file
from ..driver_state import NO_GPUS, container, on_wsl
from ..registry import check
from ..system_commands import on_system

_STUB = re.compile(r"/stubs/")
_COMPAT = re.compile(r"/compat(-[^/]*)?/|/cuda-compat[^/]*/")
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")
WSL_LIBRARIES = "/usr/lib/wsl/"


@check(
    "DRV-005",
    title="libcuda is the driver's own",
    problem="libcuda is not the driver's own",
    about="libcuda.so.1 belongs to the driver. Toolkits carry a stub of it for linking, and compat"
    " packages carry a newer one for older drivers, which works on data-centre GPUs only. A path to"
    " either of them in LD_LIBRARY_PATH or the loader's cache makes CUDA fail with 34, 803 or 804, or"
    " hides a newer driver behind an older compat library. Judged by the file that a process really"
    " mapped, and by what cuInit says with it; a compat library with which CUDA starts is no failure.",
    sources=(
        "numba#9732 (stubs)",
        "mistral-inference#144 (compat)",
        "NVIDIA CUDA Compatibility guide, Forward Compatibility",
    ),
    follows=NO_GPUS,
)
def libcuda_is_the_drivers(view: SnapshotView) -> Iterator[Verdict]:
    cuda = facts_of(view.machine.cuda, "libcuda")
    path = need(cuda.library_path, "the libcuda that is mapped")
    paths = f"{path} {known(cuda.library_real_path) or ''} "
    if _STUB.search(paths) or known(cuda.init_code) == 34:
        yield _finding(
            view,
            path,
            "fail",
            "The loader finds the toolkit's libcuda stub instead of the driver's library: no CUDA program"
            " can start.",
            "Take the stubs directory out of LD_LIBRARY_PATH and the loader's configuration; it is for"
            " linking only.",
        )
    elif _COMPAT.search(paths):
        yield _compat(view, cuda, path)
    else:
        yield Passed(path)


# What cuInit says of a libcuda that does not go with the driver; its other errors are not compat's.
_COMPAT_ERRORS = (803, 804)


def _compat(view: SnapshotView, cuda: CudaDriver, path: str) -> Verdict:
    code = known(cuda.init_code)
    if code in _COMPAT_ERRORS:
        return _finding(
            view,
            path,
            "fail",
            f"libcuda comes from a compat directory and CUDA does not start with it (error {code}):"
            " forward compatibility needs a data-centre GPU and a driver branch that it was made for.",
            "Take the compat directory off the loader's path, and upgrade the driver where its own CUDA"
            " is too old.",
        )
    own, mapped = _module_version(view), library_version(cuda)
    ours, theirs = parse_version(own or ""), parse_version(mapped or "")
    if ours is not None and theirs is not None and theirs < ours:
        return _finding(
            view,
            path,
            "warn",
            f"libcuda {mapped} from a compat directory hides the newer one of driver {own}: programs get"
            " an older CUDA than the driver has.",
            "Take the compat directory off the loader's path.",
        )
    if code:
        raise Skip(f"CUDA does not start (DRV-004), and error {code} is not compat's")
    return Passed(f"forward compatibility: libcuda {mapped or 'of a version not told'} from {path}")


def library_version(cuda: CudaDriver) -> str | None:
    """The version in libcuda's real file name ("550.54.15"), None where it has none."""
    found = _VERSION.search(known(cuda.library_real_path) or known(cuda.library_path) or "")
    return found.group(1) if found else None


def _module_version(view: SnapshotView) -> str | None:
    kernel = view.machine.kernel
    return None if kernel is None or kernel.facts is None else known(kernel.facts.driver_version)


def _finding(view: SnapshotView, path: str, level: str, message: str, what_to_do: str) -> Finding:
    evidence = [view.evidence("machine.cuda.library_path")]
    cuda = view.machine.cuda
    if cuda is not None and cuda.facts is not None:
        if known(cuda.facts.library_real_path) not in (None, path):
            evidence.append(view.evidence("machine.cuda.library_real_path"))
        if known(cuda.facts.init_code) is not None:
            evidence.append(view.evidence("machine.cuda.init_code"))
    return Finding(
        "fail" if level == "fail" else "warn",
        message,
        about_file(path),
        evidence,
        Remedy(
            what_to_do,
            [
                "echo $LD_LIBRARY_PATH",
                "grep -rnE 'stubs|compat' /etc/ld.so.conf /etc/ld.so.conf.d/",
                "ldconfig -p | grep libcuda.so",
                "sudo ldconfig",
            ],
        ),
    )


@check(
    "DRV-009",
    title="On WSL, CUDA goes through Windows' driver",
    problem="another libcuda hides the one of Windows",
    about="On WSL2 the NVIDIA driver is Windows' own, and its libraries are mounted at /usr/lib/wsl/lib."
    " A Linux driver that is installed inside WSL puts its libcuda in front of that one, and CUDA no"
    " longer starts. Judged by the libcuda that a process mapped and by the driver packages inside.",
    sources=("NVIDIA CUDA on WSL User Guide",),
)
def wsl_uses_windows_driver(view: SnapshotView) -> Iterator[Verdict]:
    if not on_wsl(view):
        raise Skip("this is not WSL")
    if container(view):
        raise Skip("in a container on WSL the engine brings the libraries")
    probe = view.machine.kernel
    kernel = Kernel() if probe is None or probe.facts is None else probe.facts
    packages = known(kernel.driver_packages)
    cuda = facts_of(view.machine.cuda, "libcuda")
    path = need(cuda.library_path, "the libcuda that is mapped")
    if path.startswith(WSL_LIBRARIES):
        yield Passed(path)
        return
    evidence = [view.evidence("machine.cuda.library_path")]
    if packages:
        names = ", ".join(package.name for package in packages)
        evidence.append(view.evidence("machine.kernel.driver_packages", names))
    yield Finding(
        "warn" if known(cuda.init_code) == 0 else "fail",
        "On WSL the driver is Windows' own, and a libcuda from inside stands in front of it: CUDA does"
        " not start with it, or starts with another version.",
        subjects=about_file(path),
        evidence=evidence,
        remedy=Remedy(
            "Remove the Linux driver from WSL, where it has no place (NVIDIA's CUDA toolkit without a driver,"
            " cuda-toolkit, may stay), then restart WSL. In Windows, NVIDIA's driver has to be installed and"
            " current.",
            [*_remove(view, kernel, path), "sudo ldconfig", "wsl.exe --shutdown"],
        ),
    )


def _remove(view: SnapshotView, kernel: Kernel, path: str) -> list[str]:
    """The commands that take the driver out of WSL: its packages by their names, or the runfile's files."""
    names = [package.name for package in known(kernel.driver_packages) or []]
    runfile = known(kernel.runfile_installer)
    removal = [f"sudo {word(runfile)}"] if runfile else []
    removal += on_system(view, "remove-driver", names=names) if names else []
    if not removal:
        return on_system(view, "owner", names=[path])
    return [f"test -e {WSL_LIBRARIES}lib/libcuda.so.1 && {command}" for command in removal]

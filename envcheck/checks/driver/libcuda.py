"""Checks on which libcuda a process maps: the driver's own, a stub, or a compat package's."""

from __future__ import annotations

import re

from ...data.versions import parse_version
from ..driver_state import NO_GPUS, container, on_wsl
from ..reading import CudaDriver, Kernel, Skip, SnapshotView, facts_of, facts_or, known, need
from ..system_commands import on_system
from ..verdicts import (
    Cause,
    Evidence,
    Level,
    Passed,
    Verdicts,
    about_file,
    check,
    fail,
    warn,
    word,
)

_STUB = re.compile(r"/stubs/")
_COMPAT = re.compile(r"/compat(-[^/]*)?/|/cuda-compat[^/]*/")
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")
# What cuInit returns with a libcuda that does not fit the driver; compat causes no other errors.
_COMPAT_ERRORS = (803, 804)
_STUB_ERROR = 34
_WSL = "/usr/lib/wsl/"
_PATHS = (
    "echo $LD_LIBRARY_PATH",
    "grep -rnE 'stubs|compat' /etc/ld.so.conf /etc/ld.so.conf.d/",
    "ldconfig -p | grep libcuda.so",
    "sudo ldconfig",
)

STUB = fail(
    "libcuda-stub",
    "libcuda is a stub",
    "The loader finds the toolkit's libcuda stub instead of the driver's library: no CUDA program"
    " can start.",
    "Take the stubs directory out of LD_LIBRARY_PATH and the loader's configuration; it is for"
    " linking only.",
    *_PATHS,
)
REFUSED = fail(
    "compat-refused",
    "libcuda is a compat package's, and refused",
    "libcuda comes from a compat directory and CUDA does not start with it (error {code}):"
    " forward compatibility needs a data-centre GPU and a driver branch that it was made for.",
    "Take the compat directory off the loader's path, and upgrade the driver if its own CUDA is too"
    " old.",
    *_PATHS,
)
OLDER = warn(
    "compat-older-than-driver",
    "an old compat libcuda hides the driver's own",
    "libcuda {mapped} from a compat directory hides the newer one of driver {driver}: programs get"
    " an older CUDA than the driver has.",
    "Take the compat directory off the loader's path.",
    *_PATHS,
)


@check(
    "DRV-005",
    title="libcuda is the driver's own",
    causes=[STUB, REFUSED, OLDER],
    about="libcuda.so.1 belongs to the driver. Toolkits carry a stub of it for linking, and compat packages"
    " carry a newer one for older drivers, which works on data-centre GPUs only.",
    sources=["numba#9732 (stubs); mistral-inference#144 (compat)"],
    follows=NO_GPUS,
)
def libcuda_is_the_drivers(view: SnapshotView) -> Verdicts:
    cuda = facts_of(view.machine.cuda, "libcuda")
    path = need(cuda.library_path, "the libcuda that is mapped")
    code = known(cuda.init_code)
    about, evidence = about_file(path), _evidence(view, cuda, path)
    paths = f"{path} {known(cuda.library_real_path) or ''} "
    if _STUB.search(paths) or code == _STUB_ERROR:
        yield STUB.found(about, evidence)
    elif not _COMPAT.search(paths):
        yield Passed(path)
    elif code in _COMPAT_ERRORS:
        yield REFUSED.found(about, evidence, code=code)
    else:
        own = known(facts_or(view.machine.kernel, Kernel).driver_version)
        mapped = library_version(cuda)
        ours, theirs = parse_version(own or ""), parse_version(mapped or "")
        if ours is not None and theirs is not None and theirs < ours:
            yield OLDER.found(about, evidence, mapped=mapped, driver=own)
        elif code:
            raise Skip(f"CUDA does not start (DRV-004), and error {code} is not compat's")
        else:
            yield Passed(f"forward compatibility: libcuda {mapped or '(version not known)'} {path}")


def library_version(cuda: CudaDriver) -> str | None:
    """The version in libcuda's real file name ("550.54.15"), None where it has none."""
    found = _VERSION.search(known(cuda.library_real_path) or known(cuda.library_path) or "")
    return found.group(1) if found else None


def _evidence(view: SnapshotView, cuda: CudaDriver, path: str) -> list[Evidence]:
    fields = ["library_path"]
    fields += ["library_real_path"] * (known(cuda.library_real_path) not in (None, path))
    fields += ["init_code"] * (known(cuda.init_code) is not None)
    return [view.evidence(f"machine.cuda.{field}") for field in fields]


_HIDDEN = "On WSL the driver is Windows' own, and a libcuda from inside hides it: CUDA"
_REMOVE = (
    "Remove the Linux driver from WSL (NVIDIA's CUDA toolkit without a driver, cuda-toolkit, may stay), then"
    " restart WSL. In Windows, NVIDIA's driver has to be installed and current."
)


def _hides(key: str, severity: Level, what: str) -> Cause:
    return Cause(key, severity, "another libcuda hides the one of Windows", _HIDDEN + what, _REMOVE)


HIDES = _hides("linux-driver-in-wsl", "fail", " does not start with it.")
HIDES_WORKING = _hides("linux-libcuda-in-wsl", "warn", " starts with another version.")


@check(
    "DRV-009",
    title="On WSL, CUDA goes through Windows' driver",
    causes=[HIDES, HIDES_WORKING],
    about="On WSL2 the NVIDIA driver is Windows' own, and its libraries are mounted at /usr/lib/wsl/lib. A"
    " Linux driver that is installed inside WSL hides that libcuda behind its own, and CUDA no longer"
    " starts.",
    sources=["NVIDIA CUDA on WSL User Guide"],
)
def wsl_uses_windows_driver(view: SnapshotView) -> Verdicts:
    if not on_wsl(view):
        raise Skip("this is not WSL")
    if container(view):
        raise Skip("in a container on WSL the engine brings the libraries")
    cuda = facts_of(view.machine.cuda, "libcuda")
    path = need(cuda.library_path, "the libcuda that is mapped")
    if path.startswith(_WSL):
        yield Passed(path)
        return
    kernel = facts_or(view.machine.kernel, Kernel)
    names = [package.name for package in known(kernel.driver_packages) or []]
    evidence = [view.evidence("machine.cuda.library_path")]
    if names:
        evidence.append(view.evidence("machine.kernel.driver_packages", ", ".join(names)))
    runfile = known(kernel.runfile_installer)
    removal = [f"sudo {word(runfile)}"] if runfile else []
    removal += on_system(view, "remove-driver", names=names) if names else []
    removal = [f"test -e {_WSL}lib/libcuda.so.1 && {command}" for command in removal]
    yield (HIDES_WORKING if known(cuda.init_code) == 0 else HIDES).found(
        about_file(path),
        evidence,
        commands=[
            *(removal or on_system(view, "owner", names=[path])),
            "sudo ldconfig",
            "wsl.exe --shutdown",
        ],
    )

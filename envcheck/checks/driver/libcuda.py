"""Checks on which libcuda a process maps: the driver's own, a stub, or a compat package's."""

from __future__ import annotations

import re

from ...data.versions import parse_version
from ..declared import declared_causes
from ..driver_state import container, on_wsl
from ..reading import CudaDriver, Kernel, Skip, SnapshotView, facts_of, facts_or, known, need
from ..system_commands import on_system
from ..verdicts import Passed, Verdicts, about_file, check, word

CAUSE = declared_causes(__name__)

STUBS = re.compile(r"/stubs/")
COMPAT = re.compile(r"/compat(-[^/]*)?/|/cuda-compat[^/]*/")
STUB_ERROR = 34
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")
# What cuInit returns with a libcuda that does not fit the driver; compat causes no other errors.
_COMPAT_ERRORS = (803, 804)
_WSL = "/usr/lib/wsl/"


@check("DRV-005")
def libcuda_is_the_drivers(view: SnapshotView) -> Verdicts:
    cuda = facts_of(view.machine.cuda, "libcuda")
    path = need(cuda.library_path, "the libcuda that is mapped")
    code, real, mapped = known(cuda.init_code), known(cuda.library_real_path), library_version(cuda)
    own = known(facts_or(view.machine.kernel, Kernel).driver_version)
    ours, theirs = parse_version(own or ""), parse_version(mapped or "")
    fields = ["library_path"] + ["library_real_path"] * (real not in (None, path))
    fields += ["init_code"] * (code is not None)
    about, evidence = about_file(path), [view.evidence(f"machine.cuda.{name}") for name in fields]
    if STUBS.search(f"{path} {real or ''}") or code == STUB_ERROR:
        yield CAUSE["libcuda-stub"].found(about, evidence)
    elif not COMPAT.search(f"{path} {real or ''}"):
        yield Passed(path)
    elif code in _COMPAT_ERRORS:
        yield CAUSE["compat-refused"].found(about, evidence, code=code)
    elif ours is not None and theirs is not None and theirs < ours:
        yield CAUSE["compat-older-than-driver"].found(about, evidence, mapped=mapped, driver=own)
    elif code:
        raise Skip(f"CUDA does not start (DRV-004), and error {code} is not compat's")
    else:
        yield Passed(f"forward compatibility: libcuda {mapped or '(version not known)'} {path}")


def library_version(cuda: CudaDriver) -> str | None:
    """The version in libcuda's real file name ("550.54.15"), None where it has none."""
    found = _VERSION.search(known(cuda.library_real_path) or known(cuda.library_path) or "")
    return found.group(1) if found else None


@check("DRV-009")
def wsl_uses_windows_driver(view: SnapshotView) -> Verdicts:
    if not on_wsl(view) or container(view):
        raise Skip("this is not WSL, or a container on it")
    cuda = facts_of(view.machine.cuda, "libcuda")
    path = need(cuda.library_path, "the libcuda that is mapped")
    if path.startswith(_WSL):
        yield Passed(path)
        return
    kernel = facts_or(view.machine.kernel, Kernel)
    names = [package.name for package in known(kernel.driver_packages) or []]
    runfile = known(kernel.runfile_installer)
    removal = [f"sudo {word(runfile)}"] if runfile else []
    removal += on_system(view, "remove-driver", names=names) if names else []
    removal = [f"test -e {_WSL}lib/libcuda.so.1 && {command}" for command in removal]
    removal = removal or on_system(view, "owner", names=[path])
    evidence = [view.evidence("machine.cuda.library_path")]
    if names:
        evidence.append(view.evidence("machine.kernel.driver_packages", ", ".join(names)))
    cause = (
        CAUSE["linux-libcuda-in-wsl"]
        if known(cuda.init_code) == 0
        else CAUSE["linux-driver-in-wsl"]
    )
    commands = [*removal, "sudo ldconfig", "wsl.exe --shutdown"]
    yield cause.found(about_file(path), evidence, commands=commands)

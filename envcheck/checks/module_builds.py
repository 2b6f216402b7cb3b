"""How the driver's module comes to be on disk for a kernel here, and why it may have failed to."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..data.build_errors import BuildError, build_error
from ..facts.kernel import BuildLog
from .driver_on_disk import dkms, reload_modules
from .nvidia_devices import known_kernel
from .reading import Kernel, SnapshotView, known
from .system_commands import ShellText, on_system
from .verdicts import Evidence, Remedy, word

RUNNING = ShellText("$(uname -r)")
# Ubuntu's that are built and signed for one kernel: linux-modules-nvidia-535-server-open-6.8.0-45-generic.
PREBUILT = re.compile(r"linux-(?:modules|objects)-nvidia-(\d+(?:-server)?(?:-open)?)-\d+\.\d")
# Arch's that are built for one of its kernels.
ARCH_PREBUILT = re.compile(r"nvidia(-open)?(-lts)?\Z|linux-[a-z0-9-]+-nvidia(-open)?\Z")
COMPILER = re.compile(r"gcc-(\d+)|gcc version (\d+)")


class FailedBuild(NamedTuple):
    """The log of a build that failed, the line that says why, and what that means (None: not known)."""

    log: BuildLog
    line: str
    error: BuildError | None


def failed_build(kernel: Kernel, release: str) -> FailedBuild | None:
    """The newest failed build of the driver's module for this kernel."""
    for log in known(kernel.build_logs) or []:
        if known(log.kernel) == release and log.lines:
            found = build_error(log.lines)
            return (
                FailedBuild(log, log.lines[-1], None)
                if found is None
                else FailedBuild(log, found[1], found[0])
            )
    return None


def failure_evidence(view: SnapshotView, failure: FailedBuild) -> Evidence:
    return view.evidence("machine.kernel.build_logs", f"{failure.log.path}: {failure.line}")


def has_headers(kernel: Kernel, release: str) -> bool | None:
    headers = known(kernel.headers)
    return None if headers is None else release in headers


def build_module(view: SnapshotView, release: str = "") -> list[str]:
    """The commands that put the module on disk for the running kernel, and load it, or for another kernel."""
    kernel = known_kernel(view) or Kernel()
    load = [] if release else [reload_modules(kernel)]
    own = on_system(view, "build-module", release=release or RUNNING)
    if own:
        return [*own, *load]
    names = [package.name for package in known(kernel.driver_packages) or []]
    prebuilt = next(filter(None, map(PREBUILT.match, names)), None)
    by_dkms = bool(dkms(kernel)) or any("dkms" in name for name in names)
    target = word(release) if release else RUNNING
    if prebuilt and not by_dkms:
        return [f"sudo apt install linux-modules-nvidia-{prebuilt[1]}-{target}", *load]
    headers = _headers(view, kernel, release)
    if any(map(ARCH_PREBUILT.match, names)) and not by_dkms:
        return [*headers, *on_system(view, "dkms-package"), *load]
    return [*headers, *on_system(view, "build", build=_build(kernel, release)), *load]


def _headers(view: SnapshotView, kernel: Kernel, release: str) -> list[str]:
    if has_headers(kernel, release or known(kernel.release) or ""):
        return []
    return on_system(view, "kernel-headers", release=release or RUNNING)


def _build(kernel: Kernel, release: str) -> ShellText:
    """The command, without sudo, that builds the module."""
    names = [package.name for package in known(kernel.driver_packages) or []]
    if any(name.startswith("akmod") for name in names):
        return ShellText(f"akmods --force --kernels {word(release) if release else RUNNING}")
    if known(kernel.runfile_installer) and not dkms(kernel):
        return ShellText("sh NVIDIA-Linux-*.run")
    return ShellText(f"dkms autoinstall -k {word(release)}" if release else "dkms autoinstall")


def rebuild(view: SnapshotView, kernel: Kernel, release: str, text: str) -> Remedy:
    """What puts the module on disk for a kernel: after a build that failed, what mends its reason first."""
    running = release == known(kernel.release)
    failure = failed_build(kernel, release)
    if failure is None:
        return Remedy(text, build_module(view, "" if running else release))
    look = f"less {word(failure.log.path)}"
    if failure.error is None:
        return Remedy(
            f"{text} The last try failed, and its log says why.",
            [look, *build_module(view, "" if running else release)],
        )
    compiler = COMPILER.search("\n".join(failure.log.lines))
    values = {
        "build": _build(kernel, "" if running else release),
        "release": RUNNING if running else release,
        "compiler": next(filter(None, compiler.groups())) if compiler else "VERSION",
    }
    told = [on_system(view, what, **values) for what in failure.error.what]
    commands = [command for one in told for command in one]
    return Remedy(failure.error.text, [*commands, look])

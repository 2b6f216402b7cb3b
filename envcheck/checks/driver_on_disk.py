"""What is installed of the driver, and what brings its module and its libraries to one version again."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..data.build_errors import BuildError, build_error
from ..facts.kernel import BuildLog, DkmsState, DriverFile, DriverPackage, ModuleFile
from .driver_state import HOLDERS, REBOOT, branch, service, then_reboot
from .reading import Kernel, SnapshotView, facts_or, known
from .system_commands import ShellText, last_branch, on_system, runfile_again, systemctl
from .verdicts import Evidence, Remedy, word

MODPROBE = "sudo modprobe nvidia"
# In the order in which they let go of each other.
UNLOAD = [
    "nvidia_peermem",
    "nvidia_fs",
    "gdrdrv",
    "nvidia_uvm",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia",
]
LOG = "sudo dmesg | grep -iE 'nvrm|nvidia'"
NOT_THE_DRIVER = ("nvidia-fs", "nvidia-peermem", "nvidia-p2p")  # of NVIDIA's DKMS modules
# Packages that hold a part of the driver itself, by the start of their names.
DRIVER_PACKAGE = re.compile(
    r"(nvidia-(driver|dkms|kernel|utils|headless|compute-utils|open|tesla|legacy)|libnvidia-compute"
    r"|libnvidia-ml|libcuda1|linux-(modules|objects)-nvidia|kmod-nvidia|akmod-nvidia|dkms-nvidia"
    r"|xorg-x11-drv-nvidia|cuda-drivers|nvidia\Z|nvidia-drivers\Z|linux-[a-z0-9-]*nvidia(-open)?\Z)"
)
# Packages that bring the module, or make DKMS or akmods build it.
MODULE_PACKAGE = re.compile(
    r"(nvidia-(\d+xx-)?(open-)?(dkms|kernel-dkms|open|lts)|nvidia-(kernel|open-kernel)|k?mod-nvidia|akmod-nvidia"
    r"|dkms-nvidia|linux-(modules|objects)-nvidia|nvidia\Z|linux-[a-z0-9-]*nvidia)"
)
# Modules that were built for one kernel: Ubuntu's linux-modules-nvidia-535-open-6.8.0-45-generic, Arch's.
PREBUILT = re.compile(r"linux-(?:modules|objects)-nvidia-(\d+(?:-server)?(?:-open)?)-\d+\.\d")
ARCH_PREBUILT = re.compile(r"nvidia(-open)?(-lts)?\Z|linux-[a-z0-9-]+-nvidia(-open)?\Z")
# Libraries that are meant to be of another version: CUDA's forward compatibility, WSL's own, 32 bits.
BESIDE = re.compile(r"/compat/|/wsl/|/i386-linux-gnu/|/lib32/")
_VERSION = re.compile(r"(?:\d+:)?(\d{3,}\.\d+(?:\.\d+)?)")
_COMPILER = re.compile(r"gcc-(\d+)|gcc version (\d+)")
_MISSING = re.compile(r"^(\S+) (?:[<>=]+ \S+ )?is needed by |[Uu]nmet build dependencies: (.+)")
_MODULE_TYPE_FROM = 560  # the branch whose runfile has --kernel-module-type first
_RUNNING = ShellText("$(uname -r)")
_SERVICES = ("nvidia-persistenced", "nvidia-fabricmanager")


def upstream(version: str) -> str:
    """The driver's own version in a package's: "1:535.183.01-0ubuntu1" is "535.183.01"; "" if none."""
    match = _VERSION.match(version)
    return match.group(1) if match else ""


def packages_of(kernel: Kernel) -> list[DriverPackage]:
    packages = known(kernel.driver_packages) or []
    return [p for p in packages if DRIVER_PACKAGE.match(p.name) and upstream(p.version)]


def half_installed(kernel: Kernel) -> list[str]:
    packages = packages_of(kernel)
    return [one.name for one in packages if known(one.state) not in ("installed", None)]


def driver_packages(kernel: Kernel) -> list[str]:
    return [f"{package.name} {package.version}" for package in packages_of(kernel)]


def driver_files(kernel: Kernel) -> list[DriverFile]:
    return [file for file in known(kernel.driver_files) or [] if not BESIDE.search(file.path)]


def module_files(kernel: Kernel) -> list[ModuleFile]:
    return known(kernel.module_files) or []


def dkms(kernel: Kernel) -> list[DkmsState]:
    return [state for state in known(kernel.dkms) or [] if state.module not in NOT_THE_DRIVER]


def built_for(kernel: Kernel) -> set[str]:
    """The kernels that have the driver's module, by files on disk and by DKMS."""
    kernels = {file.kernel for file in module_files(kernel)}
    kernels |= {known(state.kernel) or "" for state in dkms(kernel) if state.state == "installed"}
    return kernels - {""}


def installed_version(kernel: Kernel) -> str:
    """The version of the driver that is on disk for the running kernel, or of any; "" if unknown."""
    release = known(kernel.release)
    files = sorted(module_files(kernel), key=lambda file: file.kernel != release)
    versions = [known(file.version) for file in files] + [state.version for state in dkms(kernel)]
    versions += [upstream(package.version) for package in packages_of(kernel)]
    return next((version for version in versions if version), "")


def versions_by_kernel(kernel: Kernel) -> dict[str, set[str]]:
    """{kernel: versions of the driver's module on disk}, of those whose version is known."""
    found: dict[str, set[str]] = {}
    for file in module_files(kernel):
        if version := known(file.version):
            found.setdefault(file.kernel, set()).add(version)
    for state in dkms(kernel):
        if state.state == "installed" and (name := known(state.kernel)):
            found.setdefault(name, set()).add(state.version)
    return found


def modules_on_disk(kernel: Kernel) -> list[str]:
    """The versions of the driver's module that are on disk for the running kernel, each once."""
    return sorted(versions_by_kernel(kernel).get(known(kernel.release) or "", set()))


def modules_gone(kernel: Kernel) -> bool:
    """Whether the running kernel's modules were taken away with it, as an upgrade does on Arch."""
    release, kernels = known(kernel.release), known(kernel.kernels_installed)
    return bool(kernels and release and release not in (*kernels, *built_for(kernel)))


def uvm_on_disk(kernel: Kernel) -> bool | None:
    """Whether nvidia-uvm is on disk for the running kernel; None where that is not known."""
    release = known(kernel.release)
    files = [known(file.uvm) for file in module_files(kernel) if file.kernel == release]
    return None if not files or None in files else any(files)


def numbers(release: str) -> list[int]:
    """ "6.8.0-45-generic" as numbers that order kernels."""
    parts = release.replace("-", ".").split(".")
    return [int(part) for part in parts if part.isascii() and part.isdecimal()]


def reload_modules(kernel: Kernel) -> str:
    """The command that loads the driver's module anew, or, where none of it is loaded, at all."""
    modules = known(kernel.modules)
    loaded = {module.name for module in modules or []}
    names = UNLOAD[3:] if modules is None else [name for name in UNLOAD if name in loaded]
    return f"sudo modprobe -r {' '.join(names)} && {MODPROBE}" if names else MODPROBE


def install_flavour(view: SnapshotView, kernel: Kernel, flavour: str) -> list[str]:
    """The commands that put the open or the proprietary modules in the other ones' place."""
    number = branch(known(kernel.driver_version) or installed_version(kernel))
    if known(kernel.runfile_installer):
        before = number and int(number) < _MODULE_TYPE_FROM
        kind = (
            f"-m=kernel{'-open' * (flavour == 'open')}"
            if before
            else f"--kernel-module-type={flavour}"
        )
        return [f"sudo sh NVIDIA-Linux-*.run {kind}"]
    return on_system(view, f"flavour-{flavour}", branch=number)


class FailedBuild(NamedTuple):
    """The log of a build that failed, the line that says why, and what that means (None: not known)."""

    log: BuildLog
    line: str
    error: BuildError | None

    @property
    def missing(self) -> list[str]:
        """The packages that the build lacked, by its log."""
        found = filter(None, map(_MISSING.search, self.log.lines))
        return list(dict.fromkeys(name for one in found for name in (one[1] or one[2]).split()))

    @property
    def says(self) -> str:
        what = ", ".join(self.missing[:4]) or "a package"
        return self.error.says.format(missing=what) if self.error else "its log says why"

    def evidence(self, view: SnapshotView) -> Evidence:
        return view.evidence("machine.kernel.build_logs", f"{self.log.path}: {self.line}")


def failed_build(kernel: Kernel, release: str) -> FailedBuild | None:
    for log in known(kernel.build_logs) or []:
        if known(log.kernel) == release and log.lines:
            error, line = build_error(log.lines) or (None, log.lines[-1])
            return FailedBuild(log, line, error)
    return None


def has_headers(kernel: Kernel, release: str) -> bool | None:
    headers = known(kernel.headers)
    return None if headers is None else release in headers


def build_module(view: SnapshotView, release: str = "") -> list[str]:
    """The commands that put the module on disk for the running kernel, and load it, or for another kernel."""
    kernel = facts_or(view.machine.kernel, Kernel)
    load = [] if release else [reload_modules(kernel)]
    if own := on_system(view, "build-module", release=release or _RUNNING):
        return [*own, *load]
    names = [package.name for package in known(kernel.driver_packages) or []]
    prebuilt = next(filter(None, map(PREBUILT.match, names)), None)
    by_dkms = bool(dkms(kernel)) or any("dkms" in name and "no-dkms" not in name for name in names)
    if prebuilt and not by_dkms:
        target = release or _RUNNING
        return [*on_system(view, "prebuilt", flavour=prebuilt[1], release=target), *load]
    headers: list[str] = []
    if not has_headers(kernel, release or known(kernel.release) or ""):
        headers = on_system(view, "kernel-headers", release=release or _RUNNING)
    if any(map(ARCH_PREBUILT.match, names)) and not by_dkms:
        return [*headers, *on_system(view, "dkms-package"), *load]
    return [*headers, *on_system(view, "build", build=_build(kernel, release)), *load]


def by_akmods(kernel: Kernel) -> bool:
    """Whether akmods builds the module: by the driver's packages, or by what it left of a failed build."""
    names = [package.name for package in known(kernel.driver_packages) or []]
    logs = [log.path for log in known(kernel.build_logs) or []] if not dkms(kernel) else []
    return any(one.startswith(("akmod", "/var/cache/akmods/")) for one in (*names, *logs))


def _build(kernel: Kernel, release: str) -> ShellText:
    if by_akmods(kernel):
        return ShellText(f"akmods --force --kernels {word(release) if release else _RUNNING}")
    if known(kernel.runfile_installer) and not dkms(kernel):
        return ShellText("sh NVIDIA-Linux-*.run")
    target = release or known(kernel.release)
    for one in dkms(kernel):
        if (
            one.state == "installed" and known(one.kernel) == target
        ):  # which autoinstall leaves alone
            name, where = f"{one.module}/{one.version}", word(release) if release else _RUNNING
            return ShellText(f"dkms install --force {word(name)} -k {where}")
    return ShellText(f"dkms autoinstall -k {word(release)}" if release else "dkms autoinstall")


def rebuild(view: SnapshotView, kernel: Kernel, release: str, text: str) -> Remedy:
    """What puts the module on disk for a kernel: after a build that failed, what mends its reason first."""
    running = release == known(kernel.release)
    other = "" if running else release
    failure = failed_build(kernel, release)
    if failure is None:
        return Remedy(text, build_module(view, other))
    look = f"less {word(failure.log.path)}"
    if failure.error is None:
        text += " The last try failed, and its log says why."
        return Remedy(text, [look, *build_module(view, other)])
    number = branch(installed_version(kernel))
    if "update-driver" in failure.error.what and number == str(last_branch(view)):
        return Remedy(
            f"{number}.xx is the last branch that drives a GPU of this machine, so a newer driver is no"
            " remedy: boot an older kernel, with long-term support best, for which it can be built.",
            ["ls /lib/modules  # the kernels that are installed", look],
        )
    compiler = _COMPILER.search("\n".join(failure.log.lines))
    values = {
        "build": _build(kernel, other),
        "release": release if other else _RUNNING,
        "compiler": next(filter(None, compiler.groups())) if compiler else "VERSION",
        "missing": failure.missing or ShellText('"${PACKAGE:?what the log names}"'),
    }
    commands = [line for what in failure.error.what for line in on_system(view, what, **values)]
    return Remedy(failure.error.text, [*commands, look])


def bring_together(view: SnapshotView, kernel: Kernel, libraries: list[str]) -> Remedy:
    """``libraries``: the versions of the driver's libraries on disk; none where they are not known."""
    on_disk = modules_on_disk(kernel)
    fits = bool(set(on_disk) & set(libraries))
    newer = [
        name
        for name, versions in versions_by_kernel(kernel).items()
        if versions & set(libraries) and numbers(name) > numbers(known(kernel.release) or "")
    ]
    hold = _hold(view, kernel)
    then = "; then hold the packages, so that no unattended upgrade does it again." if hold else "."
    if newer and not fits:
        name = max(newer, key=numbers)
        text = f"Reboot into kernel {name}, for which the libraries' module was built{then}"
        return Remedy(text, [HOLDERS, REBOOT, *hold])
    if libraries and not fits and (on_disk or known(kernel.module_files) == []):
        return finish(view, kernel, libraries)
    unsure = " Where neither helps, the upgrade stopped half-way: let the package manager finish it first."
    services = [(name, service(view, name)) for name in _SERVICES]
    running = " ".join(name for name, one in services if one and known(one.running))
    stop, start = ([systemctl(do, running)] * bool(running) for do in ("stop", "start"))
    return Remedy(
        "Stop what uses the GPUs and reload the modules; or rebuild the initial RAM disk, which may hold"
        f" the former module, and reboot{then}{'' if fits else unsure}",
        [
            HOLDERS,
            *stop,
            reload_modules(kernel),
            *start,
            *on_system(view, "initramfs"),
            f"{REBOOT}  # where the modules are in use",
            *hold,
        ],
    )


def _hold(view: SnapshotView, kernel: Kernel) -> list[str]:
    packages = packages_of(kernel)
    held = bool(packages) and all(known(package.held) for package in packages)
    by_runfile = not packages and known(kernel.runfile_installer) is not None
    return [] if held or by_runfile else on_system(view, "hold-driver")


def one_installation(view: SnapshotView, kernel: Kernel) -> Remedy:
    """Leaves one of a runfile's installation and packages: the packages, if they bring a kernel module."""
    runfile, names = known(kernel.runfile_installer) or "", [p.name for p in packages_of(kernel)]
    download, again = (on_system(view, what, names=names) for what in ("download", "reinstall"))
    if download and again and any(map(MODULE_PACKAGE.match, names)):
        return Remedy(
            "Replace the runfile's installation by the packages, which are fetched before anything is"
            " removed; then hold them, so that no unattended upgrade mixes them again.",
            [" && ".join([*download, f"sudo {word(runfile)}", *again]), *_hold(view, kernel)],
        )
    module = known(kernel.driver_version) or installed_version(kernel)
    remove = on_system(view, "remove-driver", names=names)
    return Remedy(
        "Keep one installation: the runfile's, since the packages bring no kernel module. Remove (purge)"
        f" them, which no unattended upgrade brings back then, and run the runfile of {module} once more:"
        " they have overwritten its libraries.",
        [*on_system(view, "owner", names=[runfile]), *remove, runfile_again(word(module))]
        if remove
        else [],
    )


def finish(view: SnapshotView, kernel: Kernel, libraries: list[str]) -> Remedy:
    """For an upgrade that stopped half-way: the module of the libraries' version is not on disk."""
    release = known(kernel.release) or ""
    modules = [p for p in packages_of(kernel) if MODULE_PACKAGE.match(p.name)]
    if known(kernel.runfile_installer) and packages_of(kernel):
        both = one_installation(view, kernel)
        text = "One of the two is from NVIDIA's runfile installer, the other from packages. "
        return Remedy(text + both.text, then_reboot(both.commands))
    why, commands = _stopped_by(view, kernel, modules, libraries)
    ready = any(upstream(package.version) in libraries for package in modules)
    if ready or any(state.version in libraries for state in dkms(kernel)):
        load = reload_modules(kernel)
        commands += [c for c in rebuild(view, kernel, release, "").commands if c != load]
        failure = failed_build(kernel, release)
        if failure is not None and failure.error is not None:
            why += f" Its module could not be built: {failure.says}."
    former = [
        one for one in dkms(kernel) if one.version not in libraries and one.state == "installed"
    ]
    coming = next((one for one in dkms(kernel) if one.version in libraries), None)
    if former and coming and not half_installed(kernel):
        old = dict.fromkeys(f"{one.module}/{one.version}" for one in former)
        why += (
            f" DKMS still builds {', '.join(old)}: take that out of it, and build {coming.version}."
        )
        new = word(f"{coming.module}/{coming.version}")
        commands = ["dkms status", *(f"sudo dkms remove {word(name)} --all" for name in old)]
        commands += [f"sudo dkms install {new} -k {_RUNNING}"]
    on_disk = " and ".join(modules_on_disk(kernel)) or "none"
    return Remedy(
        f"Finish the upgrade, then reboot. A reload or a reboot alone changes nothing: the module on disk for"
        f" this kernel is {on_disk}, not {' or '.join(libraries)}.{why}",
        then_reboot(list(dict.fromkeys(commands))),
    )


def _stopped_by(
    view: SnapshotView, kernel: Kernel, modules: list[DriverPackage], libraries: list[str]
) -> tuple[str, list[str]]:
    packages = packages_of(kernel)
    held = [package.name for package in packages if known(package.held)]
    commands = on_system(view, "finish-upgrade")
    if held and len(held) < len(packages):
        why = f" {', '.join(held[:4])}: held back, while the others were upgraded."
        return why, [*on_system(view, "unhold", names=held), *commands]
    if half := half_installed(kernel):
        return f" Half installed: {', '.join(half[:4])}.", commands
    if modules and not any(upstream(package.version) in libraries for package in modules):
        if modules[0].manager == "dpkg":  # elsewhere packages have no branch in their names
            flavour = f"flavour-{known(kernel.driver_flavour) or 'open'}"
            commands = on_system(view, flavour, branch=branch(libraries[0])) or commands
        why = f" The module's package is {modules[0].name} {modules[0].version}: another package has pulled"
        return f"{why} in newer libraries.", commands
    return "", commands

"""What brings the driver's module and its libraries to one version again, by what lies on disk."""

from __future__ import annotations

import re

from ..facts.kernel import DriverPackage
from .driver_on_disk import (
    DRIVER_PACKAGE,
    dkms,
    modules_on_disk,
    numbers,
    reload_modules,
    upstream,
    versions_by_kernel,
)
from .driver_state import HOLDERS, REBOOT, branch, service, then_reboot
from .module_builds import failed_build, rebuild
from .reading import Kernel, SnapshotView, known
from .system_commands import on_system
from .verdicts import Remedy, word

# Packages that bring the module, or make DKMS or akmods build it.
MODULE_PACKAGE = re.compile(
    r"(nvidia-(\d+xx-)?(open-)?(dkms|kernel-dkms|open|lts)|nvidia-(kernel|open-kernel)|k?mod-nvidia|akmod-nvidia"
    r"|dkms-nvidia|linux-(modules|objects)-nvidia|nvidia\Z|linux-[a-z0-9-]*nvidia)"
)
_THEN = {
    True: "; then hold the packages, so that an unattended upgrade does not do it again.",
    False: ".",
}
# Which version of the module is on disk.
_NOT_KNOWN = (
    " Where neither helps, the upgrade stopped half-way: let the package manager finish it first."
)
SERVICES = ("nvidia-persistenced", "nvidia-fabricmanager")


def bring_together(view: SnapshotView, kernel: Kernel, libraries: list[str]) -> Remedy:
    """``libraries``: the versions of the driver's libraries on disk; none where they are not known."""
    if set(modules_on_disk(kernel)) & set(libraries):
        return _reload(view, kernel)
    if not libraries:
        return _reload(view, kernel, _NOT_KNOWN)
    by_kernel = versions_by_kernel(kernel)
    release = known(kernel.release) or ""
    newer = [
        name
        for name, versions in by_kernel.items()
        if versions & set(libraries) and numbers(name) > numbers(release)
    ]
    if newer:
        hold = _hold(view, kernel)
        return Remedy(
            f"Reboot into kernel {max(newer, key=numbers)}, for which the libraries' module was built"
            + _THEN[bool(hold)],
            [HOLDERS, REBOOT, *hold],
        )
    if not modules_on_disk(kernel) and known(kernel.module_files) != []:
        return _reload(view, kernel, _NOT_KNOWN)
    return finish(view, kernel, libraries)


def _reload(view: SnapshotView, kernel: Kernel, more: str = "") -> Remedy:
    running = [name for name in SERVICES if _may_run(view, name)]
    hold = _hold(view, kernel)
    return Remedy(
        f"Stop what uses the GPUs and reload the modules, or reboot{_THEN[bool(hold)]}{more}",
        [
            HOLDERS,
            *(f"sudo systemctl stop {name}" for name in running),
            reload_modules(kernel),
            *(f"sudo systemctl start {name}" for name in running),
            f"{REBOOT}  # where the modules are in use",
            *hold,
        ],
    )


def _may_run(view: SnapshotView, name: str) -> bool:
    found = service(view, name)
    return name == SERVICES[0] if found is None else known(found.running) is True


def _hold(view: SnapshotView, kernel: Kernel) -> list[str]:
    packages = _packages(kernel)
    held = bool(packages) and all(known(package.held) for package in packages)
    by_runfile = not packages and known(kernel.runfile_installer) is not None
    return [] if held or by_runfile else on_system(view, "hold-driver")


def replace_runfile(view: SnapshotView, runfile: str, names: list[str]) -> list[str]:
    """Puts the packages in the runfile installation's place; without their kernel module, only shows them."""
    download, again = (on_system(view, what, names=names) for what in ("download", "reinstall"))
    if not download or not again or not any(map(MODULE_PACKAGE.match, names)):
        return on_system(view, "owner", names=[runfile])
    return [" && ".join([*download, f"sudo {word(runfile)}", *again])]


def _packages(kernel: Kernel) -> list[DriverPackage]:
    """The driver's own packages that hold a version of it."""
    return [
        package
        for package in known(kernel.driver_packages) or []
        if DRIVER_PACKAGE.match(package.name) and upstream(package.version)
    ]


def finish(view: SnapshotView, kernel: Kernel, libraries: list[str]) -> Remedy:
    """For an upgrade that stopped half-way: the module of the libraries' version is not on disk."""
    release = known(kernel.release) or ""
    packages = _packages(kernel)
    modules = [package for package in packages if MODULE_PACKAGE.match(package.name)]
    why, commands = _reason(view, kernel, packages, modules, libraries)
    ready = any(upstream(package.version) in libraries for package in modules)
    if ready or any(state.version in libraries for state in dkms(kernel)):
        load = reload_modules(kernel)
        commands += [c for c in rebuild(view, kernel, release, "").commands if c != load]
        failure = failed_build(kernel, release)
        if failure is not None and failure.error is not None:
            why += f" Its module could not be built: {failure.error.says}."
    on_disk = " and ".join(modules_on_disk(kernel)) or "none"
    return Remedy(
        f"Finish the upgrade, then reboot. A reload or a reboot alone changes nothing: the module on disk for"
        f" this kernel is {on_disk}, not {' or '.join(libraries)}.{why}",
        then_reboot(list(dict.fromkeys(commands))),
    )


def _reason(
    view: SnapshotView,
    kernel: Kernel,
    packages: list[DriverPackage],
    modules: list[DriverPackage],
    libraries: list[str],
) -> tuple[str, list[str]]:
    """What stopped it, as a sentence, and the commands that mend that."""
    runfile = known(kernel.runfile_installer)
    if runfile and packages:
        return (
            " One of the two is from NVIDIA's runfile installer, the other from packages: replace the"
            " former by the latter, once the packages bring a kernel module of their own.",
            replace_runfile(view, runfile, [package.name for package in packages]),
        )
    if runfile:
        return " Install NVIDIA's driver again, as a whole.", on_system(view, "finish-upgrade")
    held = [package.name for package in packages if known(package.held)]
    if held and len(held) < len(packages):
        return (
            f" {', '.join(held[:4])}: held back, while the others were upgraded.",
            [*on_system(view, "unhold", names=held), *on_system(view, "finish-upgrade")],
        )
    half = [package.name for package in packages if known(package.state) not in ("installed", None)]
    if half:
        return f" Half installed: {', '.join(half[:4])}.", on_system(view, "finish-upgrade")
    if modules and not any(upstream(package.version) in libraries for package in modules):
        flavour = known(kernel.driver_flavour) or "open"
        # Elsewhere packages have no branch in their names: what the manager has in step is in step.
        by_name = modules[0].manager == "dpkg"
        number = branch(libraries[0])
        matching = on_system(view, f"flavour-{flavour}", branch=number) if by_name else []
        told = ", ".join(f"{package.name} {package.version}" for package in modules[:2])
        return (
            f" The module's package is {told}: another package has pulled in newer libraries.",
            matching or on_system(view, "finish-upgrade"),
        )
    return "", on_system(view, "finish-upgrade")

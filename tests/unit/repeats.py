"""Finds remedies that repeat what is already so: a module that is loaded, a version that is installed …

Each rule reads one kind of command and says, by the Snapshot, why it changes nothing; "" where it may.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from envcheck.checks.driver_on_disk import built_for, modules_gone, uvm_on_disk
from envcheck.checks.engine import diagnose
from envcheck.checks.nvidia_devices import is_loaded
from envcheck.facts.base import known
from envcheck.facts.gpu import Gpu
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel
from envcheck.facts.missing import CannotJudge
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import Remedy

BRINGS_A_MODULE = re.compile(
    r"install|dkms|akmods|NVIDIA-Linux|nixos-rebuild|emerge|pacman -S|swupd|distro-sync"
)


class Machine:
    """What a rule may ask."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.view = SnapshotView(snapshot)
        self.kernel: Kernel = self._facts("machine", "kernel") or Kernel()
        self.host: Host = self._facts("machine", "host") or Host()
        self.containers: Any = self._facts("machine", "containers")
        self.pci: Any = self._facts("machine", "pci")
        self.environment: Any = self._facts("target", "environment")
        packages = self._facts("target", "packages")
        self.packages = (
            {}
            if packages is None
            else {one.normalized: one.version for one in packages.distributions if not one.shadowed}
        )
        try:
            self.gpus: list[Gpu] = self.view.gpus
        except CannotJudge:
            self.gpus = []

    def _facts(self, document: str, section: str) -> Any:
        probe: Any = getattr(getattr(self.view.snapshot, document), section, None)
        return None if probe is None else probe.facts

    def variables(self) -> dict[str, str]:
        """Those that are set, by whichever probe tells."""
        found = dict(self.environment.variables)
        loader, config = self._facts("target", "loader"), self._facts("target", "packaging_config")
        used = [] if loader is None else loader.libraries
        for name in ("tensorflow", "torch", "jax"):
            framework = self._facts("target", name)
            used = [*used, *([] if framework is None else framework.libraries)]
        if any(known(one.origin) == "LD_LIBRARY_PATH" for one in used) or (
            loader is not None and loader.ld_library_path
        ):
            found.setdefault("LD_LIBRARY_PATH", "?")
        for file in [] if config is None else config.files:
            if file.level == "environment":
                found.setdefault(file.path, "?")
        return found

    def service(self, name: str) -> bool | None:
        return next((known(s.running) for s in self.kernel.services if s.name == name), None)


Rule = Callable[[str, Remedy, Machine], str]


def loads_a_module(command: str, remedy: Remedy, machine: Machine) -> str:
    others = " ".join(remedy.commands)
    for name in re.findall(r"(?<![\w-])modprobe (?!-)([\w-]+)", command):
        module = name.replace("-", "_")
        unloaded = re.search(rf"modprobe -r [\w -]*\b{module}\b", others)
        if is_loaded(machine.kernel, module) and not unloaded:
            return f"{module} is loaded"
        if BRINGS_A_MODULE.search(others):
            continue
        release = known(machine.kernel.release)
        if modules_gone(machine.kernel):
            return "the running kernel's modules are not on disk"
        if module == "nvidia_uvm" and uvm_on_disk(machine.kernel) is False:
            return "nvidia_uvm is not on disk"
        files = known(machine.kernel.module_files)
        if (
            module == "nvidia"
            and files is not None
            and release
            and release not in built_for(machine.kernel)
        ):
            return "nvidia is not on disk for this kernel"
    return ""


def unloads_modules(command: str, _remedy: Remedy, machine: Machine) -> str:
    found = re.search(r"modprobe -r ([\w ]+)", command)
    names = found.group(1).split() if found else []
    states = [is_loaded(machine.kernel, name) for name in names]
    if states and all(state is False for state in states):
        return f"none of {' '.join(names)} is loaded"
    return ""


def services(command: str, remedy: Remedy, machine: Machine) -> str:
    for verb, name in re.findall(r"systemctl (enable --now|start|stop) ([\w-]+)", command):
        if verb == "start" and f"systemctl stop {name}" in " ".join(remedy.commands):
            continue
        runs = machine.service(name.removesuffix(".service"))
        if runs is (verb != "stop"):
            return f"{name} {'runs' if runs else 'does not run'}"
    return ""


INSTALL = re.compile(
    r"\b(?:apt(?:-get)? install|dnf install|zypper install|pacman -S)((?: [^-\s|;&#][^\s|;&#]*| --?[\w-]+)+)"
)


def installs_packages(command: str, _remedy: Remedy, machine: Machine) -> str:
    packages = known(machine.kernel.driver_packages) or []
    there = {one.name for one in packages if known(one.state) in ("installed", None)}
    for words in INSTALL.findall(command):
        names = words.split()
        if "apt update" in command:
            continue  # then it is an upgrade
        if {"--reinstall", "--force", "--allow-downgrades"} & set(
            names
        ) or "--reinstall" in command:
            continue
        names = [name for name in names if not name.startswith("-")]
        if names and set(names) <= there:
            return f"{', '.join(names)} is installed"
    return ""


def pip_installs(command: str, remedy: Remedy, machine: Machine) -> str:
    if not re.search(r"\bpip3? install\b|\buv pip install\b", command):
        return ""
    words = _words(command)
    if {"--force-reinstall", "-U", "--upgrade", "--reinstall", "--target"} & set(words):
        return ""
    if any("pip uninstall" in other for other in remedy.commands):
        return ""  # which may have taken files of this one with it
    wanted = list(_requirements(words[words.index("install") + 1 :]))
    if wanted and all(_installed(one, machine) for one in wanted):
        return f"{', '.join(map(str, wanted))} is installed"
    return ""


def pip_removes(command: str, _remedy: Remedy, machine: Machine) -> str:
    if not re.search(r"\bpip3? uninstall\b", command) or not machine.packages:
        return ""
    words = _words(command)
    names = [one.name for one in _requirements(words[words.index("uninstall") + 1 :])]
    gone = [name for name in names if _normal(name) not in machine.packages]
    return f"{', '.join(gone)} is not installed" if names and gone == names else ""


def _words(command: str) -> list[str]:
    return shlex.split(command.removeprefix("# or: "), comments=True)


def _requirements(words: Iterable[str]) -> Iterator[Requirement]:
    for word in words:
        if word in ("&&", "||", "|", ";"):
            return
        if word.startswith("-"):
            continue
        try:
            yield Requirement(word)
        except InvalidRequirement:
            continue


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(one: Requirement, machine: Machine) -> bool:
    version = machine.packages.get(_normal(one.name))
    return (
        version is not None and not one.extras and one.specifier.contains(version, prereleases=True)
    )


def sets_variables(command: str, _remedy: Remedy, machine: Machine) -> str:
    if machine.environment is None:
        return ""
    variables = machine.variables()
    for name, value in re.findall(r"(?:^|\bexport |-e )([A-Z][A-Z0-9_]+)=([^\s;&]+)", command):
        if variables.get(name) == value.strip("'\""):
            return f"{name} is {value}"
    for name in re.findall(r"\bunset ([A-Z][A-Z0-9_]+)", command):
        if name not in variables:
            return f"{name} is not set"
    return ""


def sets_gpus(command: str, _remedy: Remedy, machine: Machine) -> str:
    if "nvidia-smi" not in command:
        return ""
    chosen = re.search(r" -i (\S+)", command)
    gpus = [
        gpu
        for gpu in machine.gpus
        if chosen is None or chosen.group(1) in (str(known(gpu.index)), known(gpu.pci_address))
    ]
    for option, field, wanted in (
        (r" -pm (\d)", "persistence", lambda text: text == "1"),
        (r" -mig (\d)", "mig_enabled", lambda text: text == "1"),
        (r" -e (\d)", "ecc_enabled", lambda text: text == "1"),
        (r" -c (\w+)", "compute_mode", lambda text: text),
        (r" -pl ([\d.]+)", "power_limit_w", float),
    ):
        found = re.search(option, command)
        if found is None or not gpus:
            continue
        values = {str(known(getattr(gpu, field))).casefold() for gpu in gpus}
        if field == "mig_enabled":  # or what it becomes by a reset
            values |= {str(known(gpu.mig_pending)).casefold() for gpu in gpus}
        if values == {str(wanted(found.group(1))).casefold()}:  # type: ignore[no-untyped-call]
            return f"{field} is {found.group(1)}"
    return ""


RULES: tuple[Rule, ...] = (
    loads_a_module,
    unloads_modules,
    services,
    installs_packages,
    pip_installs,
    pip_removes,
    sets_variables,
    sets_gpus,
)


def repeated(snapshot: Snapshot) -> list[str]:
    """ "CODE: command (why it changes nothing)" of each command of each remedy that repeats what is so."""
    machine = Machine(snapshot)
    found = []
    for result in diagnose(snapshot).results:
        for finding in result.findings if not result.consequence_of else ():
            for why, command in in_remedy(finding.remedy, machine):
                found.append(f"{result.code}: {command} ({why})")
    return found


def in_remedy(remedy: Remedy | None, machine: Machine) -> Iterator[tuple[str, str]]:
    for command in remedy.commands if remedy is not None else ():
        for rule in RULES:
            if why := rule(command, remedy, machine):  # type: ignore[arg-type]
                yield why, command

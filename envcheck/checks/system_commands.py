"""Commands as the machine takes them: in its package manager's words, and by a user that may run them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..data.kernel import flavour_for
from ..data.system_commands import system_commands
from ..facts.base import known
from ..facts.host import Host
from ..facts.view import SnapshotView, fact, facts_or
from ..findings.model import Remedy
from ..findings.shell import word, words

# What a container cannot do for the machine below it.
_HOSTS_OWN = re.compile(
    r"\b(?:reboot|poweroff|dmesg|modprobe|update-initramfs|dracut|mkinitcpio|dkms|mokutil|setpci|setsebool"
    r"|nvidia-modprobe|update-grub|grub2?-mkconfig|grubby|ubuntu-drivers|systemctl|journalctl|fuser"
    r"|lxc (?:config|restart)|systemd-nspawn|nvidia-container-cli info"
    r"|nvidia-persistenced|/etc/modprobe\.d|/etc/modules-load\.d|nvidia-cuda-mps-control"
    r"|nvidia-smi (?:--gpu-reset|mig|-c|-pm|-i \S+ -(?:mig|pl|c|pm|rac|rgc|rmc))"
    r"|nvidia-(?:ctk|driver|utils|compute|open|kernel|fabric)|akmod-nvidia|kernel-devel|linux-headers)"
    r"|'\*nvidia\*'|\bpacman -Syu|\bnixos-rebuild|\bNVIDIA-Linux|\bcos-extensions|\bswupd\b"
    r"|\bakmods\b"
)
_ON_HOST = "# on the host: "
# What NixOS writes anew from configuration.nix, or keeps read-only.
_NIXOS_OWN = re.compile(
    r"/etc/(?:modprobe|modules-load|ld\.so\.conf)\.d|/etc/default/grub|systemctl enable|\bdkms\b"
)
_IN_NIX = "# on NixOS, by configuration.nix instead: "
_SYSTEMCTL = re.compile(
    r"((?:sudo )?)systemctl (enable --now|restart|start|stop|status) ([\w@.-]+)"
)
_SUDO = re.compile(r"(^|[|;&(]\s*|\bxargs )sudo (?=[A-Za-z/])")


_BEFORE_DNF = ("centos", "rhel", "ol", "scientific")  # in version 7
_OF_THE_DRIVER = ("install-driver", "update-driver", "driver-libraries", "finish-upgrade")
_CURRENT_LEGACY = 580  # which distributions and NVIDIA's repositories still have
_BESIDE_A_RUNFILE = ("cuda-compat", "nvidia-fabric", "nvidia-container", "libnvidia-container")


class ShellText(str):
    """A shell's code of our own, which goes into a command as it is."""


def on_system(view: SnapshotView, what: str, **values: str | Sequence[str]) -> list[str]:
    """The commands that do ``what`` (of system_commands.csv) on this distribution.

    [] where they, or a value that stands in them, are not known.

    values: what stands in them, as words of a shell; a sequence becomes several words.
    """
    host = facts_or(view.machine.host, Host)
    if what in _OF_THE_DRIVER and _by_runfile(view):
        return [runfile_again()]
    names = [known(host.os_id) or "", *(known(host.os_like) or [])]
    if any(name.startswith("opensuse") for name in names):
        names.append("opensuse")
    if "ostree" in names:  # an image, whose /usr no package manager changes
        names.insert(0, "ostree")
    if (known(host.kernel) or "").endswith("-pve"):
        names.insert(0, "proxmox")  # whose os-release is Debian's
    names.append("any")
    if what == "install-driver" and (branch := last_branch(view)):
        closed = branch >= _CURRENT_LEGACY
        what = "install-closed-driver" if closed else "legacy-driver"
        values = {**values, "branch": str(branch)}
    quoted = {key: _quoted(value) for key, value in values.items()}
    found = system_commands(what, names)
    missing = [f"{{{key}}}" for key, value in values.items() if not value]
    if any(name in command for name in missing for command in found):
        return []
    return [command.format(**quoted) for command in found]


def runfile_again(version: str = "the version that is wanted") -> str:
    return f"sudo sh NVIDIA-Linux-*.run  # of {version}, from NVIDIA"


def _quoted(value: str | Sequence[str]) -> str:
    if isinstance(value, ShellText):
        return value
    return word(value) if isinstance(value, str) else words(list(value))


def last_branch(view: SnapshotView) -> int:
    """The last branch of the driver that drives all GPUs here; 0 where the newest does."""
    devices = fact(view.machine.pci, "devices") or []
    found = [flavour_for(one.device_id) for one in devices if one.kind == "gpu"]
    return min((one.last_branch for one in found if one and one.last_branch), default=0)


def _by_runfile(view: SnapshotView) -> bool:
    """Whether the driver is from NVIDIA's runfile installer alone: packages would overwrite a part of it."""
    packages = fact(view.machine.kernel, "driver_packages") or []
    by_runfile = fact(view.machine.kernel, "runfile_installer") is not None
    return by_runfile and all(one.name.startswith(_BESIDE_A_RUNFILE) for one in packages)


def systemctl(verb: str, unit: str) -> str:
    """What systemd does to a unit; `adapted` says it in the words of other inits."""
    reads = verb in ("status", "cat") or verb.startswith("--user")
    return f"{'' if reads else 'sudo '}systemctl {verb} {unit}"


def by_manager(manager: str, what: str, names: Sequence[str]) -> list[str]:
    """What this package manager ("dpkg", "rpm") does, as root."""
    return [one.format(names=_quoted(names)) for one in system_commands(what, [manager, "rpm"])]


def in_image(view: SnapshotView, what: str) -> list[str]:
    """The commands that do ``what`` as lines of the Dockerfile of the target's image."""
    host = facts_or(view.seen.host, Host)
    names = [known(host.os_id) or "", *(known(host.os_like) or []), "debian"]
    found = (
        re.sub(r"^sudo (apt|dnf|zypper) install", r"\1 install -y", one)
        for one in system_commands(what, names)
    )
    return [f"# in its Dockerfile: RUN {one}" for one in found]


def in_engine(view: SnapshotView, what: str) -> list[str]:
    """The commands that do ``what`` (of system_commands.csv) in the words of the container's own engine.

    Of an engine that has none they are docker's, which most people know how to translate.
    """
    kind = fact(view.seen.host, "container")
    return list(system_commands(f"engine-{what}", [kind or "", "docker"]))


def adapted(view: SnapshotView, remedy: Remedy) -> Remedy:
    """A remedy whose commands work where they are pasted: without sudo for root, who may have none; in
    a container, what only its host can do is a comment."""
    host = facts_or(view.machine.host, Host)
    inside = known(host.container) is not None
    commands = [
        _adapted(command, known(host.is_root) is True, inside) for command in remedy.commands
    ]
    if known(host.hypervisor) is not None:
        reboot = f"{'' if known(host.is_root) else 'sudo '}reboot  # where the reset is refused"
        commands = [line for one in commands for line in (one, *[reboot] * ("-gpu-reset" in one))]
    if not inside:
        commands = [line for command in commands for line in _unmasked(view, command)]
        commands = [_SYSTEMCTL.sub(lambda found: _by_init(host, found), one) for one in commands]
    if (known(host.os_version) or "").startswith("7") and known(host.os_id) in _BEFORE_DNF:
        commands = [re.sub(r"\bdnf\b", "yum", command) for command in commands]
    if known(host.os_id) == "nixos":
        commands = [_in_nix(command) for command in commands]
    hosts = bool(commands) and all(command.startswith(_ON_HOST) for command in commands)
    text = f"Outside of this container, on its host: {remedy.text}" if hosts else remedy.text
    return Remedy(text, list(dict.fromkeys(commands)))


def _unmasked(view: SnapshotView, command: str) -> list[str]:
    """The command, behind what unmasks the unit that it starts."""
    found, services = _SYSTEMCTL.search(command), fact(view.machine.kernel, "services") or []
    starts = found is not None and found[2] not in ("stop", "status")
    masked = starts and any(one.masked and one.name == found[3] for one in services if found)
    return [f"{found[1]}systemctl unmask {found[3]}", command] if masked and found else [command]


def _by_init(host: Host, found: re.Match[str]) -> str:
    names = [known(host.os_id) or "", *(known(host.os_like) or [])]
    verb = found[2].removesuffix(" --now")
    row = system_commands(f"service-{verb}", names) or system_commands("service", names)
    return found[1] + row[0].format(unit=found[3], verb=verb) if row else found[0]


def _adapted(command: str, is_root: bool, inside: bool) -> str:
    if inside and not command.startswith("#") and _HOSTS_OWN.search(command):
        return _ON_HOST + command
    if not is_root:
        return command
    return _SUDO.sub(r"\1", re.sub(r"^sudoedit ", '"${EDITOR:-vi}" ', command))


def _in_nix(command: str) -> str:
    ours = not command.startswith("#") and _NIXOS_OWN.search(command)
    return _IN_NIX + command if ours else command

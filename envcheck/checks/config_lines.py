"""Lines of modprobe.d, of udev's rules and of the kernel's command line: who wrote them, and how they go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from ..data.config_writers import Writer, config_writers
from ..facts.kernel import ConfigLine, ModuleOption
from .driver_state import REBOOT
from .reading import Kernel, SnapshotView, facts_or, known
from .system_commands import on_system
from .verdicts import Evidence, Remedy, word

CMDLINE = "/proc/cmdline"
# The driver's main module; Debian's packages add the branch to its name.
MAIN_MODULE = re.compile(r"nvidia(_(current|srv|tesla|legacy)\w*)?\Z")
_PARTS = re.compile(r"_(drm|modeset|uvm|peermem)\Z")
_GPUS_CLASS = re.compile(r'ATTR\{class\}=="[^"]*0x03')


def keeping_out(view: SnapshotView, module: str) -> list[ConfigLine]:
    """The lines that keep this module out ("nvidia" under any of its names)."""
    lines = known(facts_or(view.machine.kernel, Kernel).kept_out) or []
    if module != "nvidia":
        return [line for line in lines if line.module == module]
    return [one for one in lines if MAIN_MODULE.match(one.module) and not _PARTS.search(one.module)]


def removing_gpus(view: SnapshotView) -> list[ConfigLine]:
    """The udev rules that take NVIDIA's GPUs off the bus, not only their sound or USB functions."""
    rules = facts_or(view.machine.kernel, Kernel).udev_rules
    removing = [rule for rule in rules if "ATTR{remove}" in rule.line.replace(" ", "")]
    return [
        rule
        for rule in removing
        if "ATTR{class}" not in rule.line or _GPUS_CLASS.search(rule.line.replace(" ", ""))
    ]


def setting_nodes(view: SnapshotView, node: str) -> list[ConfigLine]:
    """The udev rules that set who may use this device node."""
    name = node.rpartition("/")[2]
    found = []
    for rule in facts_or(view.machine.kernel, Kernel).udev_rules:
        kernel = re.search(r'KERNEL\s*==\s*"([^"]+)"', rule.line)
        patterns = kernel[1].split("|") if kernel else []
        if any(fnmatchcase(name, pattern) for pattern in patterns) or name in rule.line:
            found.append(rule)
    return [rule for rule in found if re.search(r"MODE|GROUP|OWNER|ch(mod|own|grp)", rule.line)]


def where(lines: Sequence[ConfigLine]) -> str:
    """The lines' files, and who wrote them: "/etc/modprobe.d/x.conf (Bumblebee)"."""
    files = {line.path: _writer(line).writer for line in lines}
    return " and ".join(
        path if path == CMDLINE or not by else f"{path} ({by})" for path, by in files.items()
    ).replace(CMDLINE, f"the kernel's command line ({CMDLINE})")


def shown(view: SnapshotView, fact: str, lines: Sequence[ConfigLine]) -> list[Evidence]:
    texts = dict.fromkeys(f"{line.path}: {line.line}" for line in lines)
    return [view.evidence(f"machine.kernel.{fact}", text) for text in list(texts)[:3]]


def undo(view: SnapshotView, lines: Sequence[ConfigLine], *then: str) -> Remedy:
    """What takes these lines away: by the tool that wrote them, where one did."""
    texts, commands = [], []
    for line in lines:
        writer = _writer(line)
        texts.append(writer.remedy)
        for step in writer.commands:
            commands += _steps(view, step, line)
    commands += [*on_system(view, "initramfs"), *(then or [REBOOT])]
    return Remedy(" ".join(dict.fromkeys(texts)), list(dict.fromkeys(commands)))


def drop_options(view: SnapshotView, options: Sequence[ModuleOption]) -> list[str]:
    """The commands that take options of modules out of modprobe.d, and look for those elsewhere."""
    commands = []
    for one in options:
        if one.path.startswith("/etc/"):
            option = rf's/ +{one.name}=("[^"]*"|\S*)//'
            commands.append(f"sudo sed -i.bak -E {word(option)} {word(one.path)}")
    if not commands:
        names = "|".join(sorted({one.name for one in options})) or "NVreg_"
        commands = [f"grep -rnE {word(names)} /etc/modprobe.d /usr/lib/modprobe.d {CMDLINE}"]
    return list(dict.fromkeys([*commands, *on_system(view, "initramfs"), REBOOT]))


def off_command_line(view: SnapshotView, options: str) -> list[str]:
    """The commands that take options off the kernel's command line."""
    commands = on_system(view, "boot-options", options=options)
    without = [
        command.replace("--args=", "--remove-args=").replace(": with ", ": without ")
        for command in commands
    ]
    return [f"cat {CMDLINE}  # to be without {options}", *without]


def _steps(view: SnapshotView, step: str, line: ConfigLine) -> list[str]:
    if step == "@remove":
        return [f"sudo rm {word(line.path)}"]
    if step == "@boot-options":
        return off_command_line(view, line.line)
    if step == "@comment":
        name = "nvidia|10de" if line.path.endswith(".rules") else line.module.replace("_", "[-_]")
        return [f"sudo sed -i.bak -E {word(f'/^[^#]*({name})/s/^/# /')} {word(line.path)}"]
    return [step]


def _writer(line: ConfigLine) -> Writer:
    return next(
        one
        for one in config_writers()
        if re.search(one.path, line.path) and re.search(one.text, line.line)
    )

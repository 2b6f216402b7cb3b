"""What a remedy's commands do to a machine, and which of them are never printed.

Commands are pasted by somebody who trusts them. So the steps that cannot be taken back have an order:
evidence before a reset, a reset before a reboot, and nothing is uninstalled before its replacement is there.
``refusal`` finds what breaks it; a Remedy then prints no command at all.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Effect = Literal[
    "evidence",  # keeps what a reset or a reboot would wipe out
    "mode",  # sets or shows what a reset then applies
    "installs",  # or downloads: it fails where there is nothing to install
    "interrupts",  # ends what runs: unloads the driver, stops a container engine
    "resets",
    "reboots",
    "uninstalls",  # software that something else has to replace
    "removes",  # files, system packages, containers, pods
    "lowers",  # switches a protection off
]

# The text of a remedy that gives up a protection says so after these words.
TRADE = "This gives up a protection: "

# An effect, the programs that have it, and what stands somewhere in their arguments, apart by blanks.
_EFFECTS: tuple[tuple[Effect, str, str], ...] = (
    ("evidence", r"nvidia-bug-report\.sh", r""),
    ("mode", r"nvidia-smi", r"-(e|mig) \d|\.pending"),
    ("resets", r"nvidia-smi", r"--gpu-reset|-r\b"),
    ("interrupts", r"modprobe", r"(^| )-r\b"),
    ("interrupts", r"rmmod", r""),
    ("interrupts", r"systemctl", r"^(stop|restart) docker"),
    ("reboots", r"reboot|poweroff|shutdown|halt", r""),
    ("reboots", r"systemctl", r"^(reboot|poweroff|halt|kexec)"),
    ("reboots", r"wsl(\.exe)?", r"--shutdown"),
    ("reboots", r"az", r"^vm (deallocate|restart|stop)"),
    ("reboots", r"gcloud", r"^compute instances (stop|reset)"),
    ("reboots", r"ipmitool", r"power (cycle|off|reset|soft)"),
    ("installs", r"pip3?|uv|python[\d.]*", r"^(-m )?(pip )?(install|download) "),
    ("installs", r"conda|mamba|micromamba", r"^(install|create) "),
    ("installs", r"apt|apt-get|dnf|yum|tdnf|zypper|snap|rpm-ostree", r"\b(re)?install\b"),
    ("installs", r"pacman", r"^-S"),
    ("installs", r"test", r"^-e "),  # or is seen to be there
    # nvidia-pyindex is nothing that anything imports.
    (
        "uninstalls",
        r"pip3?|uv|python[\d.]*",
        r"^(-m )?(pip )?uninstall (?!((-y|--python \S+) )?nvidia-pyindex$)",
    ),
    ("uninstalls", r"conda|mamba|micromamba", r"^(remove|uninstall) "),
    ("uninstalls", r"nvidia-uninstall|nvidia-installer", r""),
    (
        "removes",
        r"apt|apt-get|dnf|yum|tdnf|zypper|snap|rpm-ostree",
        r"\b(remove|purge|autoremove|erase)\b",
    ),
    ("removes", r"pacman|rpm|dpkg", r"^-([RrPe]|-purge|-remove|-erase)"),
    ("removes", r"apk|dkms", r"^(del|remove)"),
    (
        "removes",
        r"kubectl|docker|podman|helm|lxc",
        r"(^| )(delete|rmi?|prune|uninstall|reset)( |$)",
    ),
    ("removes", r"pip3?|uv|python[\d.]*", r"^(-m )?(pip )?cache (purge|clean)"),
    ("removes", r"rm|rmdir|shred|truncate|dd|wipefs|mkfs\S*|umount", r""),
    ("removes", r"find", r" -delete"),
    ("lowers", r"nvidia-smi", r"-(e|mig|pm) 0\b"),
    ("lowers", r"setpci", r"ACS[+.\da-fwx]*=0"),
    ("lowers", r"chmod", r"\b\d?\d\d[2367]\b|[oa+][+=]?[rx]*w"),
    ("lowers", r"setenforce|setsebool", r"\b(0|on|1|permissive)$"),
    ("lowers", r"aa-(disable|complain|teardown)", r""),
    ("lowers", r"mokutil", r"--disable-validation"),
    ("lowers", r"az|gcloud", r"--enable-secure-boot false|--no-shielded-secure-boot"),
    ("lowers", r"docker|podman", r"--privileged|label=disable|=unconfined"),
    ("lowers", r"mount", r"remount,(\w+,)?(exec|suid|dev)\b"),
    ("lowers", r"sysctl", r"(ptrace_scope|_disabled|_clone|kptr_restrict|paranoid)=-?\d"),
    ("lowers", r"pip3?|uv|python[\d.]*", r"--trusted-host|--allow-insecure-host"),
    ("lowers", r"zypper|dnf|yum|tdnf", r"no-?gpg-?check|auto-import-keys|sslverify="),
    ("lowers", r"apt|apt-get", r"--allow-unauthenticated|--allow-insecure"),
    ("lowers", r"apt-key", r"^add"),
    ("lowers", r"curl|wget", r"(^| )-k\b|--insecure|--no-check-certificate"),
    (
        "lowers",
        r"grubby",
        r"iommu=(off|pt)|mitigations=off|acs_override|remove-args=module\.sig_enforce",
    ),
)
_COMPILED = tuple(
    (effect, re.compile(program), re.compile(rest, re.I)) for effect, program, rest in _EFFECTS
)
# Effects that no remedy begins with.
_NEVER_FIRST = frozenset(("interrupts", "resets", "reboots", "uninstalls", "removes", "lowers"))

# What stands before a command that is run elsewhere: "# on the host: ".
_ELSEWHERE = re.compile(r"^# [^:]*: +")
_AHEAD = re.compile(r"(sudo|-E|env|xargs|nohup|\w+=.*)$", re.DOTALL)
_SEPARATORS = frozenset((";", "&&", "||", "|", "&", "(", ")"))
# An empty word, which quoting makes of nothing.
_EMPTY = re.compile(r"""(?<!")''(?!")|(?<!')""(?!')""")
# A Snapshot's own words stand in single quotes, and may be anything.
_QUOTED = re.compile(r"'[^']*'")
# Words that stand for others: in brackets, unless that is a token of redaction, in whose place reports put
# the value, or in capitals.
_PLACEHOLDER = re.compile(
    r"<(?![a-z-]+-\d+>)[A-Za-z][\w -]*>|"
    r"(?<![\w.-])(PID|POD|NAME|NODE|IMAGE|GROUP|CONTAINER|DIRECTORY|PACKAGE|COMMAND|URL|FILE|MIG-UUID)"
    r"(?![\w:?}=-])|/path/(on|to)/|\.\.\.(?!\w)"
)


class SimpleCommand(NamedTuple):
    """One of a line. guarded: it runs only where the one before it succeeded."""

    program: str  # its file name, after sudo, env and variables
    arguments: str  # apart by blanks
    guarded: bool
    effects: frozenset[Effect]


def fill_in(name: str, what: str) -> str:
    """A word of a command that its reader has to fill in: pasted as it is, the shell stops with ``what``."""
    return f'"${{{name}:?{what}}}"'


def simple_commands(command: str) -> list[SimpleCommand]:
    """The simple commands of a line; raises ValueError where no POSIX shell can read it.

    A script within quotes (for sh -c, an image's definition) is a word, and not looked into.
    """
    lexer = shlex.shlex(_ELSEWHERE.sub("", command), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found: list[SimpleCommand] = []
    words: list[str] = []
    guarded = False
    for word in [*lexer, ";"]:
        if word in _SEPARATORS:
            found += [_simple_command(words, guarded)] if words else []
            guarded = word == "&&" if words else guarded and word != ";"
            words = []
        elif words or not _AHEAD.match(word):
            words.append(word)
    return found


def _simple_command(words: list[str], guarded: bool) -> SimpleCommand:
    program, arguments = words[0].rpartition("/")[2], " ".join(words[1:])
    effects = frozenset(
        effect
        for effect, name, rest in _COMPILED
        if name.fullmatch(program) and rest.search(arguments)
    )
    return SimpleCommand(program, arguments, guarded, effects)


def refusal(commands: Sequence[str], text: str) -> str:
    """Why a remedy of this text does not print these commands; "" where it may."""
    return next(_refusals(commands, text), "")


def _refusals(commands: Sequence[str], text: str) -> Iterator[str]:
    before: set[Effect] = set()
    first = True
    for command in commands:
        try:
            line = simple_commands(command)
        except ValueError:
            yield f"no shell can read {command!r}"
            return
        if _EMPTY.search(command) or _PLACEHOLDER.search(_QUOTED.sub("'quoted'", command)):
            yield f"{command!r} has a word that is not filled in"
        installed = False
        for one in line:
            what = f"{one.program} {one.arguments}".strip()
            installed = "installs" in one.effects or (installed and one.guarded)
            if "uninstalls" in one.effects and not (installed and one.guarded):
                yield f"{what!r} comes before its replacement is known to be there"
            elif first and _NEVER_FIRST & one.effects:
                yield f"{what!r} comes first"
            if "lowers" in one.effects and TRADE not in text:
                yield f"{what!r} switches a protection off"
            if "resets" in one.effects and not before & {"evidence", "mode"}:
                yield f"{what!r} comes before nvidia-bug-report.sh"
            if "resets" in one.effects and "reboots" in before:
                yield f"{what!r} comes after a reboot"
            if "evidence" in one.effects and before & {"resets", "reboots"}:
                yield f"{what!r} comes after a reset or a reboot"
            before |= one.effects
            first = False

"""What a remedy's commands do to a machine, and which of them are never printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from ..data import rows

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


class CommandEffect(msgspec.Struct, frozen=True):
    """Programs, and what stands somewhere in their arguments (apart by blanks): two regular expressions."""

    effect: Effect
    program: str
    arguments: str


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
    """The simple commands of a line; raises ValueError where no POSIX shell can read it."""
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
        row.effect
        for row in rows("command_effects", CommandEffect)
        if re.fullmatch(row.program, program) and re.search(row.arguments, arguments, re.IGNORECASE)
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

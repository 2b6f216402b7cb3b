"""The commands' names, what each does in a line, and how they are called here."""

from __future__ import annotations

import re

from ..invocation import envcheck_command

# heading → name → one line of help
HEADINGS = {
    "commands": {
        "doctor": "check this machine: what is wrong, why, and how to fix it",
        "install": "install TensorFlow for this machine, verified by the doctor",
        "bench": "train models, and compare their speed with references",
        "soak": "load all GPUs for hours, and compare every result",
        "releases": "list the releases that fit, and why others do not",
        "run": "run a command in the installed environment",
        "shell": "open a shell in the installed environment",
        "list": "list what envcheck has installed, its size and its state",
        "rollback": "go back to the previous version of an environment",
        "uninstall": "remove an environment, or a version of it",
        "prune": "remove old versions and downloads that are no longer needed",
        "explain": "explain a check, or find the checks that mention a word",
        "demo": "run the doctor on simulated machines, without a GPU",
    },
    "other machines and programs": {
        "fleet": "do the same for many machines: collect, judge, install",
        "diff": "show what changed between two Snapshots, or since one",
        "collect": "write the facts of this machine to a file (a Snapshot)",
        "bundle": "write everything that a machine without a network needs",
        "collector": "write the collector as one file, to run without envcheck",
        "schema": "print the JSON Schema of the Snapshot or of a report",
        "completion": "print the completion script for bash, zsh, fish or tcsh",
    },
}
COMMANDS = {name: what for commands in HEADINGS.values() for name, what in commands.items()}

_CALL = rf"envcheck(?= (?:{'|'.join(COMMANDS)})\b)"
_OURS = re.compile(rf"(?<![\w/.-])(){_CALL}")
_LINES = re.compile(rf"^((?:\x1b\[[0-9;]*m)*){_CALL}", re.MULTILINE)  # colours may stand in front


def in_place(sentence: str) -> str:
    """A sentence or a hint, in which each command of envcheck's is written as it is called here."""
    return _called(_OURS, sentence)


def lines_in_place(text: str) -> str:
    """The same for a page, where a line of its own is a command to paste, and the rest speaks of one."""
    return _called(_LINES, text)


def _called(commands: re.Pattern[str], text: str) -> str:
    called = envcheck_command()
    return text if called == "envcheck" else commands.sub(lambda found: found[1] + called, text)

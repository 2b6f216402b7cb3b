"""Asks the machines that a command line names, by the engine that it names, and keeps what they answer."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...exit_codes import UsageError
from ...findings import shell
from .. import kernels, messages
from ..options import flag, option
from ..parser import Parser
from ..terminal import Terminal
from ..values import number, seconds
from . import machines

if TYPE_CHECKING:
    from ...fleet.engines import Asked
    from ...fleet.folder import Member

# Seconds that a machine may take, by how deep the look is.
DEADLINES = {"quick": 120.0, "standard": 1500.0, "deep": 2700.0}


def add_arguments(parser: Parser) -> None:
    """Which machines, and what is looked at there."""
    machines.add_arguments(parser)
    look = parser.add_argument_group("what is collected")
    words = "also check this environment or interpreter, at the same path on all machines"
    option(look, "--target", "PATH", words)
    words = "time limit for a machine once it is reached (default: 120 with --level quick, else"
    words += " 1500, or 2700 with deep)"
    option(look, "--deadline", "SECONDS", words, type=seconds(1, 86400))
    words = "collect N times: rates are averaged, which finds GPUs that are a few per cent slow (default: 1)"
    option(look, "--repeat", "N", words, type=number(1, 99), default=1)
    words = "keep host names, serial numbers, UUIDs and home paths, so that commands can be pasted"
    flag(look, "--no-redact", words)
    kernels.add_arguments(parser)


def ask(arguments: argparse.Namespace, path: Path) -> list[Member]:
    """Ask the machines, and keep each answer in the directory as it comes. What was kept stays, and
    fleet.json tells of it, also where this is interrupted. Raises UsageError, CouldNotLook where the engine
    itself fails."""
    from ...fleet.engines.collecting import Members
    from ...fleet.folder import FleetFolder
    from ...install import signals

    named, asked = machines.named(arguments), _asked(arguments)
    first: list[Member] = []
    for look in range(1, arguments.repeat + 1):
        with AskingLine(arguments.quiet) as shown, signals.ending_raises():
            members = Members(FleetFolder(directory(path), look), asked, shown.on_outcome)
            with members.roster(named.engine):
                machines.ask(members, named, shown.say)
        found = list(members.found.values())
        if not arguments.quiet:
            _tell(found, path)
        first = first or found
    return first


def target_words(arguments: argparse.Namespace) -> list[str]:
    """The collector's words for --target. Raises UsageError."""
    target = arguments.target
    if target is not None and target.startswith(("image:", "container:")):
        raise UsageError(
            f"--target {target}: fleet checks only environments and interpreters",
            hint=f"for a container: envcheck doctor --target {shell.word(target)} on the machine itself",
        )
    return [] if target is None else [f"--target={target}"]


def _asked(arguments: argparse.Namespace) -> Asked:
    from ...fleet.engines import Asked

    targets = target_words(arguments)
    wanted = kernels.wanted(arguments)
    if wanted is None and arguments.repeat > 1:
        raise UsageError("--repeat is for rates, and --level quick measures none")
    request = "--request=" + msgspec.json.encode({"kernels": wanted}).decode()
    words = ["--level=quick" if wanted is None else request, *targets]
    words += ["--no-redact"] if arguments.no_redact else []
    level = "quick" if wanted is None else arguments.level or "standard"
    return Asked(arguments=words, deadline=arguments.deadline or DEADLINES[level])


def directory(path: Path) -> Path:
    """The directory, made where it is missing. Raises UsageError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    return path


class AskingLine(Terminal):
    """And how many have answered."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._outcomes: dict[str, str] = {}

    def on_outcome(self, member: Member) -> None:
        self._outcomes[member.name] = member.outcome
        found = Counter(self._outcomes.values())
        words = [f"{found['answered']} of {found.total()} answered"]
        troubles = ("unreachable", "timed-out", "failed", "unreadable")
        self.progress(", ".join(words + [f"{found[one]} {one}" for one in troubles if found[one]]))


def _tell(members: list[Member], folder: Path) -> None:
    """What came of it, those with the same trouble together."""
    from ...fleet import hosts
    from ...reports.plain import together

    answered = sum(member.outcome == "answered" for member in members)
    messages.say(f"{answered} of {len(members)} machines have answered: {folder}")
    silent = (one for one in members if one.outcome != "answered")
    troubles = together(((one.outcome, one.reason), one.name) for one in silent)
    for (outcome, reason), names in sorted(troubles.items(), key=lambda one: -len(one[1])):
        messages.say(f"{hosts.folded(names)}: {outcome}: {reason}")

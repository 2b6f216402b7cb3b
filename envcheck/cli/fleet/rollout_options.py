"""What commands that change many machines share: waves, when to stop, where logs are kept, a question."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ... import json_text
from ...exit_codes import Cannot, ExitCode, UsageError
from .. import files, messages, options, questions
from ..options import option
from ..parser import Parser
from ..style import style_of
from ..values import duration
from . import machines

if TYPE_CHECKING:
    from ...fleet.engines.ansible import Inventory
    from ...fleet.rollout.model import MachineEnd, PlannedRollout


def add_arguments(parser: Parser) -> None:
    """Which machines, and how."""
    machines.add_inventory(parser)
    group = parser.add_argument_group("roll-out")
    words = (
        "machines per wave, as in Ansible's serial: numbers or percentages (default: 1,10%%,100%%)"
    )
    option(group, "--waves", "LIST", words, default="1,10%,100%")
    words = "how many may fail; after more, no further machine is started (default: 0)"
    option(group, "--max-fail", "N|N%", words, default="0")
    words = "time limit for one machine (default: 2h)"
    option(group, "--deadline", "TIME", words, type=duration("1m", "7d"), default=7200.0)
    options.add_yes(group)
    words = (
        "directory for the plan, bundles and logs, from which the next run continues (default: in"
    )
    option(group, "--keep", "DIR", f"{words} envcheck's state directory)")
    options.add_format(parser, json="for programs")


def machines_of(arguments: argparse.Namespace) -> Inventory:
    """Raises UsageError where none were named."""
    named = machines.inventory(arguments)
    if named is None:
        raise UsageError("which machines? name them: -i INVENTORY")
    return named


def kept(arguments: argparse.Namespace, what: str, inputs: bytes) -> Path:
    """The directory of this roll-out, made. inputs: what makes it another roll-out."""
    from ...install import places

    if arguments.keep:
        path = Path(arguments.keep).expanduser().absolute()
    else:
        places.check_home()
        name = f"{what}-{hashlib.sha256(inputs).hexdigest()[:10]}"
        path = places.state() / "rollouts" / name
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Cannot(f"{path}: cannot be made: {error.strerror}", "--keep names another") from None
    return path


def agreed(arguments: argparse.Namespace, question: str) -> bool:
    """Asks where somebody is there to answer."""
    asking = not arguments.yes and sys.stdin.isatty() and sys.stderr.isatty()
    return not asking or questions.answered(f"{question} [Y/n] ", default=True)


def add_take_back(parser: Parser, words: str) -> None:
    option(parser, "environment", "NAME", words, nargs="?", default="")
    add_arguments(parser)


def take_back(arguments: argparse.Namespace, what: str, question: str) -> int:
    """Run the playbook of this name on what a roll-out has done."""
    from ...fleet.engines.ansible import CONTENT
    from ...fleet.rollout import running, waves

    waved, max_fail = waves.parse(arguments.waves), waves.max_fail(arguments.max_fail)
    named = machines_of(arguments)
    folder = kept(arguments, what, repr(named.sources).encode())
    if not agreed(
        arguments, f"{question} on all machines of the inventory (as far as --limit lets)?"
    ):
        files.write(None, "Nothing was touched.\n")
        return ExitCode.INTERRUPTED
    variables = running.variables(waved, max_fail, folder / "logs", arguments.deadline)
    variables["envcheck_environment"] = arguments.environment
    return carry_out(arguments, CONTENT / f"{what}.yml", named, [], variables, folder, None)


def carry_out(
    arguments: argparse.Namespace,
    playbook: Path,
    named: Inventory,
    names: Sequence[str],
    variables: dict[str, object],
    folder: Path,
    plan: PlannedRollout | None,
) -> int:
    """Run it, and tell what became of each machine, also of what was interrupted; the exit code."""
    from ... import __version__
    from ...fleet.rollout import running, text
    from ...fleet.rollout.model import SCHEMA, RolloutResult

    run = running.RolloutRun(names, folder / "logs", _say)
    code = None
    try:
        run.run(playbook, named, variables)
    except KeyboardInterrupt:
        run.stopped = "interrupted"
        code = ExitCode.INTERRUPTED
    ends = [*run.ends.values(), *(text.left_out(plan) if plan else [])]
    result = RolloutResult(
        schema=SCHEMA,
        envcheck=__version__,
        exit_code=int(running.worst(ends) if code is None else code),
        plan=plan,
        machines=ends,
        stopped=run.stopped,
        logs=str(folder / "logs"),
    )
    running.keep(folder / "result.json", result)
    if arguments.format == "json":
        files.write(None, json_text.render(result))
    else:
        files.write(None, text.render_result(result, **style_of(sys.stdout)._asdict()))
    return result.exit_code


def _say(end: MachineEnd) -> None:
    """A line for each machine, as soon as it is known what became of it."""
    from ...fleet.rollout.text import sentence

    messages.say(f"wave {end.wave}: {end.name}: {sentence(end)}")

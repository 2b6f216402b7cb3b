"""What commands that change many machines share: waves, when to stop, where logs are kept, a question."""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import Cannot, ExitCode, UsageError
from ...fleet.rollout import waves
from .. import files, messages, options, questions
from ..options import option
from ..parser import Parser
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
    option(group, "--waves", "LIST", words, type=waves.parse, default=waves.DEFAULT)
    words = "how many may fail; after more, no further machine is started (default: 0)"
    option(group, "--max-fail", "N|N%", words, type=waves.max_fail, default="0")
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
    if asking and not questions.answered(f"{question} [Y/n] ", default=True):
        files.write(None, "Nothing was touched.\n")
        return False
    return True


def carry_out(
    arguments: argparse.Namespace,
    what: str,
    named: Inventory,
    folder: Path,
    plan: PlannedRollout | None = None,
    **variables: object,
) -> int:
    """Run the playbook of this name, and tell what became of each machine, also of what was interrupted; the
    exit code."""
    from ... import __version__
    from ...fleet.engines.ansible import CONTENT
    from ...fleet.rollout import running, text
    from ...fleet.rollout.model import SCHEMA, RolloutResult
    from ...install import durable

    logs = folder / "logs"
    variables |= {
        "envcheck_waves": arguments.waves,
        "envcheck_max_fail": arguments.max_fail,
        "envcheck_logs": str(logs),
        "envcheck_deadline": int(arguments.deadline),
    }
    if arguments.max_fail.endswith("%"):  # Ansible's own, of each wave
        variables["envcheck_max_fail_percentage"] = int(arguments.max_fail[:-1])
    run = running.RolloutRun(plan.machines if plan else [], logs, _say)
    code = None
    try:
        run.run(CONTENT / f"{what}.yml", named, variables)
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
        logs=str(logs),
    )
    durable.dump(folder / "result.json", result)
    files.show(arguments, result, text.render_result)
    return result.exit_code


def _say(end: MachineEnd) -> None:
    """A line for each machine, as soon as it is known what became of it."""
    from ...fleet.rollout.text import sentence

    messages.say(f"wave {end.wave}: {end.name}: {sentence(end)}")

"""`envcheck fleet install`: the same environment on many machines, in waves, verified on each of them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ...exit_codes import Cannot, ExitCode, UsageError
from .. import files, messages, selection, stacks
from ..options import add_quiet, flag
from ..parser import Parser
from ..style import style_of
from ..terminal import Terminal
from . import rollout_options

if TYPE_CHECKING:
    from ...fleet.rollout.bundles import Bundled
    from ...fleet.rollout.model import PlannedRollout
    from ...install.request import Request

EPILOG = """\
examples:
  envcheck fleet install tensorflow -i hosts.ini --plan   which machines get what
  envcheck fleet install tensorflow -i hosts.ini          one, a tenth, the rest
  envcheck fleet install torch -i hosts.ini --waves 2,50% --max-fail 5%

Packages are fetched once, on this machine, and copied to the others through
Ansible's connection. Each installation is a transaction: the doctor verifies
it, or the machine is as before. The same command, run again, continues with
the same versions.
exit codes: that of the worst machine: 0 all done, 3 some cannot (excluded),
4 some did not answer, 5 failed and rolled back, 6 failed and not rolled back;
130 interrupted"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    selection.add_arguments(parser)
    flag(parser, "--plan", "show what would happen, and stop")
    flag(parser, "--upgrade", "resolve again, and install newer versions")
    rollout_options.add_arguments(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    stacks.settle(arguments)
    _refuse(arguments)
    from ...fleet.folder import FleetFolder
    from ...fleet.rollout import bundles, planning, surveying, text, waves
    from ...fleet.rollout.model import PlannedRollout
    from ...install import durable
    from ...install.export.elsewhere import ElsewhereShop
    from ...install.signals import ending_raises

    request = selection.request_of(arguments)
    named = rollout_options.machines_of(arguments)
    inputs = msgspec.json.encode([msgspec.to_builtins(request), named.sources])
    folder = rollout_options.kept(arguments, Path(request.stack).stem or request.mode, inputs)
    snapshots = FleetFolder(folder / "snapshots")
    snapshots.path.mkdir(exist_ok=True)
    with ending_raises(), Terminal(quiet=arguments.quiet) as shown:
        machines = surveying.look(snapshots, named, shown.say)
        shop = ElsewhereShop(request, shown)
        fitting, left_out = planning.plan(request, machines, shop.own_python, shop.answers)
        bundled = [
            bundles.prepare(one, request, folder / "bundles", shop, arguments.upgrade)
            for one in fitting
        ]
        groups = [one.fitting.group for one in bundled]
        sizes = waves.sizes(arguments.waves, sum(len(group.machines) for group in groups))
        plan = PlannedRollout(
            groups=groups, left_out=left_out, waves=sizes, max_fail=arguments.max_fail
        )
        durable.dump(folder / "plan.json", plan)
        shown.clear()
        if arguments.plan:
            files.show(arguments, plan, text.render_plan)
            return max((one.exit_code for one in plan.left_out), default=int(ExitCode.HEALTHY))
        if not _agreed(arguments, plan):
            return ExitCode.INTERRUPTED
        for one in bundled:
            bundles.write(one, shop)
    group = "envcheck_fit"
    fit = folder / f"{group}.yaml"
    durable.dump(fit, {group: _tree(bundled, request)})
    asked = named._replace(sources=[*named.sources, str(fit)])
    return rollout_options.carry_out(
        arguments, "install", asked, folder, plan, envcheck_hosts=group
    )


def _refuse(arguments: argparse.Namespace) -> None:
    if arguments.mode == "container":
        raise UsageError(
            "fleet install installs wheels, not containers",
            hint="on each machine: ansible -i INVENTORY all -a 'envcheck install STACK --yes'",
        )
    selection.refuse_other_mode(arguments)
    if arguments.lock:
        raise UsageError(
            "--lock is for one machine's Python; fleet install resolves for each group of machines",
            hint="leave it out: the next run of the same command installs the same versions",
        )


def _agreed(arguments: argparse.Namespace, plan: PlannedRollout) -> bool:
    if arguments.format == "text" and not arguments.quiet:
        from ...fleet.rollout import text

        messages.show(text.render_plan(plan, **style_of(sys.stderr)._asdict()) + "\n")
    if not plan.groups:
        reasons = "; ".join(f"{one.hosts}: {one.reason}" for one in plan.left_out)
        raise Cannot(f"none of the machines can have it: {reasons}")
    return rollout_options.agreed(arguments, "Go on?")


def _tree(bundled: list[Bundled], request: Request) -> dict[str, Any]:
    """The inventory that says which machine gets which bundle."""
    arguments = ["--mode", "wheel", "--offline", "BUNDLE"]
    arguments += ["--allow-no-gpu"] if request.allow_no_gpu else []
    return {
        "children": {
            fitting.group.name: {
                "hosts": {
                    name: {"envcheck_python": python} for name, python in fitting.python.items()
                },
                "vars": {"envcheck_bundle": str(place), "envcheck_arguments": arguments},
            }
            for fitting, place, _ in bundled
        }
    }

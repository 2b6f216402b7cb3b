"""`envcheck install`: from a bare machine to an environment that the doctor has verified."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import json_text
from ..exit_codes import EnvcheckError, ExitCode
from . import files, messages, options, questions, selection, stacks, terminal
from .options import flag, option
from .parser import Parser
from .style import style_of

if TYPE_CHECKING:
    from ..install.pipeline import Outcome
    from ..install.plan.models import AnyPlan
    from ..install.reports.installed import Result
    from ..install.transaction.record import Installed

EPILOG = """\
examples:
  envcheck install                     what fits this machine best
  envcheck install --plan              what it would do; changes nothing
  envcheck install tensorflow-cpu      for a machine without a GPU
  envcheck install nvidia-tf1 23.03    this release
  envcheck install ngc-tf2             NVIDIA's newest container that fits
  envcheck install --offline /media/usb/bundle
  envcheck install --mode container --offline localhost/team/tf:1
  envcheck run python train.py         then: a command in it"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    groups = selection.add_arguments(parser)
    words = "container engine (default: one that works on this machine)"
    groups.container.add_argument("--engine", choices=("podman", "docker"), help=words)
    words = "install this bundle, or an image that the engine has, without a network"
    option(parser, "--offline", "BUNDLE|IMAGE", words)
    words = "target directory (default: ~/.local/share/envcheck/envs/STACK)"
    option(parser, "--path", "DIR", words)
    flag(parser, "--plan --dry-run", "show what would happen, and stop")
    flag(parser, "--upgrade", "resolve again, and install newer versions")
    flag(parser, "--fresh", "reinstall the locked versions")
    options.add_yes(parser)
    options.add_deadline(parser, "each probe of the doctor that verifies it")
    amount = parser.add_mutually_exclusive_group()
    flag(amount, "-v --verbose", "show a plan with every package")
    options.add_quiet(amount)
    options.add_wait(parser, 600.0)
    options.add_format(parser, json="for programs")


def run(arguments: argparse.Namespace) -> int:
    with _InstallTerminal(arguments) as shown, _failure_as_json(arguments, shown):
        stacks.settle(arguments)
        _refuse_combinations(arguments)
        request = selection.request_of(arguments)
        from ..install import pipeline
        from ..install.request import InstallOptions

        wanted = InstallOptions(
            until="plan" if arguments.plan else "installed",
            upgrade=arguments.upgrade,
            fresh=arguments.fresh,
            wait=arguments.wait,
            deadline=arguments.deadline,
        )
        outcome = pipeline.install(request, wanted, shown)
        shown.clear()
        files.write(None, _render(arguments, outcome))
        return ExitCode.INTERRUPTED if outcome.result == "refused" else ExitCode.HEALTHY


# (option, what it cannot be used together with, why)
_APART = (
    ("--image", "--stack --release", "--image says what is installed"),
    (
        "--offline",
        "--stack --release --lock --index --allow-insecure --upgrade --image",
        "it says what is installed",
    ),
    ("--fresh", "--upgrade --lock", "--fresh takes the versions that are installed"),
)


def _refuse_combinations(arguments: argparse.Namespace) -> None:
    selection.refuse_other_mode(arguments)
    selection.refuse_lock(arguments)
    for name, others, why in _APART:
        selection.refuse_together(arguments, name, others, why)


class _InstallTerminal(terminal.Terminal):
    """The same, with the plan and the question."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(quiet=arguments.quiet)
        self._verbose = arguments.verbose
        self._only_planned = arguments.plan
        self._json = arguments.format == "json"
        self._yes = arguments.yes
        self.plan: AnyPlan | None = None

    def agreed(self, plan: AnyPlan) -> bool:
        """Show the plan, and ask where somebody is there to answer."""
        self.clear()
        self.plan = plan
        self.planned(plan)
        asking = not self._yes and sys.stdin.isatty() and sys.stderr.isatty()
        if self._only_planned or self._json or (self._quiet and not asking):
            return True
        from ..install.reports import plan_text

        style = style_of(sys.stderr)
        text = plan_text.render(plan, **style._asdict(), alone=False, verbose=self._verbose)
        messages.show(f"{text}\n")
        return not asking or questions.answered("Go on? [Y/n] ", default=True)


def _render(arguments: argparse.Namespace, outcome: Outcome) -> str:
    from ..install.reports import installed, plan_text

    if arguments.format == "json":
        return _envelope(outcome.result, outcome.plan, outcome.installed)
    style: dict[str, Any] = style_of(sys.stdout)._asdict()
    if outcome.result == "planned" and outcome.plan is not None:
        return plan_text.render(outcome.plan, **style, verbose=arguments.verbose)
    if outcome.installed is None:
        return "Nothing was touched.\n"
    return installed.render(outcome.installed, already=outcome.result == "already", **style)


def _envelope(
    result: Result,
    plan: AnyPlan | None,
    environment: Installed | None = None,
    error: BaseException | None = None,
) -> str:
    from ..install.reports import installed

    code: int = ExitCode.INTERRUPTED if result == "refused" else ExitCode.HEALTHY
    failure = None
    if error is not None:
        code = _code(error)
        before = (ExitCode.USAGE, ExitCode.CANNOT, ExitCode.COULD_NOT_LOOK)
        result = "refused" if code in before else "failed"
        interrupted = isinstance(error, KeyboardInterrupt)
        sentence = "interrupted" if interrupted else str(error) or type(error).__name__
        failure = installed.Failure(sentence=sentence, hint=getattr(error, "hint", ""))
    return json_text.render(
        installed.Envelope(
            result=result, exit_code=code, error=failure, plan=plan, environment=environment
        )
    )


@contextmanager
def _failure_as_json(arguments: argparse.Namespace, shown: _InstallTerminal) -> Iterator[None]:
    """With --format json, a failure has its envelope on stdout; it is raised as well."""
    try:
        yield
    except BaseException as error:
        shown.clear()
        if isinstance(error, SystemExit) and not str(error).isdecimal():
            shown.say(str(error))  # of a signal: nobody else says it
        if arguments.format == "json":
            files.write(None, _envelope("failed", shown.plan, error=error))
        raise


def _code(error: BaseException) -> int:
    if isinstance(error, EnvcheckError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    return ExitCode.COULD_NOT_LOOK

"""`envcheck demo`: the doctor on simulated machines, whose Snapshots come with the package."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from ..exit_codes import ExitCode, UsageError
from .files import write
from .options import add_report, option
from .style import style_of

if TYPE_CHECKING:
    from importlib.abc import Traversable

NAMES = (
    "healthy",
    "heat",
    "driver-update",
    "blind-tensorflow",
    "silent-systems",
    "bench",
    "odd-machine",
)
_OF_BENCH = ("text", "json", "html")
BENCH = "bench"  # the one that is shown by the command of that name
FLEET = "fleet"  # the one of many machines, which is made of some of the others

EPILOG = """\
examples:
  envcheck demo                             the simulated machines, a line each
  envcheck demo heat                        the doctor's report on one
  envcheck demo healthy --format json       the same, as JSON
  envcheck demo fleet                       many machines, and the outliers
  envcheck demo heat --save machine.json    also write its Snapshot

exit code: 0 whatever is found (`envcheck doctor --from` has its own)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    words = f"{', '.join(NAMES)}, {FLEET}; default: list them"
    option(parser, "name", "NAME", words, nargs="?", choices=(*NAMES, FLEET))
    add_report(parser)


def run(arguments: argparse.Namespace) -> int:
    from .main import build_parser

    if arguments.name is None:
        if vars(arguments) != vars(build_parser(["demo"]).parse_args(["demo"])):
            raise UsageError("these options go with a demo's NAME", hint="envcheck demo lists them")
        return _list()
    if arguments.name == FLEET:
        return _fleet(arguments)
    if arguments.name == BENCH and arguments.format not in _OF_BENCH:
        raise UsageError(f"--format {arguments.format}: a bench is shown as {', '.join(_OF_BENCH)}")
    with as_file(_packaged(arguments.name)) as path:
        command = "bench" if arguments.name == BENCH else "doctor"
        argv = [command, "--exit-zero", "--from", str(path)]
        as_command = build_parser([command]).parse_args(argv)
        for name in ("format", "verbose", "quiet", "output", "save"):
            setattr(as_command, name, getattr(arguments, name))
        return int(as_command.run(as_command))


def _fleet(arguments: argparse.Namespace) -> int:
    """The Snapshots in a directory, for as long as they are judged or where --save says."""
    from contextlib import nullcontext
    from pathlib import Path

    from .. import scratch
    from ..fleet import simulated
    from ..fleet.folder import FleetFolder
    from .fleet import shown

    if arguments.format not in ("text", *shown.FORMATS):
        formats = ", ".join(("text", *shown.FORMATS))
        raise UsageError(f"--format {arguments.format}: a fleet is shown as {formats}")
    shown.check(arguments)
    if arguments.format == shown.HTML and arguments.output is None and arguments.save is None:
        raise UsageError(
            "--format html needs --output DIR for the pages",
            hint="envcheck demo fleet --format html --output DIR",
        )
    kept = None if arguments.save is None else Path(arguments.save)
    try:
        if kept is not None:
            kept.mkdir(exist_ok=True)
            if any(kept.iterdir()):
                raise UsageError(f"--save {kept}: this directory is not empty")
        with nullcontext(kept) if kept is not None else scratch.directory() as directory:
            folder = FleetFolder(directory)
            demos = {name: _packaged(name).read_bytes() for name in simulated.DEMOS}
            simulated.write(folder, demos)
            arguments.exit_zero, arguments.fail_on, arguments.expect = True, "fail", None
            return shown.show(directory, arguments)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None


def _packaged(name: str) -> Traversable:
    return files("envcheck.data") / "demos" / f"{name}.json"


def _list() -> int:
    import msgspec

    from ..fleet.simulated import SIMULATED
    from ..invocation import in_place
    from ..reports.page import Page

    class Title(msgspec.Struct):
        simulated: str

    page = Page(**style_of(sys.stdout)._asdict())
    page.paragraph(("Simulated machines, not real ones:", "heading"))
    for name in NAMES:
        title = msgspec.json.decode(_packaged(name).read_bytes(), type=Title).simulated
        page.entry(name, title, 18)
    page.entry(FLEET, SIMULATED, 18)
    page.blank()
    page.paragraph(("The doctor's report on one:", ""))
    page.command(in_place("envcheck demo heat"))
    write(None, page.text())
    return ExitCode.HEALTHY

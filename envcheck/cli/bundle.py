"""`envcheck bundle`: everything for a machine without a network."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ..exit_codes import ExitCode, UsageError
from . import files, options, selection, sources, stacks
from .options import option
from .parser import Parser
from .style import style_of
from .terminal import Terminal

if TYPE_CHECKING:
    from ..install.export.destinations import Destinations

EPILOG = """\
examples:
  envcheck bundle tensorflow --output /media/usb/tensorflow
  envcheck bundle tensorflow-cpu --output tensorflow-cpu.tar
on the machine without a network (unpack a tar first):
  sh setup.sh
  venv/bin/envcheck install --offline ."""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    selection.add_arguments(parser)
    words = "for the machine of this Snapshot; repeatable (default: machines like this one)"
    repeated = {"action": "append", "default": []}
    option(parser, "--for", "MACHINE.json", words, dest="machines", **repeated)
    words = "a new directory, or a file whose name ends in .tar (required)"
    option(parser, "--output", "PLACE", words)
    options.add_yes(parser, asks=False)
    options.add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    stacks.settle(arguments)
    if arguments.mode == "container":
        raise UsageError(
            "a bundle holds wheels: an image needs none",
            "podman save writes one into a file, and there podman load and envcheck install --mode"
            " container --offline IMAGE install it",
        )
    selection.refuse_other_mode(arguments)
    selection.refuse_lock(arguments)
    if arguments.output is None:
        raise UsageError(
            "bundle needs --output", "envcheck bundle tensorflow --output tensorflow.tar"
        )
    output = selection.absolute_output(arguments.output)
    if output.name.endswith((".gz", ".tgz", ".xz", ".bz2", ".zst", ".zip")):
        raise UsageError(
            f"--output {arguments.output}: a bundle is a directory or a plain .tar: its"
            " contents are already compressed"
        )
    from ..install.export import make_bundle
    from ..install.reports import bundled

    request = selection.request_of(arguments)
    with Terminal(quiet=arguments.quiet) as shown:
        manifest = make_bundle.make(
            request,
            output,
            wanted=_destinations(arguments, request.python),
            reporter=shown,
        )
    text = bundled.render(manifest, output, **style_of(sys.stdout)._asdict())
    files.write(None, text)
    return ExitCode.HEALTHY


def _destinations(arguments: argparse.Namespace, python: str) -> Destinations:
    """The machines that the command line names. Raises UsageError."""
    from ..install.export.destinations import Destinations

    return Destinations(
        machines={name: sources.read_snapshot(name).snapshot for name in arguments.machines},
        python=python,
    )

"""`envcheck bundle`: everything for a machine without a network."""

from __future__ import annotations

import argparse
import sys

from ..exit_codes import ExitCode, UsageError
from . import files, selection, stacks
from .parser import Parser
from .style import style_of
from .terminal import Terminal, add_quiet

EPILOG = """\
examples:
  envcheck bundle tensorflow --output /media/usb/tensorflow
  envcheck bundle tensorflow-cpu --output tensorflow-cpu.tar
  envcheck bundle ngc-tf1 --release 23.03 --output ngc.tar"""

MORE = """\
on the machine without a network, with a bundle of wheels (a tar is unpacked
first, or read as it is where envcheck is there already):
  sh setup.sh
  venv/bin/envcheck install --offline .
and with an image's tar, which is read as it is: an OCI archive, that podman
and docker load as well:
  tar -xf ngc.tar setup.sh envcheck
  sh setup.sh
  venv/bin/envcheck install --mode container --offline ngc.tar
exit codes: 0 written, 2 wrong usage or unreadable input, 3 this machine
cannot, 4 envcheck could not look (an index, a registry, this machine),
130 interrupted"""


def add_arguments(parser: Parser) -> None:
    parser.epilog, parser.more = EPILOG, MORE
    selection.add_arguments(parser)
    parser.add_argument(
        "--for-python",
        action="append",
        default=[],
        metavar="PYTHON",
        help="the Python that envcheck will run under there, 3.10 or newer; repeatable (default: the"
        " version here)",
    )
    parser.add_argument(
        "--output",
        metavar="PLACE",
        help="a new directory, or a file whose name ends in .tar (needed)",
    )
    add_quiet(parser)


def run(arguments: argparse.Namespace) -> int:
    stacks.settle(arguments)
    selection.refuse_other_mode(arguments, besides="--index")
    selection.refuse_lock(arguments)
    if arguments.output is None:
        raise UsageError(
            "where should the bundle go?", "envcheck bundle tensorflow --output tensorflow.tar"
        )
    output = selection.absolute_output(arguments.output)
    if output.name.endswith((".gz", ".tgz", ".xz", ".bz2", ".zst", ".zip")):
        raise UsageError(
            f"--output {arguments.output}: a bundle is a directory or a plain .tar: what is in"
            " it is compressed already"
        )
    from ..install import pipeline
    from ..install.export import make_bundle
    from ..install.reports import bundled
    from ..install.request import InstallOptions

    with Terminal(quiet=arguments.quiet) as shown:
        options = InstallOptions(jobs=arguments.jobs)
        manifest = make_bundle.make(
            pipeline.opened(selection.request_of(arguments), options, shown),
            output,
            pythons=arguments.for_python,
            jobs=arguments.jobs,
            reporter=shown,
        )
    text = bundled.render(manifest, output, **style_of(sys.stdout)._asdict())
    files.write(None, text)
    return ExitCode.HEALTHY

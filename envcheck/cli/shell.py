"""`envcheck shell`: an interactive shell in what was installed."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from ..install.start import container, wheel
from . import starting
from .parser import Parser

EPILOG = """\
examples:
  envcheck shell                   in what was installed last
  envcheck shell --name nvidia-tf1
In a virtual environment this is your own $SHELL (bash reads its rc
file first); in a container bash, or sh if there is no bash.

"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG + starting.CODES
    starting.add_arguments(parser)


def run(arguments: argparse.Namespace) -> NoReturn:
    with starting.own_codes():
        options = starting.options(arguments)
        version = starting.version(arguments)
        if version.is_container:
            container.run(version, container.SHELL, options)
        wheel.run_shell(version, options, interactive=sys.stdin.isatty())
    raise AssertionError("it became another program")

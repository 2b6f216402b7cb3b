"""`envcheck fleet uninstall`: what a roll-out brought is removed from many machines, in waves."""

from __future__ import annotations

import argparse

from ..parser import Parser
from . import rollout_options

EPILOG = """\
examples:
  envcheck fleet uninstall -i hosts.ini              what the last roll-out installed
  envcheck fleet uninstall tensorflow -i hosts.ini   this environment

Each machine's own envcheck removes the environment; then that envcheck and the
copied packages are removed, unless other environments are left there. A machine
without a roll-out reports that; if all do, the exit code is 4."""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    words = "this environment (default: what was rolled out last)"
    rollout_options.add_take_back(parser, words)


def run(arguments: argparse.Namespace) -> int:
    return rollout_options.take_back(arguments, "uninstall", "Remove what was rolled out")

"""`envcheck fleet rollback`: what was in use before a roll-out, on many machines, in waves."""

from __future__ import annotations

import argparse

from ..parser import Parser
from . import rollout_options

EPILOG = """\
examples:
  envcheck fleet rollback -i hosts.ini               what the last roll-out replaced
  envcheck fleet rollback -i hosts.ini --limit gpu01,gpu02 --waves 100%

A machine that uses another version by now, or had none before, is left
unchanged and reports that; if all do, the exit code is 4. A second run never
moves to a newer version."""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    words = "only if the last roll-out was of this environment"
    rollout_options.add_take_back(parser, words)


def run(arguments: argparse.Namespace) -> int:
    return rollout_options.take_back(arguments, "rollback", "Go back")

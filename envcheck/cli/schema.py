"""`envcheck schema`: the JSON Schema of the Snapshot or of the report."""

from __future__ import annotations

import argparse

import msgspec

from ..exit_codes import ExitCode
from ..reports.json_schema import SCHEMAS, schema
from . import files, options
from .options import option

EPILOG = """\
examples:
  envcheck schema           of what envcheck collect writes
  envcheck schema fleet     of what envcheck fleet doctor --format json writes"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    words = "snapshot (default), report, bench, fleet, network or diff"
    option(parser, "which", "WHICH", words, nargs="?", choices=[*SCHEMAS], default="snapshot")
    options.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    files.check_writable(arguments.output)
    encoded = msgspec.json.encode(schema(arguments.which), order="deterministic")
    files.write(arguments.output, msgspec.json.format(encoded, indent=2) + b"\n")
    return ExitCode.HEALTHY

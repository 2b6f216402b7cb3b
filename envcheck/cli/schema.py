"""`envcheck schema`: the JSON Schema of the Snapshot or of the report."""

from __future__ import annotations

import argparse
import importlib

import msgspec

from ..exit_codes import ExitCode
from . import files, options
from .options import option

_SCHEMAS = {
    "snapshot": "..facts.snapshot",
    "report": "..reports.model",
    "bench": "..reports.bench_model",
    "fleet": "..fleet.reports.as_json",
    "diff": "..reports.diff_model",
}

EPILOG = """\
examples:
  envcheck schema           of what envcheck collect writes
  envcheck schema fleet     of what envcheck fleet doctor --format json writes"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    words = "snapshot (default), report, bench, fleet or diff"
    option(parser, "which", "WHICH", words, nargs="?", choices=[*_SCHEMAS], default="snapshot")
    options.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    files.check_writable(arguments.output)
    schema = importlib.import_module(_SCHEMAS[arguments.which], __package__).schema()
    text = msgspec.json.format(msgspec.json.encode(schema, order="deterministic"), indent=2)
    files.write(arguments.output, text + b"\n")
    return ExitCode.HEALTHY

"""`envcheck schema`: the JSON Schema of the Snapshot or of the report."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

import msgspec

from ..exit_codes import ExitCode
from . import files, options
from .options import option

# The module and the name of each type, and what its JSON is.
_SCHEMAS = {
    "snapshot": ("..facts.snapshot:Snapshot", "A Snapshot of envcheck"),
    "report": ("..reports.model:Report", "The report of envcheck doctor"),
    "bench": ("..reports.bench_model:BenchReport", "The report of envcheck bench"),
    "fleet": ("..fleet.model:FleetResult", "The result of envcheck fleet doctor"),
    "diff": ("..reports.diff_model:DiffReport", "The report of envcheck diff"),
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
    encoded = msgspec.json.encode(schema(arguments.which), order="deterministic")
    files.write(arguments.output, msgspec.json.format(encoded, indent=2) + b"\n")
    return ExitCode.HEALTHY


def schema(which: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that all JSON of this kind obeys."""
    place, title = _SCHEMAS[which]
    module, _, name = place.partition(":")
    described = msgspec.json.schema(getattr(importlib.import_module(module, __package__), name))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **described,
    }

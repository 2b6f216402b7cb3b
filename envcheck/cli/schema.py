"""`envcheck schema`: the JSON Schema of the Snapshot or of the report."""

from __future__ import annotations

import argparse

import msgspec

from ..exit_codes import ExitCode
from . import files

EPILOG = """\
examples:
  envcheck schema           of what envcheck collect writes
  envcheck schema report    of what envcheck doctor --format json writes
  envcheck schema bench     of what envcheck bench --format json writes
  envcheck schema fleet     of what envcheck fleet doctor --format json writes
  envcheck schema diff      of what envcheck diff --format json writes"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "which",
        nargs="?",
        choices=("snapshot", "report", "bench", "fleet", "diff"),
        default="snapshot",
        metavar="WHICH",
        help="snapshot (default), report, bench, fleet or diff",
    )
    files.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    files.check_writable(arguments.output)
    if arguments.which == "snapshot":
        from ..facts import snapshot

        schema = snapshot.schema()
    elif arguments.which == "bench":
        from ..reports import bench_model

        schema = bench_model.schema()
    elif arguments.which == "fleet":
        from ..fleet.reports import as_json

        schema = as_json.schema()
    elif arguments.which == "diff":
        from ..reports import diff_model

        schema = diff_model.schema()
    else:
        from ..reports import model

        schema = model.schema()
    text = msgspec.json.format(msgspec.json.encode(schema, order="deterministic"), indent=2)
    files.write(arguments.output, text + b"\n")
    return ExitCode.HEALTHY

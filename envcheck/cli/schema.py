"""`envcheck schema`: the JSON Schema of the Snapshot or of the report."""

from __future__ import annotations

import argparse

from ..exit_codes import ExitCode
from . import files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "which",
        nargs="?",
        choices=("snapshot", "report"),
        default="snapshot",
        help="default: snapshot",
    )
    files.add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    import msgspec

    files.check_writable(arguments.output)
    if arguments.which == "snapshot":
        from .. import snapshot

        schema = snapshot.schema()
    else:
        from ..reports import json_report

        schema = json_report.schema()
    text = msgspec.json.format(msgspec.json.encode(schema, order="deterministic"), indent=2)
    files.write(arguments.output, text + b"\n")
    return ExitCode.HEALTHY

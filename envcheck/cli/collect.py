"""`envcheck collect`: write a Snapshot."""

from __future__ import annotations

import argparse

from ..exit_codes import ExitCode
from . import files, kernels, sources
from .parser import Parser

EPILOG = """\
examples:
  envcheck collect --output machine.json
  envcheck collect --target ~/venvs/tf --output machine.json
  envcheck collect --target image:REF --output machine.json
  envcheck collect --nvidia-smi their.txt --output machine.json
then, here or elsewhere:
  envcheck doctor --from machine.json"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    where = parser.add_mutually_exclusive_group()
    sources.add_target(where)
    where.add_argument(
        "--nvidia-smi",
        metavar="FILE",
        help="make it of the output of nvidia-smi -q, or nvidia-smi -q -x",
    )
    sources.add_container(parser)
    sources.add_deadline(parser)
    files.add_output(parser)
    kernels.add_arguments(parser)
    parser.add_argument(
        "--no-redact",
        action="store_true",
        help="keep names, serial numbers, UUIDs and home paths (credentials are never kept)",
    )
    parser.rare("--engine", "--entrypoint", "--deadline", "--no-kernels")


def run(arguments: argparse.Namespace) -> int:
    from ..facts import snapshot as snapshots

    wanted = kernels.wanted(arguments)
    files.check_writable(arguments.output)
    if arguments.nvidia_smi is not None:
        kernels.refuse(arguments, "--nvidia-smi")
        sources.refuse_container(arguments, "--nvidia-smi")
        collected = sources.read_nvidia_smi(arguments.nvidia_smi, redact=not arguments.no_redact)
    else:
        collected = sources.live(
            arguments.target,
            engine=arguments.engine,
            entrypoint=arguments.entrypoint,
            redact=not arguments.no_redact,
            deadline=arguments.deadline,
            kernels=wanted,
        )
    files.write(arguments.output, snapshots.dump(collected.snapshot).decode())
    return ExitCode.HEALTHY

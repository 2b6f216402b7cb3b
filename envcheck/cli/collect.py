"""`envcheck collect`: write a Snapshot, or a profile of the machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..exit_codes import ExitCode, UsageError
from . import files, kernels, messages, sources
from .parser import Parser

if TYPE_CHECKING:
    from ..facts.snapshot import Snapshot

EPILOG = """\
examples:
  envcheck collect --output machine.json
  envcheck collect --target ~/venvs/tf --output machine.json
  envcheck collect --target image:REF --output machine.json
  envcheck collect --nvidia-smi their.txt --output machine.json
  envcheck collect --as-profile --output h100.toml
then, here or elsewhere:
  envcheck doctor --from machine.json"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    where = parser.add_mutually_exclusive_group()
    sources.add_target(where)
    where.add_argument(
        "--nvidia-smi",
        metavar="FILE",
        help="convert saved output of nvidia-smi: -q, -q -x, or an error",
    )
    where.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="with --as-profile: use the Snapshot in this file (- is standard input)",
    )
    parser.add_argument(
        "--as-profile",
        action="store_true",
        help="write the machine as a profile, for envcheck doctor --expect",
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
    parser.rare("--engine", "--entrypoint", "--deadline")


def run(arguments: argparse.Namespace) -> int:
    from ..facts import snapshot as snapshots

    wanted = kernels.wanted(arguments)
    files.check_writable(arguments.output)
    if arguments.source is not None:
        if not arguments.as_profile:
            raise UsageError(
                "--from requires --as-profile: without it, collect would only copy the file"
            )
        kernels.refuse(arguments, "--from")
        sources.refuse_container(arguments, "--from")
        given = None if arguments.source == "-" else arguments.source
        files.check_distinct({"--from": given, "--output": arguments.output})
        collected = sources.read_snapshot(arguments.source)
    elif arguments.nvidia_smi is not None:
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
    if arguments.as_profile:
        files.write(arguments.output, _profile(collected.snapshot))
    else:
        text = snapshots.dump(collected.snapshot).decode()
        files.write(arguments.output, text, private=arguments.no_redact)
    return ExitCode.HEALTHY


def _profile(snapshot: Snapshot) -> str:
    """The profile; says so where the machine is none that others should be held against."""
    from ..attributes import profile_writing as writing
    from ..checks.engine import diagnose
    from ..checks.expected.gpus import proven_formats
    from ..facts.view import SnapshotView

    failed = [result.code for result in diagnose(snapshot).results if result.outcome == "fail"]
    if failed:
        messages.say(
            f"this machine is not well ({', '.join(failed[:6])}), and the profile has it as it is:"
            " envcheck doctor tells what is wrong"
        )
    view = SnapshotView(snapshot)
    proven = [set[str](modes) for modes in proven_formats(view).values()]
    return writing.write(view, sorted(set.intersection(*proven)) if proven else [])

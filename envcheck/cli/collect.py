"""`envcheck collect`: write a Snapshot, or a profile of the machine."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .. import collection
from ..exit_codes import ExitCode, UsageError
from . import files, kernels, messages, options, sources
from .options import flag, option
from .parser import Parser

if TYPE_CHECKING:
    from ..facts.snapshot import Snapshot

EPILOG = """\
examples:
  envcheck collect --output machine.json
  envcheck collect --target ~/venvs/tf --output machine.json
  envcheck collect --nvidia-smi their.txt --output machine.json
  envcheck collect --as-profile --output h100.toml
then, here or elsewhere:
  envcheck doctor --from machine.json"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    where = parser.add_mutually_exclusive_group()
    options.add_target(where)
    words = "convert saved output of nvidia-smi: -q, -q -x, or an error"
    option(where, "--nvidia-smi", "FILE", words)
    options.add_from(where, "with --as-profile: use the Snapshot in this file")
    words = "write the machine as a profile, for envcheck doctor --expect"
    flag(parser, "--as-profile", words)
    options.add_container(parser)
    options.add_deadline(parser)
    options.add_output(parser)
    kernels.add_arguments(parser)
    words = "keep names, serial numbers, UUIDs and home paths (credentials are never kept)"
    flag(parser, "--no-redact", words)


def run(arguments: argparse.Namespace) -> int:
    from ..facts import snapshot as snapshots

    wanted = kernels.wanted(arguments)
    files.check_places(arguments, "source", "nvidia_smi")
    for name, given in (("--from", arguments.source), ("--nvidia-smi", arguments.nvidia_smi)):
        if given is not None:
            kernels.refuse(arguments, name)
            options.refuse_container(arguments, name)
    if arguments.source is not None:
        if not arguments.as_profile:
            raise UsageError(
                "--from requires --as-profile: without it, collect would only copy the file"
            )
        collected = sources.read_snapshot(arguments.source)
    elif arguments.nvidia_smi is not None:
        redact = not arguments.no_redact
        collected = collection.collect(nvidia_smi=arguments.nvidia_smi, redact=redact)
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
    """The profile; a warning where the machine is not healthy."""
    from ..attributes import profile_writing as writing
    from ..checks.engine import diagnose
    from ..checks.expected.gpus import proven_formats
    from ..facts.view import SnapshotView

    failed = [result.code for result in diagnose(snapshot).results if result.outcome == "fail"]
    if failed:
        messages.say(
            f"this machine is not healthy ({', '.join(failed[:6])}), and the profile has it as it is:"
            " envcheck doctor shows what is wrong"
        )
    view = SnapshotView(snapshot)
    proven = [set[str](modes) for modes in proven_formats(view).values()]
    return writing.write(view, sorted(set.intersection(*proven)) if proven else [])

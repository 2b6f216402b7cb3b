"""What `envcheck bench` was asked for: checked before anything is looked at."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..exit_codes import UsageError
from . import files, sources

if TYPE_CHECKING:
    from ..bench.baseline import Baseline
    from ..bench.request import BenchRequest


def request(arguments: argparse.Namespace) -> BenchRequest:
    """What was asked for; raises UsageError before anything is looked at."""
    from ..bench.request import BenchRequest, checked

    return checked(
        BenchRequest(
            what=arguments.what,
            batch=arguments.batch,
            repetitions=arguments.rounds or 5,
            gpus=arguments.gpu or [],
        )
    )


def check_files(arguments: argparse.Namespace) -> None:
    if arguments.plan:
        others = ("--save", "--baseline")
        refuse(arguments, "--plan", "with --plan nothing is run", others, running=False)
        if arguments.format == "html":
            raise UsageError("--plan and --format html cannot be used together: text or json")
    given = None if arguments.source == "-" else arguments.source
    if arguments.baseline == "-" == arguments.source:
        raise UsageError("--from - and --baseline - name the same standard input")
    output = arguments.output or "-"
    places = {"--from": given, "--output": output, "--save": arguments.save}
    files.check_distinct(places)
    if arguments.baseline != arguments.source:
        files.check_distinct({**places, "--baseline": arguments.baseline})
    files.check_writable(output)
    files.check_writable(arguments.save, "--save")


_RUNNING = ("--gpu", "--busy-ok", "--batch", "--rounds")


def refuse(
    arguments: argparse.Namespace,
    other: str,
    why: str,
    more: tuple[str, ...],
    *,
    running: bool = True,
) -> None:
    """Raise UsageError for what says how something is run, beside an option with which nothing is."""
    if running and arguments.what:
        raise UsageError(f"{arguments.what[0]} and {other} cannot be used together: {why}")
    for option in (*(_RUNNING if running else ()), *more):
        if getattr(arguments, option[2:].replace("-", "_")) not in (None, False):
            raise UsageError(f"{option} and {other} cannot be used together: {why}")
    if running:
        sources.refuse_container(arguments, other)


def baseline(path: str) -> Baseline:
    from ..bench import baseline_file
    from ..facts.snapshot import LIMIT

    data = sources.read(path, LIMIT)
    if len(data) > LIMIT:
        raise UsageError(f"--baseline {path}: more than {LIMIT >> 20} MiB is no bench's")
    return baseline_file.read(data, path)


def options(arguments: argparse.Namespace) -> list[str]:
    """Those that say how rows are run, as somebody would type them again."""
    found: list[str] = []
    for option in _RUNNING:
        value = getattr(arguments, option[2:].replace("-", "_"))
        if value not in (None, False):
            found.append(option)
            if value is not True:
                found.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
    return found


def number(least: int, most: int) -> Callable[[str], int]:
    """The type of an option that takes a number."""

    def converted(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"{text[:20]!r} is not a number from {least} to {most:,}"
            )
        return int(text)

    return converted

"""What `envcheck bench` was asked for: checked before anything is looked at."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..exit_codes import UsageError
from . import files, options, sources

if TYPE_CHECKING:
    from ..bench.baseline import Baseline
    from ..bench.request import BenchRequest

_RUNNING = ("--gpu", "--busy-ok", "--batch", "--rounds")  # how rows are run


def request(arguments: argparse.Namespace) -> BenchRequest:
    """Raises UsageError."""
    from ..bench.request import BenchRequest, checked

    _refuse_combinations(arguments)
    return checked(
        BenchRequest(
            what=arguments.what,
            batch=arguments.batch,
            repetitions=arguments.rounds or 5,
            gpus=arguments.gpu or [],
        )
    )


def _refuse_combinations(arguments: argparse.Namespace) -> None:
    if arguments.plan:
        _refuse(arguments, "--plan", ("--save", "--baseline"))
    if arguments.source is not None:
        if arguments.what:
            _refuse_one(arguments.what[0], "--from")
        _refuse(arguments, "--from", (*_RUNNING, "--plan"))
        options.refuse_container(arguments, "--from")
    if arguments.baseline == "-" == arguments.source:
        raise UsageError("--from - and --baseline - name the same standard input")
    inputs = ("source",) if arguments.baseline == arguments.source else ("source", "baseline")
    files.check_places(arguments, *inputs)


def _refuse(arguments: argparse.Namespace, other: str, names: tuple[str, ...]) -> None:
    for name in names:
        if _value(arguments, name) not in (None, False):
            _refuse_one(name, other)


def _refuse_one(name: str, other: str) -> None:
    raise UsageError(f"{name} and {other} cannot be used together: with {other} nothing is run")


def _value(arguments: argparse.Namespace, name: str) -> object:
    return getattr(arguments, name[2:].replace("-", "_"))


def baseline(path: str) -> Baseline:
    from ..bench import baseline_file
    from ..facts.snapshot import LIMIT

    data = sources.read(path, LIMIT)
    if len(data) > LIMIT:
        raise UsageError(f"--baseline {path}: more than {LIMIT >> 20} MiB is no bench's")
    return baseline_file.read(data, path)


def run_options(arguments: argparse.Namespace) -> list[str]:
    """Those that say how rows are run, as somebody would type them again."""
    found: list[str] = []
    for name in _RUNNING:
        value = _value(arguments, name)
        if value not in (None, False):
            found.append(name)
            if value is not True:
                found.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
    return found

"""`envcheck soak`: all GPUs under load, every result compared to the bit."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import msgspec

from ..exit_codes import Cannot, CouldNotLook, ExitCode, UsageError
from . import files, kernels, messages, options, sources
from .options import flag, option
from .parser import Parser
from .values import duration

if TYPE_CHECKING:
    from ..collection import Collected
    from ..facts.snapshot import Snapshot
    from ..facts.soak import Soak
    from ..reports.results import ReportedResult
    from .soak_output import SoakOutput

MINUTES = 1440  # records of a soak at most
_BEYOND = 600.0  # seconds for the processes to begin and to end

EPILOG = """\
examples:
  envcheck soak --for 30m              all GPUs, by the default target's cuBLAS
  envcheck soak --for 12h --fail-fast  a night; ends at the first failure
  envcheck soak --for 1h --gpu 3       one GPU, by nvidia-smi's index
  envcheck soak --for 10m --format json  JSON, a line a minute
  envcheck soak --for 2d --save soak.json  and keep its Snapshot
  envcheck doctor --only soak --from soak.json  the result of an earlier soak

exit codes: 0 nothing failed, 1 something did, 2 wrong usage, 3 no GPU can be
used, 4 it could not be judged, 130 ended by Ctrl-C (the result so far is shown)"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    words = "how long: 90s, 30m, 12h, 2d, 1h30m"
    lasting = {"dest": "seconds", "type": duration("30s", "30d"), "required": True}
    option(parser, "--for", "TIME", words, **lasting)
    kernels.add_gpus(parser)
    words = "use the cuBLAS of this environment (default: the active environment's, else that of"
    option(parser, "--target", "WHERE", f"{words} the one installed last, else the driver alone)")
    flag(parser, "--fail-fast", "end at the first minute in which something failed")
    words = "time between two lines (default: 1m, and longer in a soak of more than a day)"
    option(parser, "--every", "TIME", words, type=duration("1s", "1h"))
    options.add_format(parser, json="a line a minute, and one at the end")
    options.add_output(parser)
    options.add_save(parser)


def run(arguments: argparse.Namespace) -> int:
    from .soak_output import SoakOutput

    _check(arguments)
    output = SoakOutput(arguments)
    collected = _soak(arguments, output)
    if output.failed and arguments.fail_fast:
        collected.snapshot = _failed_fast(collected.snapshot)
    snapshot = collected.snapshot
    output.keep(lambda: files.save(arguments, snapshot))
    soak = _of(snapshot)
    results = _judged(snapshot)
    output.keep(lambda: output.end(soak, results, collected.restore))
    if output.lost is not None:
        raise output.lost
    return _exit_code(soak, results)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.every and arguments.seconds > MINUTES * arguments.every:
        least = arguments.seconds / MINUTES
        raise UsageError(f"--every: too short for so long a soak: {least:.0f}s is the least")
    target = arguments.target or ""
    if target.startswith(("image:", "container:")):
        raise UsageError(
            f"--target {target}: a soak runs on the machine itself, not in a container",
            hint="leave out --target: the soak then needs only the driver",
        )
    files.check_places(arguments)


def _soak(arguments: argparse.Namespace, output: SoakOutput) -> Collected:
    from ..collection import SoakWork, Work
    from ..facts.snapshot import MACHINE_SECTIONS

    target, seen = _look(arguments.target)
    _refuse_without_gpus(seen)
    soak = SoakWork(
        seconds=arguments.seconds,
        gpus=sorted(set(arguments.gpu or [])),
        busy_ok=arguments.busy_ok,
        cublas=target is not None,
        required=arguments.target is not None,
        minute=arguments.every or max(60.0, arguments.seconds / MINUTES),
    )
    only = () if target is not None else MACHINE_SECTIONS
    work = Work(seconds=arguments.seconds + _BEYOND, soak=soak)
    return sources.live(target, only=only, seen=seen, work=work, events=output.take, quiet=True)


def _look(target: str | None) -> tuple[str | None, Snapshot]:
    """The target whose cuBLAS may compute, and what was seen; without one, the machine alone."""
    from ..facts.snapshot import MACHINE_SECTIONS

    if target is not None:
        return target, sources.live(target, redact=False).snapshot
    implied, origin = sources.implied_target()
    if implied is not None and not sources.is_container(implied):
        try:
            return implied, sources.live(implied, redact=False).snapshot
        except UsageError as error:
            messages.say(f"{origin} cannot be checked, so the soak uses the driver alone: {error}")
    return None, sources.live(None, redact=False, only=MACHINE_SECTIONS).snapshot


def _refuse_without_gpus(snapshot: Snapshot) -> None:
    from ..facts.base import known

    probe = snapshot.machine.cuda
    if probe is None or probe.facts is None or not known(probe.facts.devices):
        raise Cannot(
            "CUDA lists no GPU on this machine",
            hint="envcheck doctor says why",
        )


def _failed_fast(snapshot: Snapshot) -> Snapshot:
    """The collector knows that it was stopped, but not that a failed minute did it."""
    probe = snapshot.machine.soak
    if probe is None or probe.facts is None or probe.facts.stopped != "user":
        return snapshot
    replace = msgspec.structs.replace
    probe = replace(probe, facts=replace(probe.facts, stopped="fail-fast"))
    return replace(snapshot, machine=replace(snapshot.machine, soak=probe))


def _of(snapshot: Snapshot) -> Soak:
    probe = snapshot.machine.soak
    if probe is None:
        raise CouldNotLook("the soak gave no result")
    if probe.facts is None:
        raise CouldNotLook(f"the soak failed: {probe.reason or probe.outcome}")
    gpus = probe.facts.gpus
    if all(gpu.outcome in ("busy", "not-run") for gpu in gpus):
        why = [gpu.reason for gpu in gpus if gpu.reason] or [probe.reason]
        raise Cannot(f"no GPU could be used: {why[0] or 'none was found'}")
    return probe.facts


def _judged(snapshot: Snapshot) -> list[ReportedResult]:
    from ..checks.engine import diagnose
    from ..reports.results import reported_results

    results = reported_results(diagnose(snapshot, only=["soak"]))
    return [result for result in results if result.area == "soak"]


def _exit_code(soak: Soak, results: list[ReportedResult]) -> int:
    outcomes = {result.outcome for result in results}
    if soak.stopped == "user":
        return ExitCode.INTERRUPTED
    if "fail" in outcomes or soak.stopped == "fail-fast":
        return ExitCode.PROBLEMS
    return ExitCode.COULD_NOT_LOOK if "could-not-run" in outcomes else ExitCode.HEALTHY

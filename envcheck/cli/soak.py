"""`envcheck soak`: all GPUs under load, every result compared to the bit."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..exit_codes import Cannot, CouldNotLook, ExitCode, UsageError
from . import files, messages, sources
from .durations import duration
from .parser import Parser
from .style import style_for

if TYPE_CHECKING:
    from ..collection import Collected
    from ..facts.snapshot import Snapshot
    from ..facts.soak import Soak
    from ..reports.results import ReportedResult

LEAST, MOST = "30s", "30d"
_BEYOND = 600.0  # seconds for the processes to begin and to end

EPILOG = """\
examples:
  envcheck soak --for 30m              all GPUs, by the default target's cuBLAS
  envcheck soak --for 12h --fail-fast  a night; ends at the first failure
  envcheck soak --for 1h --gpu 3       one GPU, by nvidia-smi's index
  envcheck soak --for 10m --format json  JSON, a line a minute
  envcheck soak --for 2d --format html --output soak.html --save soak.json"""

MORE = """\
  envcheck soak --for 1h --target DIR  by that environment's cuBLAS
  envcheck soak --from soak.json       what an earlier one came to

exit codes: 0 nothing failed, 1 something did, 2 wrong usage, 3 no GPU can be
used, 4 it could not be judged, 130 ended by Ctrl-C (what is done is shown)"""


def add_arguments(parser: Parser) -> None:
    parser.epilog, parser.more = EPILOG, MORE
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--for",
        dest="seconds",
        metavar="TIME",
        type=duration(LEAST, MOST),
        help="how long: 90s, 30m, 12h, 2d, 1h30m",
    )
    what.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="show what the soak in this Snapshot came to (- is standard input)",
    )
    parser.add_argument(
        "--gpu",
        metavar="N",
        type=_index,
        action="append",
        default=[],
        help="this GPU, by nvidia-smi's index; more than once for several (default: all)",
    )
    parser.add_argument(
        "--target",
        metavar="WHERE",
        help="use the cuBLAS of this environment (default: the active environment's, else that of the one"
        " installed last, else the driver alone)",
    )
    parser.add_argument("--busy-ok", action="store_true", help="on GPUs that are in use, too")
    parser.add_argument(
        "--fail-fast", action="store_true", help="end at the first minute in which something failed"
    )
    parser.add_argument(
        "--every",
        metavar="TIME",
        type=duration("1s", "1h"),
        default=60.0,
        help="between two lines (default: 1m); of a very long soak the records get longer",
    )
    files.add_format(
        parser, json="a line a minute, and one at the end", html="a page with plots, at the end"
    )
    files.add_output(parser)
    parser.add_argument("--save", metavar="FILE", help="also write the Snapshot")


def _index(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise argparse.ArgumentTypeError(f"{text!r} is not a GPU's number in nvidia-smi: write 0")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    shown = _Shown(arguments)
    failed_fast = False
    if arguments.source is not None:
        collected = sources.read_snapshot(arguments.source)
    else:
        collected = _soak(arguments, shown)
        failed_fast = shown.failed and arguments.fail_fast
    snapshot = _ended(collected.snapshot, failed_fast)
    if arguments.save is not None:
        from ..facts import snapshot as snapshots

        shown.keep(lambda: files.write(arguments.save, snapshots.dump(snapshot), "--save"))
    soak = _of(snapshot, arguments)
    results = _judged(snapshot)
    shown.keep(lambda: shown.end(snapshot, soak, results, collected))
    if shown.lost is not None:
        raise shown.lost
    return _exit_code(soak, results)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.source is not None:
        for option in ("gpu", "target", "busy_ok", "fail_fast"):
            if getattr(arguments, option):
                raise UsageError(
                    f"--{option.replace('_', '-')} and --from cannot be used together:"
                    " with --from nothing runs"
                )
    target = arguments.target or ""
    if target.startswith(("image:", "container:")):
        raise UsageError(
            f"--target {target}: a soak runs on the machine itself, not in a container",
            hint="leave --target out: then it needs nothing but the driver",
        )
    files.check_distinct(
        {
            "--from": None if arguments.source == "-" else arguments.source,
            "--output": arguments.output or "-",
            "--save": arguments.save,
        }
    )
    files.check_writable(arguments.output)
    files.check_writable(arguments.save, "--save")


def _soak(arguments: argparse.Namespace, shown: _Shown) -> Collected:
    from ..collection import SoakWork, Work
    from ..facts.snapshot import MACHINE_SECTIONS

    target, seen = _looked_at(arguments.target)
    only = () if target is not None else MACHINE_SECTIONS
    _refuse_without_gpus(seen)
    work = Work(
        seconds=arguments.seconds + _BEYOND,
        soak=SoakWork(
            seconds=arguments.seconds,
            gpus=sorted(set(arguments.gpu)),
            busy_ok=arguments.busy_ok,
            cublas=target is not None,
            required=arguments.target is not None,
            minute=arguments.every,
        ),
    )
    return sources.live(target, only=only, seen=seen, work=work, events=shown.hear, quiet=True)


def _looked_at(target: str | None) -> tuple[str | None, Snapshot]:
    """The target whose cuBLAS may compute, and what was seen; without one, the machine alone."""
    from ..facts.snapshot import MACHINE_SECTIONS

    if target is None:
        implied, origin = sources.implied_target()
        if implied is not None and not sources.is_container(implied):
            try:
                return implied, sources.live(implied, redact=False).snapshot
            except UsageError as error:
                messages.say(f"{origin} cannot be looked at, so the driver alone computes: {error}")
        return None, sources.live(None, redact=False, only=MACHINE_SECTIONS).snapshot
    return target, sources.live(target, redact=False).snapshot


def _refuse_without_gpus(snapshot: Snapshot) -> None:
    from ..facts.base import known

    probe = snapshot.machine.cuda
    devices = None if probe is None or probe.facts is None else known(probe.facts.devices)
    if not devices:
        raise Cannot(
            "there is no GPU here that CUDA lists, so there is nothing to soak",
            hint="envcheck doctor says why",
        )


def _ended(snapshot: Snapshot, failed_fast: bool) -> Snapshot:
    """What ended it is told as it was: whoever judged the minutes knows, the collector does not."""
    import msgspec

    probe = snapshot.machine.soak
    if not failed_fast or probe is None or probe.facts is None or probe.facts.stopped != "user":
        return snapshot
    facts = msgspec.structs.replace(probe.facts, stopped="fail-fast")
    told = msgspec.structs.replace(probe, facts=facts)
    machine = msgspec.structs.replace(snapshot.machine, soak=told)
    return msgspec.structs.replace(snapshot, machine=machine)


def _of(snapshot: Snapshot, arguments: argparse.Namespace) -> Soak:
    probe = snapshot.machine.soak
    if probe is None:
        if arguments.source is not None:
            raise UsageError(
                f"{arguments.source}: no soak is in it",
                hint="envcheck soak --for 30m --save FILE writes one that has it",
            )
        raise CouldNotLook("nothing came of the soak")
    if probe.facts is None:
        raise CouldNotLook(f"the soak failed: {probe.reason or probe.outcome}")
    ran = [gpu for gpu in probe.facts.gpus if gpu.outcome not in ("busy", "not-run")]
    if not ran:
        why = [gpu.reason for gpu in probe.facts.gpus if gpu.reason] or [probe.reason]
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


class _Shown:
    """What is shown while it runs, and at the end."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.failed = False  # something in a minute did
        self.lost: UsageError | None = None  # the first result that could not be written
        self._arguments = arguments
        self._number = 0
        self._told: list[dict[str, Any]] = []  # of the minute that is not whole yet
        # JSON lines go where the result goes; lines for people where it does not.
        self._json = arguments.format == "json"
        self._file = None if arguments.output in (None, "-") else Path(arguments.output)
        if self._json and self._file is not None and arguments.source is None:
            files.write(arguments.output, "")

    def hear(self, event: dict[str, Any]) -> None:
        """An event of the collector's. Raises Enough where --fail-fast ends it."""
        from ..collection import Enough

        record = event.get("minute")
        if not isinstance(record, dict):
            return
        if record["number"] != self._number:
            self._show()
            self._number = record["number"]
        self._told.append(record)
        if len(self._told) >= record["of"]:
            self._show()
        if self.failed and self._arguments.fail_fast:
            raise Enough

    def _show(self) -> None:
        import msgspec

        from ..checks.soak.minute import failures
        from ..facts.soak import SoakMinute
        from ..reports import soak

        if not self._told:
            return
        rows = []
        for record in self._told:
            index = record.get("index")
            name = f"GPU {index}" if index is not None else str(record.get("gpu"))
            minute = msgspec.convert(record, SoakMinute)
            found = failures(record["outcome"], record.get("reason", ""), minute)
            self.failed = self.failed or bool(found)
            record["failures"] = found
            rows.append((name, minute, found))
        if self._json:
            line = soak.minute_json(self._number, self._told)
            self.keep(lambda: self._write(line))
        else:
            first = rows[0][1]
            text = soak.minute_line(first.began + first.seconds, rows) + "\n"
            if self._arguments.format == "text" and self._file is None:
                self.keep(lambda: files.write(None, text))
            else:
                messages.show(text)
        self._told = []

    def keep(self, write: Callable[[], None]) -> None:
        """Write a result. A full disk ends no soak, and keeps no other result from being written."""
        try:
            write()
        except UsageError as error:
            if self.lost is None:
                self.lost = error
                messages.say(f"{error}; the soak is not ended by that")

    def end(
        self,
        snapshot: Snapshot,
        soak: Soak,
        results: list[ReportedResult],
        collected: Collected,
    ) -> None:
        from ..invocation import in_place
        from ..reports import soak as text

        self._show()
        output = self._arguments.output
        if self._json:
            self._write(text.summary_json(soak, results))
        elif self._arguments.format == "html":
            from ..reports import soak_page

            files.write(output, soak_page.render(soak, results))
        else:
            style = style_for(output)._asdict()
            shown = text.render(
                soak, results, **style, restore=collected.restore, in_place=in_place
            )
            files.write(output, ("" if self._arguments.source else "\n") + shown)

    def _write(self, text: str) -> None:
        if self._file is None:
            files.write(None, text)
        else:
            files.append(self._file, text)

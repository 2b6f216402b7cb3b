"""`envcheck bench`: training as people do it, proven and compared."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .. import json_text
from ..exit_codes import CouldNotLook, ExitCode, UsageError
from . import files, kernels, messages, sources
from .parser import Parser
from .style import style_for

if TYPE_CHECKING:
    from ..bench.baseline import Baseline
    from ..bench.plan import BenchPlan
    from ..bench.records import BenchResult
    from ..bench.request import BenchRequest
    from ..collection import Collected
    from ..facts.snapshot import Snapshot
    from ..reports.bench_model import BenchReport

EPILOG = """\
rows: resnet50, mnist, bert, unet, mlp, parity, shapes, links, allreduce

examples:
  envcheck bench                       what tells most in five minutes
  envcheck bench resnet50              ResNet-50 v1.5: FP32, TF32, AMP, XLA
  envcheck bench resnet50 --plan       its rows and their minutes; runs nothing
  envcheck bench --target ~/venvs/tf --gpu 0,2
  envcheck bench --format html --output bench.html --save well.json
  envcheck bench --baseline well.json  held against that run"""

MORE = """\
  envcheck bench --from bench.json     what was run elsewhere
  envcheck bench parity mnist -v       two kinds of rows, all that is known
  envcheck bench resnet50 --data DIR   with images that are read
  envcheck bench resnet50 --inference --batch 128
  envcheck bench --target image:REF    in a container

exit codes: 0 nothing is slower than it should be, 1 something is, 2 wrong
usage or unreadable input, 3 nothing can run here, 4 nothing could be measured,
130 interrupted: the rows that were done are shown"""

MOST_ROUNDS = 100
MOST_BATCH = 1 << 20


def add_arguments(parser: Parser) -> None:
    parser.epilog, parser.more = EPILOG, MORE
    parser.add_argument(
        "what", nargs="*", metavar="WHAT", help="rows (default: what takes five minutes)"
    )
    where = parser.add_mutually_exclusive_group()
    sources.add_target(where)
    where.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="show the bench in this Snapshot (- is standard input)",
    )
    sources.add_container(parser)
    kernels.add_gpus(parser)
    parser.add_argument(
        "--batch", metavar="N", type=_number(1, MOST_BATCH), help="this batch, per GPU"
    )
    parser.add_argument("--inference", action="store_true", help="forward alone, no training")
    parser.add_argument(
        "--data", metavar="DIR", help="read images from there (default: synthetic, on the GPU)"
    )
    parser.add_argument(
        "--baseline", metavar="FILE", help="hold it against this Snapshot's bench, too"
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=_number(1, MOST_ROUNDS),
        default=None,
        help="repetitions of each row (default: 5)",
    )
    parser.add_argument(
        "--plan", action="store_true", help="show rows, batches and minutes; run nothing"
    )
    files.add_format(parser, json="for programs", html="one page with plots")
    files.add_detail(parser, "all figures for context, all shapes, and evidence")
    files.add_output(parser)
    files.add_save(parser)
    files.add_exit(parser)
    parser.rare(
        *("--engine", "--entrypoint", "--busy-ok", "--rounds", "--inference", "--data"),
        *("--fail-on", "--exit-zero"),
    )


def run(arguments: argparse.Namespace) -> int:
    from ..bench import plan as planning

    request = _request(arguments)
    _check_files(arguments)
    if arguments.source is not None:
        _refuse(arguments, "--from", "with --from nothing is run", ("--plan",))
        collected = sources.read_snapshot(arguments.source)
    baseline = None if arguments.baseline is None else _baseline(arguments.baseline)
    if arguments.source is None:
        seen = sources.live(
            arguments.target,
            engine=arguments.engine,
            entrypoint=arguments.entrypoint,
            redact=False,
            quiet=arguments.quiet,
        ).snapshot
        plan = planning.plan(request, seen)
        if arguments.plan:
            return _show_plan(arguments, plan, seen)
        if baseline is not None:
            from ..bench.baseline_file import refuse_other

            refuse_other(baseline, plan.rows, seen)
        collected = _measure(arguments, request, plan, seen)
    if arguments.save is not None:
        from ..facts import snapshot as snapshots

        files.write(arguments.save, snapshots.dump(collected.snapshot), "--save")
    found = _results(collected.snapshot, baseline, arguments.source)
    report = _report(collected.snapshot, found)
    files.write(arguments.output, _render(arguments, collected, found, report))
    if arguments.source is None and report.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.HEALTHY if arguments.exit_zero else _exit_code(report, arguments.fail_on)


def _request(arguments: argparse.Namespace) -> BenchRequest:
    """What was asked for; raises UsageError before anything is looked at."""
    from ..bench.request import BenchRequest, checked

    if arguments.data is not None:
        _check_folder(arguments.data)
    return checked(
        BenchRequest(
            what=arguments.what,
            batch=arguments.batch,
            inference=arguments.inference,
            folder="" if arguments.data is None else str(Path(arguments.data).absolute()),
            repetitions=arguments.rounds or 5,
            gpus=arguments.gpu or [],
        )
    )


def _check_folder(name: str) -> None:
    folder = Path(name)
    if not folder.is_dir():
        there = "this is no directory" if folder.exists() else "there is no such directory"
        raise UsageError(f"--data {name}: {there}")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UsageError(f"--data {name}: no permission to read it")


def _check_files(arguments: argparse.Namespace) -> None:
    if arguments.plan:
        others = ("--save", "--baseline")
        _refuse(arguments, "--plan", "with --plan nothing is run", others, running=False)
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


_RUNNING = ("--gpu", "--busy-ok", "--batch", "--inference", "--data", "--rounds")


def _refuse(
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


def _baseline(path: str) -> Baseline:
    from ..bench import baseline_file
    from ..facts.snapshot import LIMIT

    data = sources.read(path, LIMIT)
    if len(data) > LIMIT:
        raise UsageError(f"--baseline {path}: more than {LIMIT >> 20} MiB is no bench's")
    return baseline_file.read(data, path)


def _show_plan(arguments: argparse.Namespace, plan: BenchPlan, seen: Snapshot) -> int:
    if arguments.format == "json":
        files.write(arguments.output, json_text.render(plan))
        return ExitCode.HEALTHY
    from ..reports import bench_plan

    style = style_for(arguments.output)
    files.write(arguments.output, bench_plan.render(plan, seen, **style._asdict()))
    return ExitCode.HEALTHY


def _options(arguments: argparse.Namespace) -> list[str]:
    """Those that say how rows are run, as somebody would type them again."""
    told: list[str] = []
    for option in _RUNNING:
        value = getattr(arguments, option[2:].replace("-", "_"))
        if value is True:
            told.append(option)
        elif value not in (None, False):
            shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            told += [option, shown]
    return told


def _measure(
    arguments: argparse.Namespace, request: BenchRequest, plan: BenchPlan, seen: Snapshot
) -> Collected:
    """Run the rows; tells on standard error what runs."""
    import sys
    from typing import Any

    from ..bench.models import unit
    from ..collection import BenchWork, Kernels, Work
    from ..reports.bench_progress import BenchProgress

    work = Work(
        seconds=plan.deadline,
        bench=BenchWork(
            asked=request.what,
            options=_options(arguments),
            rows=plan.rows,
            repetitions=request.repetitions,
            seconds=plan.repetition_seconds,
            warm_up=plan.warm_up_seconds,
            busy_ok=arguments.busy_ok,
            folder=request.folder,
        ),
    )
    linked = None
    if plan.systems:
        linked = Kernels(
            products=False,
            systems=plan.systems,
            by_size=True,
            gpus=request.gpus,
            busy_ok=arguments.busy_ok,
        )
    progress = BenchProgress({row.name: unit(row.model) for row in plan.rows}, plan.seconds)
    told = not arguments.quiet and not sys.stderr.isatty()

    def heard(record: dict[str, Any]) -> None:
        line = progress.heard(record)
        if line and told:
            messages.say(line)

    return sources.live(
        arguments.target,
        engine=arguments.engine,
        entrypoint=arguments.entrypoint,
        quiet=arguments.quiet,
        seen=seen,
        work=work,
        kernels=linked,
        events=heard,
        doing=progress.text,
    )


def _results(snapshot: Snapshot, baseline: Baseline | None, source: str | None) -> BenchResult:
    from ..bench.results import results

    found = results(snapshot, baseline)
    if found is not None:
        return found
    if source is not None:
        raise UsageError(
            f"{source}: this Snapshot has no bench",
            hint="envcheck bench --save FILE writes one with it",
        )
    probe = None if snapshot.target is None else snapshot.target.bench
    why = "" if probe is None else f": {probe.reason or probe.outcome}"
    raise CouldNotLook(f"nothing came of the bench{why}")


def _report(snapshot: Snapshot, found: BenchResult) -> BenchReport:
    from ..bench.request import SYSTEMS
    from ..checks.engine import diagnose
    from ..checks.registry import all_systems, areas
    from ..findings.model import Diagnosis
    from ..reports import bench_model

    checks = all_systems()
    systems = [name for what in found.bench.asked for name in SYSTEMS.get(what, ())]
    wanted = [check.code for name in systems for check in checks.get(name, ())]
    if bench_model.AREA in areas():
        wanted.append(bench_model.AREA)
    diagnosis = diagnose(snapshot, wanted) if wanted else Diagnosis([])
    return bench_model.build(snapshot, found, diagnosis)


def _render(
    arguments: argparse.Namespace, collected: Collected, found: BenchResult, report: BenchReport
) -> str:
    from ..invocation import in_place
    from ..reports import bench

    if arguments.format == "json":
        return json_text.render(report)
    if arguments.format == "html":
        from ..reports import bench_page

        return bench_page.render(report, found, collected.snapshot)
    style = style_for(arguments.output)
    if arguments.quiet:
        return bench.brief(report, **style._asdict())
    return bench.render(
        report,
        found,
        collected.snapshot,
        **style._asdict(),
        restore=collected.restore,
        in_place=in_place,
        elsewhere=arguments.source is not None,
        verbose=arguments.verbose,
    )


def _exit_code(report: BenchReport, fail_on: str) -> ExitCode:
    outcomes = [one.outcome for one in (*report.results, *report.systems)]
    warned = "warn" in [*outcomes, *(one.result.verdict for one in report.rows)]
    if report.status == "problems" or (fail_on == "warn" and warned):
        return ExitCode.PROBLEMS
    return ExitCode.COULD_NOT_LOOK if report.status == "could-not-look" else ExitCode.HEALTHY


def _number(least: int, most: int) -> Callable[[str], int]:
    """The type of an option that takes a number."""

    def converted(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"{text[:20]!r} is not a number from {least} to {most:,}"
            )
        return int(text)

    return converted

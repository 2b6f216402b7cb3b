"""`envcheck bench`: training as people do it, proven and compared."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import TYPE_CHECKING, Any

from .. import json_text
from ..exit_codes import CouldNotLook, ExitCode, UsageError
from . import bench_request, files, kernels, messages, options, sources
from .options import flag, option
from .parser import Parser
from .style import style_for
from .values import number

if TYPE_CHECKING:
    from ..bench.plan import BenchPlan
    from ..bench.records import BenchResult
    from ..bench.request import BenchRequest
    from ..collection import Collected
    from ..facts.snapshot import Snapshot
    from ..reports.bench_model import BenchReport

EPILOG = """\
rows: resnet50, mnist, bert, unet, mlp

examples:
  envcheck bench                       the most informative rows (5 minutes)
  envcheck bench resnet50 --plan       its rows and their minutes; runs nothing
  envcheck bench --target ~/venvs/tf --gpu 0,2
  envcheck bench --save good.json      and keep its Snapshot
  envcheck bench --baseline good.json  compared with that run
  envcheck bench --from bench.json     a result from another machine

exit codes: 0 nothing is slower than it should be, 1 something is, 2 wrong
usage or unreadable input, 3 nothing can run here, 4 nothing could be measured,
130 interrupted: the finished rows are shown"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    words = "rows to run (default: those that fit into five minutes)"
    option(parser, "what", "WHAT", words, nargs="*")
    where = parser.add_mutually_exclusive_group()
    options.add_target(where)
    options.add_from(where, "show the bench in this Snapshot")
    options.add_container(parser)
    kernels.add_gpus(parser)
    option(parser, "--batch", "N", "batch size per GPU", type=number(1, 1 << 20))
    option(parser, "--baseline", "FILE", "also compare with the bench in this Snapshot")
    option(parser, "--rounds", "N", "repetitions of each row (default: 5)", type=number(1, 100))
    flag(parser, "--plan", "show rows, batches and minutes; run nothing")
    options.add_format(parser, json="for programs", html="a page")
    options.add_detail(parser, "evidence, and the machine in full")
    options.add_output(parser)
    options.add_save(parser)
    options.add_exit(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..bench.results import results
    from ..checks.engine import diagnose
    from ..reports import bench, bench_model

    request = bench_request.request(arguments)
    if arguments.source is not None:
        collected = sources.read_snapshot(arguments.source)
    baseline = None if arguments.baseline is None else bench_request.baseline(arguments.baseline)
    if arguments.source is None:
        from ..bench import plan as planning
        from ..bench.baseline_file import refuse_other

        seen = _look(arguments, redact=False).snapshot
        plan = planning.plan(request, seen)
        if arguments.plan:
            files.show(arguments, plan, functools.partial(bench.plan, snapshot=seen))
            return ExitCode.HEALTHY
        if baseline is not None:
            refuse_other(baseline, plan.rows, seen)
        collected = _measure(arguments, request, plan, seen)
    files.save(arguments, collected.snapshot)
    found = results(collected.snapshot, baseline)
    if found is None:
        raise _nothing(collected.snapshot, arguments.source)
    diagnosis = diagnose(collected.snapshot, [bench_model.AREA])
    report = bench_model.build(collected.snapshot, found, diagnosis)
    files.write(arguments.output, _rendered(arguments, collected, found, report))
    if arguments.source is None and report.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.HEALTHY if arguments.exit_zero else _exit_code(report, arguments.fail_on)


def _look(arguments: argparse.Namespace, **more: Any) -> Collected:
    return sources.live(
        arguments.target,
        engine=arguments.engine,
        entrypoint=arguments.entrypoint,
        quiet=arguments.quiet,
        **more,
    )


def _measure(
    arguments: argparse.Namespace, request: BenchRequest, plan: BenchPlan, seen: Snapshot
) -> Collected:
    """Run the rows; what goes on is on standard error."""
    from ..bench.models import unit
    from ..collection import BenchWork, Work
    from ..reports.bench_progress import BenchProgress
    from ..reports.plain import duration, number_of

    bench = BenchWork(
        asked=request.what,
        options=bench_request.run_options(arguments),
        rows=plan.rows,
        repetitions=request.repetitions,
        seconds=plan.repetition_seconds,
        warm_up=plan.warm_up_seconds,
        busy_ok=arguments.busy_ok,
        left_out=plan.left_out,
    )
    progress = BenchProgress({row.name: unit(row.model) for row in plan.rows}, request.repetitions)
    in_lines = not arguments.quiet and not sys.stderr.isatty()
    if in_lines:
        messages.say(f"{number_of(len(plan.rows), 'row')}, about {duration(plan.seconds)}")

    def show(event: dict[str, Any]) -> None:
        line = progress.take(event)
        if line and in_lines:
            messages.say(line)

    work = Work(seconds=plan.deadline, bench=bench)
    return _look(arguments, seen=seen, work=work, events=show, doing=progress.text)


def _nothing(snapshot: Snapshot, source: str | None) -> Exception:
    """Why there is no bench to show."""
    if source is not None:
        return UsageError(
            f"{source}: this Snapshot has no bench",
            hint="envcheck bench --save FILE writes one that has",
        )
    probe = None if snapshot.target is None else snapshot.target.bench
    why = "" if probe is None else f": {probe.reason or probe.outcome}"
    return CouldNotLook(f"nothing came of the bench{why}")


def _rendered(
    arguments: argparse.Namespace, collected: Collected, found: BenchResult, report: BenchReport
) -> str:
    from ..invocation import in_place
    from ..reports import bench, bench_page

    if arguments.format == "json":
        return json_text.render(report)
    if arguments.format == "html":
        return bench_page.render(report, found, collected.snapshot)
    style = style_for(arguments.output)._asdict()
    if arguments.quiet:
        return bench.brief(report, **style)
    more = {"elsewhere": arguments.source is not None, "verbose": arguments.verbose}
    more |= {"restore": collected.restore, "in_place": in_place}
    return bench.render(report, found, collected.snapshot, **style, **more)


def _exit_code(report: BenchReport, fail_on: str) -> ExitCode:
    from ..reports.results import fails

    slow_row = any(one.result.verdict == "warn" for one in report.rows)
    failed = report.status == "problems" or (fail_on == "warn" and slow_row)
    if failed or any(fails(one, fail_on) for one in report.results):
        return ExitCode.PROBLEMS
    return ExitCode.COULD_NOT_LOOK if report.status == "could-not-look" else ExitCode.HEALTHY

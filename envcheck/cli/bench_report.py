"""What `envcheck bench` shows of what was run or planned, and its exit code."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .. import json_text
from ..exit_codes import CouldNotLook, ExitCode, UsageError
from . import files
from .style import style_for

if TYPE_CHECKING:
    from ..bench.baseline import Baseline
    from ..bench.plan import BenchPlan
    from ..bench.records import BenchResult
    from ..collection import Collected
    from ..facts.snapshot import Snapshot
    from ..reports.bench_model import BenchReport


def show_plan(arguments: argparse.Namespace, plan: BenchPlan, seen: Snapshot) -> int:
    if arguments.format == "json":
        files.write(arguments.output, json_text.render(plan))
        return ExitCode.HEALTHY
    from ..reports import bench

    style = style_for(arguments.output)
    files.write(arguments.output, bench.plan(plan, seen, **style._asdict()))
    return ExitCode.HEALTHY


def results(snapshot: Snapshot, baseline: Baseline | None, source: str | None) -> BenchResult:
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


def report(snapshot: Snapshot, found: BenchResult) -> BenchReport:
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


def render(
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


def exit_code(report: BenchReport, fail_on: str) -> ExitCode:
    outcomes = [one.outcome for one in (*report.results, *report.systems)]
    warned = "warn" in [*outcomes, *(one.result.verdict for one in report.rows)]
    if report.status == "problems" or (fail_on == "warn" and warned):
        return ExitCode.PROBLEMS
    return ExitCode.COULD_NOT_LOOK if report.status == "could-not-look" else ExitCode.HEALTHY

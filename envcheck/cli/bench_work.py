"""Runs the rows of `envcheck bench`, and tells on standard error what goes on."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from . import bench_request, messages, sources

if TYPE_CHECKING:
    from ..bench.plan import BenchPlan
    from ..bench.request import BenchRequest
    from ..collection import Collected
    from ..facts.snapshot import Snapshot


def measure(
    arguments: argparse.Namespace, request: BenchRequest, plan: BenchPlan, seen: Snapshot
) -> Collected:
    """Run the rows; tells on standard error what runs."""
    from ..bench.models import unit
    from ..collection import BenchWork, Kernels, Work
    from ..reports.bench_progress import BenchProgress, duration
    from ..reports.plain import number_of

    work = Work(
        seconds=plan.deadline,
        bench=BenchWork(
            asked=request.what,
            options=bench_request.options(arguments),
            rows=plan.rows,
            repetitions=request.repetitions,
            seconds=plan.repetition_seconds,
            warm_up=plan.warm_up_seconds,
            busy_ok=arguments.busy_ok,
            folder=request.folder,
            left_out=plan.left_out,
        ),
    )
    linked = None
    if plan.systems:
        linked = Kernels(
            products=False,
            systems=plan.systems,
            sweep=True,
            gpus=request.gpus,
            busy_ok=arguments.busy_ok,
        )
    progress = BenchProgress({row.name: unit(row.model) for row in plan.rows}, plan.seconds)
    told = not arguments.quiet and not sys.stderr.isatty()
    if told and plan.rows:
        messages.say(f"{number_of(len(plan.rows), 'row')}, about {duration(plan.seconds)}")

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

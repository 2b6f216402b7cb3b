"""`envcheck bench`: training as people do it, proven and compared."""

from __future__ import annotations

import argparse

from ..exit_codes import CouldNotLook, ExitCode
from . import files, sources
from .parser import Parser

EPILOG = """\
examples:
  envcheck bench                   what tells most in five minutes
  envcheck bench resnet50          one of its rows"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("what", nargs="*", metavar="WHAT", help="resnet50, mlp, …")
    sources.add_target(parser)
    sources.add_container(parser)
    files.add_output(parser)
    parser.add_argument("--save", metavar="FILE", help="keep the Snapshot, too")


def run(arguments: argparse.Namespace) -> int:
    from ..bench import plan as planning
    from ..bench.request import BenchRequest
    from ..bench.results import results
    from ..collection import BenchWork, Kernels, Work
    from ..facts import snapshot as snapshots
    from ..reports import bench

    request = BenchRequest(what=arguments.what)
    seen = sources.live(arguments.target, redact=False).snapshot
    plan = planning.plan(request, seen)
    work = Work(
        seconds=plan.deadline,
        bench=BenchWork(
            asked=request.what,
            rows=plan.rows,
            repetitions=request.repetitions,
            seconds=plan.repetition_seconds,
            folder=request.folder,
        ),
    )
    kernels = None
    if plan.systems:
        kernels = Kernels(products=False, systems=plan.systems, gpus=request.gpus)
    collected = sources.live(arguments.target, work=work, seen=seen, kernels=kernels)
    if arguments.save is not None:
        files.write(arguments.save, snapshots.dump(collected.snapshot), "--save")
    result = results(collected.snapshot)
    if result is None:
        raise CouldNotLook("nothing came of the bench")
    files.write(arguments.output, bench.render(result))
    return ExitCode.HEALTHY

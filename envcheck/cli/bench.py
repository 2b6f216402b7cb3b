"""`envcheck bench`: training as people do it, proven and compared."""

from __future__ import annotations

import argparse

from ..exit_codes import ExitCode
from . import bench_report, bench_request, bench_work, files, kernels, sources
from .parser import Parser

EPILOG = """\
rows: resnet50, mnist, bert, unet, mlp, parity, shapes, links, allreduce

examples:
  envcheck bench                       the most telling rows, in five minutes
  envcheck bench resnet50              ResNet-50 v1.5: FP32, TF32, AMP, XLA
  envcheck bench resnet50 --plan       its rows and their minutes; runs nothing
  envcheck bench --target ~/venvs/tf --gpu 0,2
  envcheck bench --format html --output bench.html --save good.json
  envcheck bench --baseline good.json  compared with that run"""

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
        "--batch", metavar="N", type=bench_request.number(1, MOST_BATCH), help="this batch, per GPU"
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
        type=bench_request.number(1, MOST_ROUNDS),
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

    request = bench_request.request(arguments)
    bench_request.check_files(arguments)
    if arguments.source is not None:
        bench_request.refuse(arguments, "--from", "with --from nothing is run", ("--plan",))
        collected = sources.read_snapshot(arguments.source)
    baseline = None if arguments.baseline is None else bench_request.baseline(arguments.baseline)
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
            return bench_report.show_plan(arguments, plan, seen)
        if baseline is not None:
            from ..bench.baseline_file import refuse_other

            refuse_other(baseline, plan.rows, seen)
        collected = bench_work.measure(arguments, request, plan, seen)
    if arguments.save is not None:
        from ..facts import snapshot as snapshots

        files.write(arguments.save, snapshots.dump(collected.snapshot), "--save")
    found = bench_report.results(collected.snapshot, baseline, arguments.source)
    report = bench_report.report(collected.snapshot, found)
    files.write(arguments.output, bench_report.render(arguments, collected, found, report))
    if arguments.source is None and report.interrupted:
        return ExitCode.INTERRUPTED
    return (
        ExitCode.HEALTHY
        if arguments.exit_zero
        else bench_report.exit_code(report, arguments.fail_on)
    )

"""What a bench's rows mean: rates, speed-ups, shares of what should be. Checks judge it, reports show it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import msgspec

from ..facts.base import known
from ..facts.bench import Bench, BenchRow, Repetition, RowRun
from ..facts.gpu import Gpu
from ..facts.missing import CannotJudge
from ..facts.snapshot import Snapshot
from ..facts.view import SnapshotView
from .baseline import Baseline, held_against
from .models import unit
from .peak import utilisation
from .peers import peer_reference, scaling
from .places import BenchGpu, bench_gpu
from .proof import prove
from .records import BenchResult, ReferenceRate, RowRate, RowResult
from .references import references
from .suspects import suspect
from .verdict import is_unsteady, judged

EPOCH = 60_000  # images of mnist
_MOST_RATE = 1e15


def results(snapshot: Snapshot, baseline: Baseline | None = None) -> BenchResult | None:
    """None where the Snapshot has no bench. Raises UsageError for a baseline of something else."""
    bench = _bench(snapshot)
    if bench is None:
        return None
    facts = gpus_of(snapshot)
    gpus = {address: one for address, gpu in facts.items() if (one := bench_gpu(gpu)) is not None}
    cpu = cpu_of(snapshot)
    rows = [_measured(run, gpus, bench.rows, cpu) for run in bench.rows]
    rows = [_sped_up(one, rows) for one in rows]
    found = BenchResult(
        bench=bench,
        on_cpu=bool(rows) and not any(run.row.gpus for run in bench.rows),
        rows=rows,
        baseline=baseline.name if baseline is not None else "",
    )
    own: Mapping[str, ReferenceRate] = {}
    if baseline is not None and any(one.rate is not None for one in rows):
        own = held_against(rows, baseline)
    judged_rows = [_judged(one, rows, gpus, facts, own.get(one.run.row.name)) for one in rows]
    jobs = [scaling(one, rows, _of(one.run.row, gpus)) for one in rows]
    return msgspec.structs.replace(
        found, rows=judged_rows, scaling=[job for job in jobs if job is not None]
    )


def _bench(snapshot: Snapshot) -> Bench | None:
    probe = None if snapshot.target is None else snapshot.target.bench
    return None if probe is None else probe.facts


def gpus_of(snapshot: Snapshot) -> dict[str, Gpu]:
    """As the target's processes see them, by PCI address."""
    try:
        seen = SnapshotView(snapshot).seen_gpus
    except CannotJudge:
        return {}
    return {address: gpu for gpu in seen if (address := known(gpu.pci_address))}


def cpu_of(snapshot: Snapshot) -> str:
    """The CPU's name; "" where it is not known."""
    host = snapshot.machine.host
    return "" if host is None or host.facts is None else known(host.facts.cpu_model) or ""


def _of(row: BenchRow, gpus: Mapping[str, BenchGpu]) -> list[BenchGpu]:
    return [gpus[address] for address in row.gpus if address in gpus]


def _measured(
    run: RowRun, gpus: Mapping[str, BenchGpu], runs: Sequence[RowRun], cpu: str
) -> RowResult:
    """What the row's own facts say."""
    here = _of(run.row, gpus)
    found = rate(run)
    proven = prove(run, runs)
    used = utilisation(run.row, here, found.median) if found is not None else None
    epoch = None
    if found is not None and run.row.model == "mnist":
        epoch = EPOCH / found.median
    return RowResult(
        run=run,
        gpu_names=[gpus[address].name if address in gpus else "" for address in run.row.gpus],
        cpu="" if run.row.gpus else cpu,
        rate=found,
        epoch_seconds=epoch,
        proof=proven.proof,
        proof_words=proven.words,
        utilisation=None if used is None else used.share,
        utilisation_words="" if used is None else used.words,
        unsteady=found is not None and is_unsteady(found, bool(run.row.gpus)),
    )


def _sped_up(one: RowResult, rows: Sequence[RowResult]) -> RowResult:
    """With its speed-up, where it is proven engaged and what it is faster than was measured."""
    if one.proof != "engaged" or one.rate is None:
        return one
    for precision in ("fp32", "tf32") if one.run.row.precision != "fp32" else ("fp32",):
        for other in rows:
            if other is one or other.rate is None or other.proof == "not-engaged":
                continue
            if precision == "tf32" and other.proof != "engaged":
                continue
            if _is_base(other.run.row, one.run.row, precision):
                factor = one.rate.median / other.rate.median
                return msgspec.structs.replace(
                    one,
                    speed_up=factor if _apart(one.rate, other.rate) else None,
                    against=other.run.row.name,
                )
    return one


def _apart(one: RowRate, other: RowRate) -> bool:
    """Whether all repetitions of the one are faster, or slower, than all of the other: no noise."""
    return min(one.repetitions, other.repetitions) > 1 and (
        one.least > other.most or one.most < other.least
    )


def _is_base(base: BenchRow, row: BenchRow, precision: str) -> bool:
    """Whether a row is the other without its acceleration: in FP32 (or TF32), not compiled."""
    if base.precision != precision or (row.precision, row.compiled) == (precision, base.compiled):
        return False
    if base.compiled and row.style != "jax":
        return False
    same = ("model", "style", "batch", "image", "length", "small", "gpus", "together")
    return all(getattr(base, name) == getattr(row, name) for name in same)


def _judged(
    one: RowResult,
    rows: Sequence[RowResult],
    gpus: Mapping[str, BenchGpu],
    facts: Mapping[str, Gpu],
    own: ReferenceRate | None,
) -> RowResult:
    """With what it is held against, and what follows."""
    if one.rate is None:
        return one
    found = references(one.run.row, _of(one.run.row, gpus))
    peer = peer_reference(one, rows)
    found = [*([own] if own else []), *([peer] if peer else []), *found]
    verdict = judged(one.rate, found)
    first = suspect(one.run, facts)
    slow = verdict.verdict in ("warn", "fail") or one.unsteady or first.kind == "neighbour"
    return msgspec.structs.replace(
        one,
        references=found,
        verdict=verdict.verdict,
        verdict_by=verdict.by,
        verdict_words=verdict.words,
        share=verdict.share,
        suspect=first.words if slow else "",
        suspect_kind=first.kind if slow else "",
    )


def rate(run: RowRun) -> RowRate | None:
    """The row's rate by its repetitions; None without any."""
    gpus = max(1, len(run.row.gpus))
    rates = [one for each in run.repetitions if (one := _rate(each, run.row.batch * gpus)) > 0]
    if not rates:
        return None
    return RowRate(
        median=statistics.median(rates),
        least=min(rates),
        most=max(rates),
        repetitions=len(rates),
        unit=unit(run.row.model),
    )


def _rate(one: Repetition, samples: int) -> float:
    """0 for a repetition that tells none: a Snapshot may come from anybody."""
    done = max(0, one.steps - max(0, one.skipped))
    found = done * samples / one.seconds if one.seconds > 0 else 0.0
    return found if found < _MOST_RATE else 0.0

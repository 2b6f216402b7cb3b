"""The report of `envcheck bench`: its rows with what is needed to repeat them, and a verdict.

It is made from the Snapshot and what was judged of it alone: `envcheck bench --from FILE` gives byte for byte
what the live run gave.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

import msgspec

from .. import __version__
from ..bench.records import BenchResult, RowResult, ScalingResult
from ..facts.base import known
from ..facts.bench import Bench, LeftOut
from ..facts.snapshot import Snapshot
from ..facts.view import or_else, view_of
from ..findings.model import Diagnosis, Outcome
from .bench_words import OUTCOMES
from .machine import MachineDescription, TargetDescription, describe_machine, describe_target
from .plain import number_of
from .results import ReportedResult, reported_results

SCHEMA = 2
AREA = "bench"
SMALL = "On a CPU: small sizes, which show that all of it works and say nothing about a GPU."

BenchStatus = Literal["problems", "could-not-look", "healthy"]


class RowReport(msgspec.Struct, frozen=True, kw_only=True):
    """One row: what was measured and judged."""

    name: str
    gpus: list[str]  # as nvidia-smi numbers them, else their PCI addresses; none: the CPU
    result: RowResult
    framework: str  # its version, "" where it is not known


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `envcheck bench` says. status: "problems" where a check failed, else "could-not-look" where no
    row was measured, else "healthy". outcome: of its verdict, which is one line. note: a warning about the
    machine, or "". results: the checks that judge a bench."""

    schema: int
    simulated: str
    envcheck: str
    status: BenchStatus
    outcome: Outcome
    verdict: str
    note: str
    machine: MachineDescription
    target: TargetDescription | None
    asked: list[str]
    began: str
    seconds: float
    interrupted: bool
    busy_ok: bool
    inside: str
    settings: dict[str, str]
    command: str
    rows: list[RowReport]
    left_out: list[LeftOut]
    scaling: list[ScalingResult]
    baseline: str
    results: list[ReportedResult]


# What stands in it as in the facts.
_OF_BENCH = ({*Bench.__struct_fields__} & {*BenchReport.__struct_fields__}) - {"rows"}


def build(snapshot: Snapshot, found: BenchResult, diagnosis: Diagnosis) -> BenchReport:
    """The report on a Snapshot with a bench."""
    bench = found.bench
    machine = describe_machine(snapshot)
    names = gpu_names(snapshot)
    results = [one for one in reported_results(diagnosis) if one.area == AREA]
    status, verdict = _status(found, results), _verdict(found, results)
    if bench.interrupted and measured(found):
        verdict += f"; interrupted after {number_of(len(measured(found)), 'row')}"
    return BenchReport(
        schema=SCHEMA,
        simulated=snapshot.simulated,
        envcheck=__version__,
        status=status,
        outcome=_outcome(status, found, results),
        verdict=verdict,
        note=SMALL if found.on_cpu else "",
        machine=machine,
        target=describe_target(snapshot.target),
        command=command_of(bench, snapshot),
        rows=[
            RowReport(
                name=row.run.row.name,
                gpus=[names.get(address, address) for address in row.run.row.gpus],
                result=row,
                framework=known(row.run.framework_version) or "",
            )
            for row in found.rows
        ],
        scaling=found.scaling,
        baseline=found.baseline,
        results=results,
        **{name: getattr(bench, name) for name in _OF_BENCH},
    )


def gpu_names(snapshot: Snapshot) -> dict[str, str]:
    """nvidia-smi's number of the GPU at each PCI address."""
    gpus = or_else(lambda: view_of(snapshot).seen_gpus, None) or []
    numbered = [(known(gpu.pci_address), known(gpu.index)) for gpu in gpus]
    return {address: str(index) for address, index in numbered if address and index is not None}


def command_of(bench: Bench, snapshot: Snapshot) -> str:
    """What runs the same rows again on this target."""
    words = ["envcheck", "bench", *bench.asked, *bench.options]
    target = snapshot.target
    if target is not None:
        kind, _, place = target.location.partition(":")
        words += ["--target", place if kind == "path" else target.location]
    if bench.busy_ok and "--busy-ok" not in words:
        words.append("--busy-ok")
    return shlex.join(words)


def measured(found: BenchResult) -> list[RowResult]:
    """Rows of which something came."""
    return [one for one in found.rows if one.rate is not None]


def _status(found: BenchResult, results: Sequence[ReportedResult]) -> BenchStatus:
    outcomes = {one.outcome for one in results} | {one.verdict for one in found.rows}
    if "fail" in outcomes:
        return "problems"
    if not measured(found) and found.rows and not found.bench.interrupted:
        return "could-not-look"
    return "could-not-look" if "could-not-run" in outcomes else "healthy"


def _outcome(status: BenchStatus, found: BenchResult, results: Sequence[ReportedResult]) -> Outcome:
    if status != "healthy":
        return "fail" if status == "problems" else "could-not-run"
    verdicts = {one.verdict for one in found.rows} | {one.outcome for one in results}
    return "warn" if "warn" in verdicts else "pass"


def _verdict(found: BenchResult, results: Sequence[ReportedResult]) -> str:
    """What matters most, and what it rests on."""
    for outcome, words in (("fail", "problem"), ("warn", "warning")):
        wrong = [
            finding.headline or finding.message
            for one in results
            for finding in one.findings
            if finding.level == outcome and not one.consequence_of
        ]
        wrong += [
            f"{one.run.row.name}: {one.verdict_words or 'slower than expected'}"
            for one in found.rows
            if one.verdict == outcome and (not results or one.verdict_by == "baseline")
        ]
        if wrong:
            return f"{number_of(len(wrong), words)}: {wrong[0]}"
    done = measured(found)
    if not done and (found.bench.interrupted or not found.rows):
        return "interrupted before a row was measured"
    if not done:
        first = found.rows[0].run
        parts = ("nothing was measured", first.row.name, OUTCOMES[first.outcome], first.reason)
        return ": ".join(filter(None, parts))
    count = number_of(len(done), "row")
    if found.on_cpu:
        return f"{count} measured: on a CPU, without a reference to compare with"
    if passed := sum(one.verdict == "pass" for one in done):
        return f"as fast as expected: {passed} of {count} held against a figure that fits"
    return f"{count} measured: no figure is known that fits to judge them by"

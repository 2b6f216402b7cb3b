"""The report of `envcheck bench`: its rows with what is needed to repeat them, and a verdict.

It is made from the Snapshot and what was judged of it alone: `envcheck bench --from FILE` gives byte for byte
what the live run gave.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from .. import __version__
from ..bench.records import BenchResult, RowResult, ScalingResult
from ..bench.shapes import ShapesResult
from ..bench.sizes import SizeSeries
from ..facts.base import known
from ..facts.bench import Bench, LeftOut
from ..facts.missing import CannotJudge
from ..facts.snapshot import Snapshot
from ..facts.view import view_of
from ..findings.model import Diagnosis
from .bench_words import outcome_of
from .machine import MachineDescription, TargetDescription, describe_machine, describe_target
from .model import was_left_out
from .plain import number_of
from .results import ReportedResult, reported_results

SCHEMA = 1
AREA = "bench"
SYSTEM_AREAS = ("memory", "acceleration")
SMALL = "On a CPU: small sizes, which show that all of it works and say nothing about a GPU."

BenchStatus = Literal["problems", "could-not-look", "healthy"]


class RowReport(msgspec.Struct, frozen=True, kw_only=True):
    """One row: what was measured and judged, and what is needed to measure it again."""

    name: str
    gpus: list[str]  # as nvidia-smi numbers them, else their PCI addresses; none: the CPU
    result: RowResult
    framework: str  # "" where it is not known
    driver: str
    settings: dict[str, str]
    command: str


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `envcheck bench` says.

    status: "problems" where a check failed, else "could-not-look" where no row was measured, else
    "healthy". note: what the machine is, where it is none for figures; "" otherwise. results: the checks
    that judge a bench.
    """

    schema: int
    simulated: str
    envcheck: str
    status: BenchStatus
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
    driver: str
    settings: dict[str, str]
    command: str
    rows: list[RowReport]
    left_out: list[LeftOut]
    scaling: list[ScalingResult]
    shapes: list[ShapesResult]
    sizes: list[SizeSeries]  # of links and allreduce
    baseline: str
    results: list[ReportedResult]
    systems: list[ReportedResult]  # of links and allreduce


def build(snapshot: Snapshot, found: BenchResult, diagnosis: Diagnosis) -> BenchReport:
    """The report on a Snapshot with a bench."""
    bench = found.bench
    machine = describe_machine(snapshot)
    command = command_of(bench, snapshot)
    names = gpu_names(snapshot)
    every = reported_results(diagnosis)
    results = [one for one in every if one.area == AREA]
    systems = [one for one in every if one.area in SYSTEM_AREAS and not was_left_out(one)]
    judged = [*results, *systems]
    return BenchReport(
        schema=SCHEMA,
        simulated=snapshot.simulated,
        envcheck=__version__,
        status=_status(found, judged),
        verdict=_verdict(found, judged),
        note=SMALL if found.on_cpu else "",
        machine=machine,
        target=describe_target(snapshot.target),
        asked=bench.asked,
        began=bench.began,
        seconds=bench.seconds,
        interrupted=bench.interrupted,
        busy_ok=bench.busy_ok,
        inside=bench.inside,
        driver=machine.driver or "",
        settings=bench.settings,
        command=command,
        rows=[
            RowReport(
                name=row.run.row.name,
                gpus=[names.get(address, address) for address in row.run.row.gpus],
                result=row,
                framework=known(row.run.framework_version) or "",
                driver=machine.driver or "",
                settings=bench.settings,
                command=command,
            )
            for row in found.rows
        ],
        left_out=bench.left_out,
        scaling=found.scaling,
        shapes=found.shapes,
        sizes=found.sizes,
        baseline=found.baseline,
        results=results,
        systems=systems,
    )


def gpu_names(snapshot: Snapshot) -> dict[str, str]:
    """nvidia-smi's number of the GPU at each PCI address."""
    try:
        gpus = view_of(snapshot).seen_gpus
    except CannotJudge:
        return {}
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


def measured(rows: Iterable[RowResult]) -> list[RowResult]:
    """Rows of which something came."""
    return [one for one in rows if one.rate is not None or one.run.losses or one.run.shapes]


def _status(found: BenchResult, results: list[ReportedResult]) -> BenchStatus:
    outcomes = {one.outcome for one in results} | {one.verdict for one in found.rows}
    if "fail" in outcomes:
        return "problems"
    if not measured(found.rows) and found.rows and not found.bench.interrupted:
        return "could-not-look"
    return "could-not-look" if "could-not-run" in outcomes else "healthy"


def _verdict(found: BenchResult, results: list[ReportedResult]) -> str:
    """One line that names what matters most."""
    rows = found.rows
    done = measured(rows)
    ended = f"; interrupted after {number_of(len(done), 'row')}" if found.bench.interrupted else ""
    for outcome, words in (("fail", "problem"), ("warn", "warning")):
        told = [
            finding.headline or finding.message
            for one in results
            for finding in one.findings
            if finding.level == outcome and not one.consequence_of
        ]
        told += [
            f"{one.run.row.name}: {one.verdict_words or 'slower than it should be'}"
            for one in rows
            if one.verdict == outcome and (not results or one.verdict_by == "baseline")
        ]
        if told:
            return f"{number_of(len(told), words)}: {told[0]}{ended}"
    if not rows and results and not found.bench.interrupted:
        well = [one for one in results if one.outcome == "pass"]
        if not well:
            return "links and collectives: nothing of them could be judged"
        return f"links and collectives: {number_of(len(well), 'check')} as it must be"
    if not done:
        if found.bench.interrupted or not rows:
            return "interrupted before a row was measured"
        first = rows[0]
        reason = f": {first.run.reason}" if first.run.reason else ""
        told_of = f"{first.run.row.name}: {outcome_of(first)}{reason}"
        return f"nothing was measured: {told_of}"
    if found.on_cpu:
        count = number_of(len(done), "row")
        return f"{count} measured on a CPU, where there is nothing to hold them against{ended}"
    judged = [one for one in done if one.verdict == "pass"]
    count = number_of(len(done), "row")
    if not judged:
        return f"{count} measured; no figure is known that fits to judge them by{ended}"
    return (
        f"as fast as it should be: {len(judged)} of {count} held against a figure that fits{ended}"
    )


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every report of a bench obeys."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The report of envcheck bench",
        **msgspec.json.schema(BenchReport),
    }

"""The result of a run: findings, each machine's rates, and the collectives of all together. Pure."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from ... import __version__, safe_text
from ...reports.plain import together
from .. import hosts
from .judged import Judged
from .judging import judge
from .model import SCHEMA, CollectiveResult, MachineRates, NetworkResult, NetworkRun, Pass
from .pairs import of_machines, rates_of

_SMALL = 256 << 10  # bytes, up to which latency counts for more than the rate of a pair

# Bytes on the busiest link, as a factor of a rank's bytes, for n ranks: nccl-tests' doc/PERFORMANCE.md.
_BUS: dict[str, Callable[[int], float]] = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "all-gather": lambda n: float(n - 1),
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
}


def result(run: NetworkRun) -> NetworkResult:
    judged = judge(run)
    names = [member.name for member in run.passes[0].members]
    silent = together((safe_text.one_line(why), name) for name, why in judged.silent.items())
    collectives, reason = _together(run.passes[-1], judged)
    named = {name for one in judged.findings for name in one.machines}
    outcome = "could-not-run" if silent or reason else "warn" if judged.findings else "pass"
    if any(one.level == "fail" or one.degrades for one in judged.findings):
        outcome = "fail"
    return NetworkResult(
        schema=SCHEMA,
        envcheck=__version__,
        tested_at=max((one.collected_at for one in run.passes[0].answers.values()), default=""),
        verdict=_verdict(names, named, judged),
        outcome=outcome,  # type: ignore[arg-type]
        findings=judged.findings,
        silent=[(hosts.natural(machines), why) for why, machines in silent.items()],
        machines=_machines(names, judged),
        together=collectives,
        unsteady=judged.unsteady,
        together_reason=reason,
        links=[(machines, why) for why, machines in judged.links.items()],
    )


def _verdict(names: list[str], named: set[str], judged: Judged) -> str:
    tried = len(judged.pairs)
    silent = f", {len(judged.silent)} not tested" if judged.silent else ""
    if not judged.findings:
        good = len(names) - len(judged.silent)
        if good < 2:
            return f"The network could not be tested{silent}"
        return f"The network between {good} machines works: {tried} pairs tested{silent}"
    number = len(judged.findings)
    problems = "a problem" if number == 1 else f"{number} problems"
    words = f"The network has {problems}, on {len(named)} of {len(names)} machines"
    return f"{words}: {tried} pairs tested{silent}"


def _machines(names: list[str], judged: Judged) -> list[MachineRates]:
    found, of_each = [], of_machines(judged.pairs)
    for name in hosts.natural(names):
        pairs = of_each.get(name, [])
        sends, receives = rates_of(name, pairs)
        found.append(
            MachineRates(
                name=name,
                pairs=len(pairs),
                failed=sum(not pair.ok for pair in pairs),
                sends_mb_s=_round(sends, 1e6),
                receives_mb_s=_round(receives, 1e6),
                latency_us=_round([pair.rtt * 5e5 for pair in pairs if pair.rtt], 1.0),
                link_mbit=judged.facts[name].link_mbit if name in judged.facts else 0,
            )
        )
    return found


def _round(values: list[float], unit: float) -> float | None:
    return round(median(values) / unit, 1) if values else None


def _together(last: Pass, judged: Judged) -> tuple[list[CollectiveResult], str]:
    """Every machine's part of each collective: the slowest counts. And why it did not come to its end."""
    reports = {
        name: answer.together
        for name, answer in last.answers.items()
        if name in last.together and answer.together is not None
    }
    if not last.together:
        return [], ""
    missing = [name for name in last.together if name not in reports]
    failed = [(name, one) for name, one in reports.items() if one.outcome != "ok"]
    reason = ""
    if missing:
        reason = f"{hosts.folded(missing)} did not report"
    elif failed:
        one = failed[0][1]
        reason = f"{hosts.folded(n for n, _ in failed)} failed in {one.step}: {one.reason}"
    members = set(last.together)
    pairs = [pair for key, pair in judged.pairs.items() if members >= set(key)]
    every = [one for report in reports.values() for one in report.collective]
    kinds = together(((one.bytes, one.collective), one) for one in every if one.collective in _BUS)
    found = []
    for size, kind in sorted(kinds, key=lambda one: (one[0], list(_BUS).index(one[1]))):
        parts = kinds[size, kind]
        times = [one.seconds for one in parts if one.seconds is not None]
        rate, paired = None, [pair.reduced(size) for pair in pairs]
        slowest = min((one for one in paired if one is not None), default=None)
        if len(times) == len(last.together) and max(times) > 0:
            rate = size * _BUS[kind](len(last.together)) / max(times)
        found.append(
            CollectiveResult(
                collective=kind,
                bytes=size,
                machines=len(last.together),
                bus_mb_s=None if rate is None else round(rate / 1e6, 1),
                share=round(rate / slowest, 3) if rate and slowest and size > _SMALL else None,
                reason=safe_text.one_line(next((one.reason for one in parts if one.reason), "")),
            )
        )
    return found, safe_text.one_line(reason)

"""From what pairs report to causes: simulated fleets with known faults, many seeds, up to 1,000 machines."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from envcheck import json_text
from envcheck.collector.systems.network import partner, rounds
from envcheck.fleet.folder import Member
from envcheck.fleet.network import planning
from envcheck.fleet.network.model import (
    Answer,
    NetworkRun,
    PairReport,
    Pass,
    PeerFacts,
    TogetherReport,
)
from envcheck.fleet.network.result import result

LARGE = 1 << 20
NAMES = {
    "slow": "machine-slow",
    "cut": "pair-cut-off",
    "hole": "large-messages-vanish",
    "misname": "name-resolves-elsewhere",
    "hang": "machine-hangs",
    "stop": "machine-stops",
    "clock": "clock-off",
    "off": "machine-cut-off",
    "slow-pair": "pair-slow",
    "rail": "rail-slow",
    "damage": "data-damaged",
    "no-group": "machine-fails",
}


class Simulated:
    """faults: {kind: places}, of "cut", "slow-pair" and "damage" two. noise: of a rate's logarithm. flaky:
    the share of first tries that fail for no reason but load; flaky_again: of second ones. link: facts of
    each machine's link; its pairs reach 8000 Mbit/s."""

    def __init__(
        self,
        machines: int,
        seed: int,
        faults: Mapping[str, Any],
        noise: float = 0.15,
        flaky: float = 0.0,
        flaky_again: float = 0.0,
        gpus: int = 0,
        link: Callable[[int], dict[str, Any]] = lambda _place: {},
    ) -> None:
        self.link = link
        self.random = random.Random(seed)
        self.names = [f"n{one:04d}" for one in range(machines)]
        self.faults, self.noise, self.flaky, self.gpus = faults, noise, flaky, gpus
        self.flaky_again = flaky_again

    def run(self) -> NetworkRun:
        count = len(self.names)
        plan = [
            [(a, b) for a in range(count) if (b := partner(a, one, count)) is not None and a < b]
            for one in rounds(count)
        ]
        first = NetworkRun(schema=1, engine="ansible", passes=[self._pass(plan, again=False)])
        second = planning.second(first)
        again = [[(self._place(second, a), self._place(second, b)) for a, b in one]
                 for one in second.pairs]  # fmt: skip
        self.flaky = self.flaky_again
        last = self._pass(again, again=True, named=second.named)
        together = msgspec.structs.replace(
            last, together=[second.peers[one][0] for one in second.together]
        )
        return msgspec.structs.replace(first, passes=[*first.passes, together])

    def _place(self, second: planning.SecondPass, place: int) -> int:
        return self.names.index(second.peers[place][0])

    def _pass(self, plan: list[list[tuple[int, int]]], *, again: bool, named: int = 10**6) -> Pass:
        reports: dict[int, list[PairReport]] = {one: [] for one in range(len(self.names))}
        for number, pairs in enumerate(plan):
            for one, other in pairs:
                self._meet(reports, one, other, number, named=number >= named, again=again)
        silent = {self.faults.get("hang"), self.faults.get("silent")}
        answers = {
            name: Answer(
                outcome="ok", pairs=reports[one], facts=self._facts(one), together=TogetherReport()
            )
            for one, name in enumerate(self.names)
            if one not in silent
        }
        members = [
            Member(name=name, reason="no route to it", outcome="unreachable")
            if one == self.faults.get("silent")
            else Member(name=name, reason="no answer", outcome="timed-out")
            if one in silent
            else Member(name=name)
            for one, name in enumerate(self.names)
        ]
        return Pass(members=members, answers=answers)

    def _facts(self, one: int) -> PeerFacts:
        wrong = one == self.faults.get("misname")
        return PeerFacts(
            host=self.names[one], resolves="10.9.9.9" if wrong else "10.0.0.1",
            by_name="eth1" if wrong else "eth0", towards="eth0", address="10.0.0.1", mtu=1500,
            reached_at="10.0.0.1", **self.link(one),
        )  # fmt: skip

    def _meet(
        self, reports: dict[int, list[PairReport]], one: int, other: int, number: int, *,
        named: bool, again: bool,
    ) -> None:  # fmt: skip
        step = self._fails(one, other, number, named=named, again=again)
        for me, you in ((one, other), (other, one)):
            common: dict[str, Any] = {"other": self.names[you], "round": number, "named": named}
            common["gpu"] = number % self.gpus if self.gpus else None
            if step is None or step == "large":
                ahead = {True: 3600.0}.get(you == self.faults.get("clock"), 0.0)
                ahead -= {True: 3600.0}.get(me == self.faults.get("clock"), 0.0)
                common |= {"offset": ahead, "rtt": 0.0001}
            if step is None:
                wrong = 3 if {me, you} == set(self.faults.get("damage", ())) else 0
                sent = {LARGE: LARGE / self._rate(me, you, common["gpu"])}
                reports[me].append(PairReport(sent=sent, reduced=sent, wrong=wrong, **common))
            else:
                word = "send" if me == one else "receive"
                shown = f"{word} 65536" if step == "large" else step
                reports[me].append(PairReport(outcome="timeout", step=shown, **common))

    def _fails(self, one: int, other: int, number: int, *, named: bool, again: bool) -> str | None:
        faults, both = self.faults, {one, other}
        if both == set(faults.get("cut", ())) or both & {faults.get("off"), faults.get("silent")}:
            return "connect"
        if faults.get("no-group") in both or (faults.get("misname") in both and not named):
            return "group"
        if {faults.get("hang"), faults.get("stop")} & both and (number > 5 or again):
            return "small" if faults.get("stop") in both else "connect"
        if faults.get("hole") in both:
            return "large"
        return "connect" if self.random.random() < self.flaky else None

    def _rate(self, me: int, you: int, gpu: int | None) -> float:
        rate = 1e9 * self.random.lognormvariate(0, self.noise)
        if self.faults.get("slow") in (me, you):
            rate *= 0.3
        if (me, you) == self.faults.get("slow-pair"):
            rate *= 0.1
        return rate * (0.2 if self.faults.get("rail") in (me, you) and gpu == 2 else 1.0)


def named(run: NetworkRun) -> set[tuple[str, frozenset[str]]]:
    return {(one.cause, frozenset(one.machines)) for one in result(run).findings}


def expected(faults: Mapping[str, Any]) -> set[tuple[str, frozenset[str]]]:
    found = set()
    for kind, places in faults.items():
        places = places if isinstance(places, tuple) else (places,)
        found.add((NAMES[kind], frozenset(f"n{one:04d}" for one in places)))
    return found


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("machines", [16, 33])
def test_six_faults_at_once_are_named_and_nothing_else(machines: int, seed: int) -> None:
    places = random.Random(seed).sample(range(machines), 7)
    faults: dict[str, Any] = dict(
        zip(("slow", "hole", "misname", "hang", "clock"), places, strict=False)
    )
    faults["cut"] = (places[5], places[6])
    run = Simulated(machines, seed, faults, flaky=0.03).run()
    assert named(run) == expected(faults)
    (misnamed,) = [f for f in result(run).findings if f.cause == NAMES["misname"]]
    assert "With GLOO_SOCKET_IFNAME=eth0 they pass." in misnamed.message


@pytest.mark.parametrize("kind", ["stop", "off", "slow-pair", "damage", "no-group", "rail", "cut"])
@pytest.mark.parametrize("seed", range(3))
def test_each_other_fault_is_named_and_nothing_else(kind: str, seed: int) -> None:
    one, other = random.Random(seed).sample(range(24), 2)
    faults = {kind: (one, other) if kind in ("slow-pair", "damage", "cut") else one}
    run = Simulated(24, seed, faults, noise=0.08, gpus=4 if kind == "rail" else 0).run()
    assert named(run) == expected(faults)


@pytest.mark.parametrize("seed", range(20))
def test_in_a_noisy_fleet_that_is_well_nothing_is_named(seed: int) -> None:
    found = result(Simulated(16, seed, {}, noise=0.4, flaky=0.1).run())
    assert json.loads(json_text.render(found))["findings"] == []
    assert found.outcome == "pass"
    assert found.unsteady


@pytest.mark.parametrize("seed", range(5))
def test_a_pair_that_failed_only_the_second_time_is_not_named(seed: int) -> None:
    run = Simulated(16, seed, {"slow": 4}, flaky_again=0.4).run()
    assert named(run) == {("machine-slow", frozenset({"n0004"}))}


def test_in_a_thousand_machines_the_faults_are_found() -> None:
    faults = {"slow": 77, "hole": 500, "misname": 998, "clock": 3, "off": 640}
    assert named(Simulated(1000, 1, faults, flaky=0.002).run()) == expected(faults)


def test_a_machine_that_never_came_is_not_tested_and_no_fault() -> None:
    found = result(Simulated(16, 1, {"silent": 4}).run())
    assert not found.findings
    assert found.silent == [(["n0004"], "no route to it")]
    assert found.outcome == "could-not-run"


def test_of_two_machines_that_fail_the_pair_is_named() -> None:
    assert named(Simulated(2, 1, {"cut": (0, 1)}).run()) == expected({"cut": (0, 1)})


ADAPTER = {"link_is_adapter": True, "loopback": {LARGE: LARGE / 20e9}}


@pytest.mark.parametrize("machines", [2, 16])
def test_where_all_are_as_slow_one_warning_names_them_by_what_their_links_claim(
    machines: int,
) -> None:
    found = result(Simulated(machines, 1, {}, link=lambda _: {"link_mbit": 40000, **ADAPTER}).run())
    (finding,) = found.findings
    assert (finding.cause, len(finding.machines)) == ("links-below-claim", machines)
    assert " of 40000 Mbit/s that their links claim" in finding.message
    assert (found.outcome, found.links) == ("warn", [])


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ({"link_mbit": 10000, **ADAPTER}, ""),
        ({"link_mbit": 40000}, "the interface is virtual, or claims no rate"),  # veth
        (ADAPTER, "the interface is virtual, or claims no rate"),
        ({"link_mbit": 200_000, **ADAPTER}, "its CPUs do not move as much over the loopback"),
    ],
)
@pytest.mark.parametrize("noise", [0.05, 0.4])
def test_a_link_that_explains_nothing_is_not_named(
    link: dict[str, Any], why: str, noise: float
) -> None:
    found = result(Simulated(16, 3, {}, noise=noise, link=lambda _: link).run())
    assert not found.findings
    assert [reason for _, reason in found.links] == [why] * bool(why)


def test_a_fast_link_among_slow_ones_is_not_named() -> None:
    def link(place: int) -> dict[str, Any]:
        return {"link_mbit": 10000 if place else 100_000, **ADAPTER}

    assert not result(Simulated(16, 1, {}, link=link).run()).findings


def test_a_machine_that_only_a_wrong_clock_was_compared_with_has_no_wrong_clock() -> None:
    def seen(other: str, offset: float) -> PairReport:
        return PairReport(other=other, offset=offset, rtt=0.001)

    reports = {
        "a": [seen("b", 0.0), seen("clock", 3600.0)],
        "b": [seen("a", 0.0), seen("clock", 3600.0)],
        "clock": [seen("a", -3600.0), seen("b", -3600.0), seen("late", -3600.0)],
        "late": [seen("clock", 3600.0)],
    }
    answers = {name: Answer(outcome="ok", pairs=pairs) for name, pairs in reports.items()}
    one = Pass(members=[Member(name=name) for name in reports], answers=answers)
    run = NetworkRun(schema=1, engine="slurm", passes=[one])
    (finding,) = result(run).findings
    assert finding.machines == ["clock"]
    assert finding.message.startswith("The clock of clock is 3600 s ahead of")


def test_what_a_machine_says_of_itself_is_quoted_in_commands() -> None:
    simulated = Simulated(8, 1, {"misname": 2})
    run = simulated.run()
    first = run.passes[0]
    hostile = msgspec.structs.replace(first.answers["n0002"].facts, host="x; rm -rf ~\x1b[2J")
    first.answers["n0002"] = msgspec.structs.replace(first.answers["n0002"], facts=hostile)
    (finding,) = result(run).findings
    assert finding.commands[0].startswith("getent hosts 'x; rm -rf ~")
    assert "\x1b" not in finding.message + finding.commands[0]

"""Which nodes are drained and taken back: the rules, on a slurmctld that is made up."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.exit_codes import CouldNotLook
from envcheck.fleet.engines import slurm_drain
from envcheck.fleet.engines.slurm_drain import Decision
from envcheck.fleet.engines.slurm_nodes import SlurmNodeState

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=timezone.utc)


def result(code: str, outcome: str, message: str, **more: object) -> dict[str, object]:
    level = "fail" if outcome == "fail" else "warn"
    finding = {"cause": "x", "headline": "x", "level": level, "message": message, **more}
    return {"code": code, "area": "x", "title": "x", "outcome": outcome, "findings": [finding]}


def report(*results: dict[str, object]) -> bytes:
    return json.dumps({"results": results, "schema": 2}).encode()


def found(*results: tuple[str, str]) -> str:
    every = [result(code, outcome, "The GPU is lost.") for code, outcome in results]
    return slurm_drain.problem(report(*every), "fail")


FAULT = found(("PCI-001", "pass"), ("GPU-001", "fail"))
REASON = f"envcheck: {FAULT}"


class MadeUpSlurmctld:
    """Nodes with GPUs, a clock of whole seconds, and each command as one step, as slurmctld has it."""

    def __init__(self, count: int) -> None:
        self.clock = NOW
        self.rows = {name: self.idle(name) for name in (f"gpu{n:03d}" for n in range(count))}
        self.fails_after: int | None = None
        self._lock = threading.Lock()

    @staticmethod
    def idle(name: str, gpus: int = 8) -> SlurmNodeState:
        return SlurmNodeState(name, "idle", gpus=gpus)

    def _answers(self) -> None:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise CouldNotLook("scontrol gave no answer within 4 s")

    def nodes(self) -> dict[str, SlurmNodeState]:
        with self._lock:
            self._answers()
            return dict(self.rows)

    def update(self, node: str, **settings: str) -> None:
        with self._lock:
            self._answers()
            if settings["State"] == "DRAIN":
                reason = settings["Reason"]
                row = SlurmNodeState(node, "drained", reason, gpus=8, since=self.clock)
                self.rows[node] = row
            else:
                assert settings == {"State": "RESUME"}
                self.rows[node] = self.idle(node)

    def drained(self) -> list[str]:
        return [name for name, row in self.rows.items() if row.is_drained]

    def drain(
        self,
        node: str,
        words: str,
        sleep: Callable[[float], None],
        percent: float = 5,
    ) -> Decision:
        now = lambda: self.clock  # noqa: E731
        return slurm_drain.drain(self, node, words, percent=percent, now=now, sleep=sleep)

    def passes(self, seconds: float) -> None:
        self.clock += timedelta(seconds=seconds)


def test_what_degrades_a_node_drains_it_only_where_that_is_wanted() -> None:
    warned = result("GPU-022", "warn", "ECC is off.", degrades=True)
    skipped = result("GPU-024", "skipped", "ECC is off.", degrades=True)
    assert slurm_drain.problem(report(warned, skipped), "fail") == ""
    cluster = MadeUpSlurmctld(3)
    words = slurm_drain.problem(report(warned, skipped), "degraded")
    decision = cluster.drain("gpu001", words, cluster.passes)
    assert decision == Decision(True, "drained: envcheck: GPU-022 ECC is off.")


def test_a_fault_drains_with_a_reason_that_is_known_as_envchecks() -> None:
    cluster = MadeUpSlurmctld(3)
    decision = cluster.drain("gpu001", FAULT, cluster.passes)
    assert decision == Decision(True, f"drained: {REASON}")
    assert cluster.drained() == ["gpu001"]
    assert REASON.startswith("envcheck: GPU-001 The GPU is lost.")


@pytest.mark.parametrize(
    "words",
    [
        found(("HOST-005", "fail"), ("NET-001", "fail"), ("KRN-008", "fail"), ("X-1", "fail")),
        found(("GPU-001", "could-not-run"), ("DRV-001", "warn"), ("PCI-001", "skipped")),
        found(("GPU-017", "fail")),  # a licence server is not this node
        found(),
    ],
)
def test_nothing_else_drains(words: str) -> None:
    cluster = MadeUpSlurmctld(3)
    assert not cluster.drain("gpu001", words, cluster.passes).done
    assert not cluster.drained()


@pytest.mark.parametrize(
    ("count", "percent", "most"), [(1, 5, 1), (39, 5, 1), (40, 5, 2), (1000, 5, 50), (7, 100, 7)]
)
def test_one_after_the_other_as_many_as_the_limit_says(
    count: int, percent: float, most: int
) -> None:
    cluster = MadeUpSlurmctld(count)
    cluster.rows |= {name: cluster.idle(name, gpus=0) for name in ("cpu01", "cpu02")}
    for name in [name for name in cluster.rows if name.startswith("gpu")]:
        cluster.drain(name, FAULT, cluster.passes, percent)
        cluster.clock = NOW
    assert len(cluster.drained()) == most


def test_after_an_hour_and_for_reasons_of_others_there_is_room() -> None:
    cluster = MadeUpSlurmctld(10)
    cluster.update("gpu001", State="DRAIN", Reason="ticket 12")
    cluster.update("gpu002", State="DRAIN", Reason=REASON)
    assert not cluster.drain("gpu003", FAULT, cluster.passes).done
    cluster.passes(3601)
    assert cluster.drain("gpu003", FAULT, cluster.passes).done
    assert cluster.drained() == ["gpu001", "gpu002", "gpu003"]


@given(st.integers(2, 12), st.sampled_from([5.0, 20.0, 50.0]), st.integers(0, 1 << 30))
def test_many_at_once_drain_the_limit_and_no_more(count: int, percent: float, seed: int) -> None:
    """Any order of their steps: each waits until the second in which it was drained is over."""
    cluster = MadeUpSlurmctld(count)
    most = slurm_drain.limit(cluster.rows, percent)
    decisions = in_any_order(cluster, random.Random(seed), percent)
    assert len(cluster.drained()) == most
    assert {name for name, one in decisions.items() if one.done} == {*cluster.drained()}


def in_any_order(
    cluster: MadeUpSlurmctld, random_: random.Random, percent: float
) -> dict[str, Decision]:
    """Every node drains itself, in threads that take their steps one at a time, in a random order."""
    decisions: dict[str, Decision] = {}
    turns = {name: threading.Semaphore(0) for name in cluster.rows}
    back = threading.Semaphore(0)
    wakes = dict.fromkeys(cluster.rows, NOW)

    class OneNodesView(MadeUpSlurmctld):
        def __init__(self, name: str) -> None:
            self.name = name

        def _step(self) -> None:
            back.release()
            turns[self.name].acquire()

        def nodes(self) -> dict[str, SlurmNodeState]:
            self._step()
            return cluster.nodes()

        def update(self, node: str, **settings: str) -> None:
            self._step()
            cluster.update(node, **settings)

        def sleep(self, seconds: float) -> None:
            wakes[self.name] = cluster.clock + timedelta(seconds=seconds)

        def work(self) -> None:
            turns[self.name].acquire()
            decisions[self.name] = slurm_drain.drain(
                self, self.name, FAULT, percent=percent, now=lambda: cluster.clock, sleep=self.sleep
            )
            back.release()

    threads = [threading.Thread(target=OneNodesView(name).work) for name in cluster.rows]
    for thread in threads:
        thread.start()
    while len(decisions) < len(threads):
        ready = [n for n in cluster.rows if n not in decisions and wakes[n] <= cluster.clock]
        if not ready or random_.random() < 0.2:
            cluster.passes(1)
            continue
        turns[random_.choice(ready)].release()
        back.acquire()
    for thread in threads:
        thread.join()
    return decisions


def test_a_second_prolog_on_the_same_node_waits_for_the_first_ones_end() -> None:
    cluster = MadeUpSlurmctld(2)
    cluster.update("gpu001", State="DRAIN", Reason=REASON)
    assert cluster.drain("gpu001", FAULT, cluster.passes).done
    taken_back = cluster.drain("gpu001", FAULT, lambda _: cluster.update("gpu001", State="RESUME"))
    assert not taken_back.done and not cluster.drained()


@pytest.mark.parametrize("answers", range(3))
def test_where_slurm_stops_answering_it_is_an_error(answers: int) -> None:
    cluster = MadeUpSlurmctld(2)
    cluster.fails_after = answers
    with pytest.raises(CouldNotLook):
        cluster.drain("gpu001", FAULT, cluster.passes)

"""Metrics: what two parsers and node_exporter agree on, without a name of the machine."""

from __future__ import annotations

import re
from pathlib import Path

import fleet_results
import pytest

from envcheck.checks.engine import diagnose
from envcheck.cli.demo import NAMES, _packaged
from envcheck.data import table
from envcheck.facts import snapshot as snapshots
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.view import view_of
from envcheck.fleet.network.model import CollectiveResult, MachineRates, NetworkResult
from envcheck.fleet.reports import openmetrics as fleet_openmetrics
from envcheck.reports import metrics, openmetrics
from envcheck.reports.metrics import Sample
from envcheck.reports.model import build

LINE = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
MONITORING = [*(Path(__file__).parents[2] / "docs" / "monitoring").iterdir()]
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\[\\n"])*)"(?:,|$)')


def rendered(snapshot: Snapshot) -> str:
    return openmetrics.render(build(snapshot, diagnose(snapshot)))


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read by the grammar of OpenMetrics, as strictly as it stands there."""
    found = {}
    name = ""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    for line in lines[:-2]:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {name} gauge"
        elif line.startswith("# "):
            assert line.split(" ")[2] == name
            if line.startswith("# UNIT "):
                assert name.endswith(f"_{line.split(' ')[3]}")
        else:
            match = LINE.fullmatch(line)
            assert match and match["name"] == name, line
            of_it = LABEL.findall(match["labels"] or "")
            assert ",".join(f'{key}="{value}"' for key, value in of_it) == (match["labels"] or "")
            assert len({key for key, _ in of_it}) == len(of_it)
            key = (name, frozenset(of_it))
            assert key not in found
            found[key] = float(match["value"])
    return found


def demo(name: str) -> Snapshot:
    return snapshots.load(_packaged(name).read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_a_demo_obeys_the_grammar_and_has_every_check(name: str) -> None:
    snapshot = demo(name)
    report = build(snapshot, diagnose(snapshot))
    found = samples(openmetrics.render(report))
    for result in report.results:
        labels = {"code": result.code, "area": result.area, "outcome": result.outcome}
        assert found[("envcheck_check", frozenset(labels.items()))] == 1


def test_a_finding_names_its_gpu_and_cause() -> None:
    found = samples(rendered(demo("heat")))
    of = [dict(labels) for (name, labels) in found if name == "envcheck_findings"]
    assert "3" in {labels.get("gpu") for labels in of} and all(labels["cause"] for labels in of)


def test_rates_are_operations_a_second_and_verdicts_stand_beside_them() -> None:
    found = samples(rendered(demo("healthy")))
    flops = [
        value for (name, _labels), value in found.items() if name == "envcheck_tensor_core_flops"
    ]
    assert flops and all(1e12 < value < 1e16 for value in flops)
    verdicts = {dict(labels)["verdict"] for (name, labels) in found
                if name == "envcheck_tensor_core_verdict"}  # fmt: skip
    assert "proven" in verdicts


def test_no_name_of_the_machine_is_in_it() -> None:
    snapshot = demo("heat")
    text = rendered(snapshot)
    host = snapshot.machine.host
    assert host is not None and host.facts is not None
    assert str(host.facts.hostname) not in text
    for gpu in view_of(snapshot).gpus:
        assert str(gpu.uuid) not in text and str(gpu.pci_address) not in text


def test_foreign_words_cannot_leave_their_label() -> None:
    nasty = 'a"} 1\nenvcheck_state{state="healthy"} 1\n# EOF\n\x1b[31m\\'
    text = metrics.render([("gpus", [Sample(1, {"model": nasty})])])
    ((name, of_it),) = samples(text)
    assert name == "envcheck_gpus" and "\x1b" not in text
    assert dict(of_it)["model"].startswith('a\\"} 1 envcheck_state')


def of_fleet() -> str:
    machines = [fleet_results.machine("a", "broken"), fleet_results.machine("c", "silent")]
    found = fleet_results.fleet_result(
        machines,
        attribute_outliers=[fleet_results.attribute_outlier("a")],
        rate_outliers=[fleet_results.rate_outlier("a")],
        network=NetworkResult(
            schema=1,
            envcheck="1",
            verdict="",
            outcome="pass",
            findings=[],
            silent=[],
            machines=[MachineRates(name="a", pairs=2, sends_mb_s=1.0, receives_mb_s=1.0)],
            together=[CollectiveResult(collective="all-reduce", bytes=4, machines=2, bus_mb_s=1.0)],
        ),
    )
    return fleet_openmetrics.render(found)


def test_a_machine_of_a_fleet_has_each_state_and_the_time_of_its_snapshot() -> None:
    found = samples(of_fleet())
    states = {
        (dict(labels)["machine"], dict(labels)["state"]): value
        for (name, labels), value in found.items()
        if name == "envcheck_state"
    }
    assert len(states) == 8 and sum(states.values()) == 2
    assert states["a", "broken"] == states["c", "silent"] == 1
    times = [dict(labels) for name, labels in found if name == "envcheck_snapshot_time_seconds"]
    assert times == [{"machine": "a"}], "a silent one has none: its age cannot be told"


def test_a_metric_has_one_help_and_every_query_asks_for_one_that_exists() -> None:
    texts = [rendered(demo("heat")), rendered(demo("healthy")), of_fleet()]
    helps = {line for text in texts for line in text.splitlines() if line.startswith("# HELP ")}
    emitted = {line.split(" ")[2] for line in helps}
    assert len(helps) == len(emitted) == len(table("metrics"))
    for path in MONITORING:
        asked = set(re.findall(r"\benvcheck_[a-z_]+", path.read_text()))
        assert asked and asked <= emitted, path

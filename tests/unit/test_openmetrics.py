"""Metrics: what two parsers and node_exporter agree on, without a name of the machine."""

from __future__ import annotations

import re

import pytest

from envcheck.checks.engine import diagnose
from envcheck.cli.demo import NAMES, _packaged
from envcheck.facts import snapshot as snapshots
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.view import view_of
from envcheck.reports import metrics, openmetrics
from envcheck.reports.metrics import Family, Sample
from envcheck.reports.model import build

LINE = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
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
    nasty = 'a"} 1\nenvcheck_status{status="healthy"} 1\n# EOF\n\x1b[31m\\'
    text = metrics.render([Family("x", "Help.", [Sample(1, {"model": nasty})])])
    ((name, of_it),) = samples(text)
    assert name == "envcheck_x" and "\x1b" not in text
    assert dict(of_it)["model"].startswith('a\\"} 1 envcheck_status')

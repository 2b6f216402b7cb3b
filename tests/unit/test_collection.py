"""Core's side of the wall: what a collector's answer, however odd, is made of."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from envcheck import collection, nvidia_ml_py
from envcheck.collector.documents import document
from envcheck.collector.runtime import process
from envcheck.exit_codes import CouldNotLook

HOST = {"outcome": "ok", "seconds": 0.1, "facts": {"kernel": "6.1.0"}}
NVML: dict[str, Any] = {"init_code": 0, "gpu_count": 1, "gpus": [{"index": 0, "name": "H100"}]}


def answer(**sections: Any) -> dict[str, Any]:
    machine = document("live", "machine") | {"host": HOST} | sections
    return {"schema": 1, "redacted": True, "machine": machine, "target": None}


def ended(stdout: bytes = b"", code: int | None = 0) -> process.Result:
    return process.Result(["python"], "exited", code, stdout, b"", 1.0)


def read(raw: dict[str, Any]) -> collection.Collected:
    whole = {"snapshot": raw, "values": {}}
    return collection._read(ended(json.dumps(whole).encode()))


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("nvml", NVML | {"gpu_count": "two"}),
    ("nvml", NVML | {"gpus": [{"index": 0, "name": "H100", "memory_total_mib": [1]}]}),
    ("nvml", NVML | {"gpus": ["H100"]}),
    ("nvml", NVML | {"gpus": {"unavailable": "no such reason"}}),
    ("nvml", NVML | {"init_code": None}),
    ("nvml", NVML | {"of another version": 1}),
    ("nvml", NVML | {"pairs": [[]]}),
    ("nvidia_smi", {"gpu_count": True}),
    ("nvidia_smi", {"exit_code": "0"}),
    ("nvidia_smi", {"driver_version": {"unavailable": "error", "detail": 5}}),
    ("nvidia_smi", {"gpus": [{"index": "0"}]}),
]


@pytest.mark.parametrize(("section", "facts"), WRONG)
def test_facts_that_do_not_fit_cost_their_section_alone(
    section: str, facts: dict[str, Any]
) -> None:
    probe = {"outcome": "ok", "seconds": 0.25, "facts": facts, "sources": {"*": "NVML"}}
    good = {"outcome": "ok", "facts": {"gpu_count": 0}}
    sections = {"nvml": good, "nvidia_smi": good, section: probe}
    machine = read(answer(**sections)).snapshot.machine
    result = getattr(machine, section)
    assert (result.outcome, result.facts, result.seconds) == ("crashed", None, 0.25)
    assert f"$.machine.{section}.facts" in result.reason
    assert machine.host is not None
    other = machine.nvml if section == "nvidia_smi" else machine.nvidia_smi
    assert other is not None
    assert (machine.host.outcome, other.outcome) == ("ok", "ok")


def test_several_sections_of_both_documents_may_be_wrong() -> None:
    raw = answer(nvml={"outcome": "ok", "facts": {"gpus": 1}}, pci={"outcome": "ok", "facts": 5})
    raw["target"] = document("live", "path:/env") | {
        "packages": {"outcome": "ok", "facts": {"distributions": "none"}},
        "environment": {"outcome": "ok", "facts": {"variables": {"A": "1"}}},
    }
    snapshot = read(raw).snapshot
    assert snapshot.target is not None
    outcomes = [
        probe.outcome if probe is not None else None
        for probe in (
            snapshot.machine.nvml,
            snapshot.machine.pci,
            snapshot.machine.host,
            snapshot.target.packages,
            snapshot.target.environment,
        )
    ]
    assert outcomes == ["crashed", "crashed", "ok", "crashed", "ok"]


@pytest.mark.parametrize(
    "stdout",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"snapshot": 5, "values": {}}',
        b'{"snapshot": {"schema": 1}, "values": {}}',
        json.dumps({"snapshot": answer(host={"outcome": "fine"}), "values": {}}).encode(),
        json.dumps({"snapshot": answer(), "values": [1]}).encode(),
        json.dumps({"snapshot": answer()}).encode(),
    ],
)
def test_an_answer_that_is_none_says_that_nobody_could_look(stdout: bytes) -> None:
    with pytest.raises(CouldNotLook, match="the collector's answer could not be read"):
        collection._read(ended(stdout))


def test_the_file_is_taken_where_an_old_package_of_its_name_hides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert nvidia_ml_py.file() is None
    (tmp_path / "pynvml").mkdir()
    package = tmp_path / "pynvml/__init__.py"
    package.write_text("")
    assert nvidia_ml_py.file() == package
    (tmp_path / "pynvml.py").write_text("")
    assert nvidia_ml_py.file() == tmp_path / "pynvml.py"

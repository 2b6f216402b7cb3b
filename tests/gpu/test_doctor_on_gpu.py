"""The doctor on a machine with NVIDIA GPUs (opt-in: pytest -m gpu)."""

from __future__ import annotations

import json
import os
from pathlib import Path

from machine import envcheck, on_a_gpu

from envcheck.checks.registry import areas
from envcheck.facts.snapshot import load
from envcheck.reports.acceleration import AREAS

pytestmark = on_a_gpu


def test_pci_nvml_nvidia_smi_and_cuda_count_the_same_gpus() -> None:
    machine = load(envcheck("collect").stdout).machine
    assert machine.nvml and machine.nvml.facts and machine.nvidia_smi and machine.nvidia_smi.facts
    assert machine.cuda and machine.cuda.facts
    nvml, smi, cuda = machine.nvml.facts, machine.nvidia_smi.facts, machine.cuda.facts
    assert isinstance(nvml.gpus, list) and isinstance(smi.gpus, list)
    assert nvml.gpus, "there is no GPU here"
    by_nvml = {gpu.pci_address: (gpu.uuid, gpu.name, gpu.compute_capability) for gpu in nvml.gpus}
    by_smi = {gpu.pci_address: gpu.uuid for gpu in smi.gpus}
    assert {address: uuid for address, (uuid, _, _) in by_nvml.items()} == by_smi
    if isinstance(cuda.devices, list) and not any(gpu.mig_enabled is True for gpu in nvml.gpus):
        assert {d.pci_address: d.compute_capability for d in cuda.devices} == {
            address: capability for address, (_, _, capability) in by_nvml.items()
        }
    assert cuda.init_code == 0


def test_no_check_crashes_and_every_probe_answers() -> None:
    machine = json.loads(envcheck("collect").stdout)["machine"]
    outcomes = {
        name: p["outcome"] for name, p in machine.items() if isinstance(p, dict) and "outcome" in p
    }
    assert set(outcomes.values()) == {"ok"}, outcomes
    report = json.loads(envcheck("doctor", "--exit-zero", "--format", "json").stdout)
    assert not [r["reason"] for r in report["results"] if "crashed" in r.get("reason", "")]
    by_code = {r["code"]: r["outcome"] for r in report["results"]}
    assert {by_code[code] for code in ("PCI-001", "DRV-001", "DRV-004")} == {"pass"}


def test_the_deep_level_runs_and_says_the_same_from_its_snapshot(tmp_path: Path) -> None:
    """What first.sh has kept already, else a run: of ENVCHECK_TARGET, or of memory and links alone."""
    target = ["--target", os.environ["ENVCHECK_TARGET"]] if "ENVCHECK_TARGET" in os.environ else []
    deep = ["--only", *[area for area in AREAS if area in areas()]]
    saved = Path(os.environ.get("ENVCHECK_RUN", tmp_path)) / "deep.json"
    if not saved.exists():
        envcheck("doctor", *deep, *target, "--exit-zero", "--quiet", "--save", saved)
    snapshot = load(saved.read_bytes())
    for document in (snapshot.machine, snapshot.target):
        if document is None:
            continue
        assert document.acceleration is not None and document.acceleration.facts is not None
        for run in document.acceleration.facts.runs:
            where = f"{run.system} {run.framework}: {run.reason} {run.log[-3:]}"
            assert run.outcome not in ("error", "crashed", "timeout"), where
            assert not [t.name for t in run.trials if t.outcome in ("crashed", "timeout")], where
    arguments = ("--from", saved, "--exit-zero", "--format", "json")
    first, again = (envcheck("doctor", *deep, *arguments).stdout for _ in range(2))
    assert first == again
    results = json.loads(first)["results"]
    assert not [r["reason"] for r in results if "crashed" in r.get("reason", "")]
    assert [r["code"] for r in results if r["area"] in AREAS and r["outcome"] == "pass"]

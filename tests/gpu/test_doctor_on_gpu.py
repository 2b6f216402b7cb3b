"""The doctor on a machine with NVIDIA GPUs (opt-in: pytest -m gpu)."""

from __future__ import annotations

import json

from machine import envcheck, on_a_gpu

from envcheck.facts.snapshot import load

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
    told = {r["code"]: r["outcome"] for r in report["results"]}
    assert (told["PCI-001"], told["DRV-001"], told["DRV-004"]) == ("pass", "pass", "pass")

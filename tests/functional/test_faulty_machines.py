"""Faults put below the product are found, and nothing is told of machines on which all is well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty import card, mending, run, themes
from faulty.score import shown
from world.enter import NoNamespaces, prepare
from world.libraries import NoCompiler

from envcheck.facts.snapshot import load

# One of each kind of stand-in, and one of each theme.
FEW = (
    "nouveau holds all GPUs",
    "the module is not loaded (h100)",
    "Xid 119: the GSP does not answer",
    "GPU 3 has 8 of 16 lanes",
    "12 uncorrectable DRAM errors on GPU 7",
    "hardware slows GPU 3 down for heat",
    "2 of 18 NVLinks of GPU 3 are down",
    "the fabric manager does not run",
    "MIG is on and GPU 2 has no instance (a100-mig)",
    "the toolkit's no-cgroups is set for docker as root",
    "TensorFlow without its CUDA wheels",
    "the home directory's disk is full",
    "heat on GPU 2, two NVLinks down on GPU 7",
    "GPU 3 is lost after 420 calls",
)

# Faults whose remedies' commands, each done to the machine, leave one on which all is well. Of the others the
# remedy is for hands, for a vendor or for an image, or what is left is for a reboot (a kernel log's Xid).
MENDED = (
    "CUDA_VISIBLE_DEVICES=",
    "CUDA_VISIBLE_DEVICES=9",
    "CUDA_VISIBLE_DEVICES=GPU-deadbeef-0000-0000-0000-000000000000",
    "ECC is off on one GPU of eight",
    "GPU 3 is lost after 420 calls",
    "GPU 3 may draw 400 W of 700",
    "LD_LIBRARY_PATH puts cuBLAS 12.1 before the wheel's 12.5",
    "LD_PRELOAD replaces the CUDA runtime",
    "MIG goes off with the next reset",
    "MIG is on and GPU 2 has no instance (a100-mig)",
    "NVML crashes at GPU 6",
    "NVML hangs at GPU 2",
    "Secure Boot: Key was rejected by service",
    "Secure Boot: the key is unavailable",
    "Xid 154: the driver asks for a reset",
    "a fatal SXid of an NVSwitch",
    "a new kernel has no module of the driver",
    "a remapped row waits for a reset on GPU 3",
    "application clocks of 345 MHz",
    "compute mode Prohibited on GPU 3 (h100)",
    "cuInit crashes",
    "cuInit hangs",
    "libraries updated under the running module",
    "lockdown: unsigned module",
    "modprobe.d keeps the module out",
    "no libnvidia-ml",
    "no peer memory with InfiniBand",
    "nouveau holds all GPUs",
    "nvidia-uvm is not loaded (h100)",
    "persistence mode is off on a server",
    "retired pages wait for a reboot",
    "the driver asks for a reboot",
    "the fabric manager does not run",
    "the fabric manager is of another version than the driver",
    "the kernel's half of the driver alone",
    "the module is not loaded (h100)",
)


@pytest.fixture(scope="module", autouse=True)
def _machines() -> Iterator[None]:
    try:
        prepare()
        run.report(card.well()["t4"])
    except (NoNamespaces, NoCompiler) as error:
        pytest.skip(f"no made-up machines here: {error}")
    yield


@pytest.mark.parametrize("name", FEW)
def test_a_fault_is_named_with_what_mends_it(name: str) -> None:
    fault = next(fault for fault in themes.all_faults() if fault.name == name)
    score = run.score(fault)
    assert score.named and score.remedied, score.why
    assert not score.misleading


def commands(report: dict[str, Any]) -> list[list[str]]:
    """Those of each finding that is shown."""
    results = [one for one in report["results"] if not one.get("consequence_of")]
    findings = [found for one in results for found in one.get("findings", ())]
    return [(found.get("remedy") or {}).get("commands", []) for found in findings]


@pytest.mark.heavy
@pytest.mark.parametrize("name", MENDED)
def test_what_the_remedies_print_ends_in_health(name: str) -> None:
    fault = next(fault for fault in themes.all_faults() if fault.name == name)
    machine = fault.machine()
    for printed in commands(run.report(machine)):
        mending.mend(machine, mending.healthy(fault.base), printed)
    assert [(one.code, one.words) for one in shown(run.report(machine))] == []


@pytest.mark.parametrize("name", card.well())
def test_nothing_is_told_of_a_healthy_machine(name: str) -> None:
    report = run.report(card.well()[name])
    assert [(one.code, one.words) for one in shown(report)] == []
    assert report["status"] == "healthy"


def test_the_facts_are_those_that_were_made_up(tmp_path: Path) -> None:
    """Below it all is a Snapshot of the machine, not of this one."""
    made = card.well()["h100"]
    made.arguments += ["--save", "/dev/shm/machine.json"]
    made.files["/usr/bin/nvidia-smi"] = (
        "#!/bin/sh\ncat /.made/smi\n"  # the other programs of this machine are not there
    )
    from world import enter

    ended = enter.run(made, ["collect", "--no-redact"])
    machine = load(ended.stdout).machine
    assert machine.nvml is not None and machine.nvml.facts is not None
    assert machine.host is not None and machine.host.facts is not None
    assert machine.host.facts.hostname == "gpu-07" or machine.host.facts.kernel == made.kernel
    gpus = machine.nvml.facts.gpus
    assert isinstance(gpus, list)
    assert [gpu.pci_address for gpu in gpus] == [gpu.address for gpu in made.gpus]
    assert {gpu.memory_total_mib for gpu in gpus} == {81559}


@pytest.mark.slow
def test_the_page_says_what_is_so() -> None:
    """All of it, as benchmarks/scorecard.py does."""
    taken = card.take(themes.all_faults())
    page = (Path(__file__).parents[2] / "docs" / "scorecard.md").read_text()
    assert card.tables(card.page(taken)) == card.tables(page), (
        "write it anew: .venv/bin/python benchmarks/scorecard.py --write"
    )

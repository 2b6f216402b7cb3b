"""Faults put below the product are found, and nothing is told of machines on which all is well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty import card, run, themes
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

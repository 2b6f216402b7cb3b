"""The PCI and kernel probes on this machine, each in a process of its own, as the collector runs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pythons
from processes import PATIENCE
from world.elf import kernel_module, modinfo
from world.kernel_tree import RELEASE, Tree

from envcheck.checks.engine import diagnose
from envcheck.collector.runtime import process
from envcheck.collector.worker import probe as worker
from envcheck.facts.kernel import Kernel
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot

KINDS = {"pci": Pci, "kernel": Kernel}


PYTHONS = [
    pytest.param(lambda: sys.executable, id="this"),
    pytest.param(lambda: pythons.need(6), id="3.6"),
]


def run(python: str, probe: str, **params: Any) -> tuple[Any, dict[str, str]]:
    """(facts, sources) of one probe; its answer has to be what the Snapshot's types expect."""
    argv = worker.command([python, "-I", "-S"], f"envcheck.collector.probes.{probe}", params)
    done = process.run(argv, PATIENCE)
    assert done.ok, done.tail(30)
    answer = worker.parse(done)
    return msgspec.convert(answer["facts"], KINDS[probe]), answer["sources"]


@pytest.mark.parametrize("python", PYTHONS)
def test_a_fake_machine_through_the_whole_door(python: Any, tmp_path: Path) -> None:
    """nouveau holds the GPU, the driver is built for another kernel: probes, JSON, types, checks."""
    tree = Tree(tmp_path)
    port = "pci0000:00/0000:00:01.0"
    tree.bridge(port)
    tree.device(port + "/0000:01:00.0", driver="nouveau")
    tree.write("/proc/sys/kernel/osrelease", RELEASE + "\n")
    tree.write("/proc/modules", "nouveau 1 0 - Live 0x0\n")
    tree.write("/lib/modules/5.15.0-1-generic/updates/dkms/nvidia.ko", kernel_module(modinfo()))
    tree.write("/dev/kmsg", "3,1,99,-;NVRM: Xid (PCI:0000:01:00): 48, pid=7\n")
    answers = {probe: run(python(), probe, root=str(tmp_path)) for probe in KINDS}
    machine = {
        "origin": "live",
        "location": "machine",
        "collected_at": "2026-11-20T18:24:52Z",
        "collector": {"version": "0", "python": "3"},
        **{
            probe: {"outcome": "ok", "facts": msgspec.to_builtins(facts), "sources": sources}
            for probe, (facts, sources) in answers.items()
        },
    }
    snapshot = msgspec.convert({"schema": 1, "redacted": True, "machine": machine}, Snapshot)
    by_name = {result.code: result for result in diagnose(snapshot).results}
    assert by_name["PCI-002"].outcome == "fail"
    assert by_name["PCI-002"].findings[0].evidence[0].value == "nouveau"
    assert by_name["KRN-003"].outcome == "fail"  # without nouveau there is no module for it either
    assert by_name["KRN-008"].findings[0].message.startswith("Xid 48")

"""The picture of a machine: every device once, within its edges, with what is wrong where it is."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree as ET

import demos
import h100
import networks
import pytest
from hostile import MARKUP
from msgspec.structs import replace

from envcheck.checks.engine import diagnose
from envcheck.facts.gpu import Gpu, MigInstance
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.reports.picture import picture
from envcheck.reports.topology import Topology, topology

SVG = "{http://www.w3.org/2000/svg}"
LONG = "NVIDIA " + "very long name of a GPU " * 9


def gpus(count: int, **changes: object) -> list[Gpu]:
    return [
        replace(h100.gpu(0), index=n, pci_address=f"0000:{n + 16:02x}:00.0", **changes)
        for n in range(count)
    ]


def machine(count: int, switches: int = 0, **changes: object) -> Snapshot:
    """Four GPUs a PCIe switch, and a switch a node; of NVSwitches as many as that."""
    found = gpus(count, **changes)
    devices = [
        h100.pci_device(
            f"0000:{n + 16:02x}:00.0",
            numa_node=n // 4,
            bridges=[f"0000:0{n // 4}:01.0", f"0000:0{n // 4}:02.0"],
        )
        for n in range(count)
    ]
    devices += [h100.pci_device(f"0000:f{n:x}:00.0", "nvswitch") for n in range(switches)]
    return h100.machine(found, pci=Pci(devices=devices))


def found(snapshot: Snapshot) -> Topology:
    return topology(snapshot, diagnose(snapshot).results)


def drawn(snapshot: Snapshot) -> ET.Element:
    root = ET.fromstring(picture(found(snapshot)))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for one in root.iter(f"{SVG}rect"):
        x, y = float(one.attrib["x"]), float(one.attrib["y"])
        assert 0 <= x <= x + float(one.attrib["width"]) <= width, one.attrib
        assert 0 <= y <= y + float(one.attrib["height"]) <= height, one.attrib
    for one in root.iter(f"{SVG}text"):
        assert 0 <= float(one.attrib["x"]) <= width and 0 <= float(one.attrib["y"]) <= height
    return root


def cards(root: ET.Element, kind: str = "gpu") -> list[ET.Element]:
    return [one for one in root.iter(f"{SVG}rect") if f"card {kind}" in one.get("class", "")]


def words(root: ET.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("switches", [0, 6])
@pytest.mark.parametrize("count", [1, 2, 4, 8, 16])
def test_every_gpu_has_a_card_of_its_own(count: int, switches: int) -> None:
    root = drawn(machine(count, switches))
    shown = cards(root)
    assert len(shown) == count
    tops = sorted(float(one.attrib["y"]) for one in shown)
    assert all(after - before >= 44 for before, after in itertools.pairwise(tops))
    assert {f"GPU {n}" for n in range(count)} <= set(words(root))
    drawn_switches = [one for one in root.iter(f"{SVG}rect") if "switch" in one.get("class", "")]
    assert 0 < len(drawn_switches) <= switches or not switches
    if len(drawn_switches) < switches:  # no room for a box each
        assert f"{switches - len(drawn_switches) + 1} NVSwitches" in words(root)
    told = [word for word in words(root) if word == "PCIe switch"]
    assert len(told) == (0 if count == 1 else max(1, count // 4))


@pytest.mark.parametrize("name", [LONG, *MARKUP])
def test_a_long_or_hostile_name_keeps_to_its_card(name: str) -> None:
    root = drawn(machine(4, name=name))
    assert len(cards(root)) == 4 and max(map(len, words(root))) < 60


def test_without_a_gpu_there_is_an_empty_place() -> None:
    empty = drawn(h100.empty_machine())
    assert "no NVIDIA GPU on the PCI bus" in words(empty) and not cards(empty)
    unknown = h100.empty_machine()
    unknown = replace(unknown, machine=replace(unknown.machine, pci=None, nvml=None))
    unknown = replace(unknown, machine=replace(unknown.machine, nvidia_smi=None))
    assert "its GPUs are not known" in words(drawn(unknown))


def test_gpus_of_which_no_place_is_known_hang_on_the_machine() -> None:
    snapshot = machine(4)
    snapshot = replace(snapshot, machine=replace(snapshot.machine, pci=None))
    root = drawn(snapshot)
    assert len(cards(root)) == 4 and "This machine" in words(root)
    assert "x16 Gen5" in words(root)  # as the driver says


def test_instances_of_mig_are_drawn() -> None:
    sizes = [MigInstance(gpu_instance=n, memory_mib=10240) for n in range(7)]
    root = drawn(machine(2, mig_enabled=True, mig_pending=True, mig_instances=sizes))
    assert words(root).count("10 G") == 14 and words(root).count("MIG") == 2
    none = drawn(machine(1, mig_enabled=True, mig_pending=True, mig_instances=[]))
    assert "on, without an instance" in words(none)


def test_what_a_finding_names_is_marked_and_nothing_else() -> None:
    odd = demos.odd()
    root = drawn(replace(odd, machine=demos.wired(odd.machine)))
    marked = [one.get("class", "") for one in root.iter() if "warn" in one.get("class", "").split()]
    assert sum("card gpu" in one for one in marked) == 1
    assert sum("wire" in one for one in marked) == 2  # its PCIe link and its NVLinks
    told = words(root)
    assert "x8 Gen5" in told and "of x16 Gen5" in told and "16 of 18" in told
    assert [one for one in told if one.startswith("PCI-005")]
    desc = root.find(f"{SVG}desc")
    assert desc is not None and "Wrong: GPU 3: PCI-005 has too few PCIe lanes" in (desc.text or "")


def test_heat_marks_the_gpu_and_not_its_link() -> None:
    root = drawn(demos.heat())
    marked = [one.get("class", "") for one in root.iter() if "fail" in one.get("class", "").split()]
    assert sum("card gpu" in one for one in marked) == 1
    assert not [one for one in marked if "wire" in one]


def test_a_lost_gpu_is_drawn_as_gone() -> None:
    root = drawn(h100.lost_gpu())
    gone = [one for one in cards(root) if "gone" in one.get("class", "")]
    assert len(cards(root)) == 8 and len(gone) == 1


def test_adapters_hang_where_they_are() -> None:
    snapshot = demos.healthy()
    snapshot = replace(snapshot, machine=demos.wired(snapshot.machine))
    root = drawn(snapshot)
    assert len(cards(root, "nic")) == 8 and len(cards(root)) == 8
    assert words(root).count("PCIe switch") == 4
    assert [word for word in words(root) if word.startswith("NUMA node")] == [
        "NUMA node 0",
        "NUMA node 1",
    ]


def test_a_wrong_adapter_is_marked() -> None:
    down = networks.port(state="DOWN", physical_state="Polling")
    rdma = [networks.adapter(n, *([down] if n == 2 else [])) for n in range(8)]
    snapshot = demos.of(demos.idle(), network=networks.infiniband(rdma=rdma))
    found_here = found(snapshot)
    wrong = [nic.title for nic in found_here.nics if nic.faults]
    assert wrong == ["mlx5_2"]


def test_text_stands_for_the_picture() -> None:
    text = picture(found(machine(8, 4)))
    assert re.search(r'role="img" aria-labelledby="machine-title machine-about"', text)
    assert "8 GPUs, 4 NVSwitches, no network adapter known. " in text

"""The PCI probe against fake trees, and its parsers against anything."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from world.kernel_tree import Tree, decode, reason

from envcheck.collector.linux import pci_acs
from envcheck.collector.probes import pci
from envcheck.facts.base import Unavailable
from envcheck.facts.pci import Pci, PciDevice

ROOT_PORT = "pci0000:00/0000:00:01.0"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def probe(tree: Tree) -> Pci:
    facts: Pci = decode(pci.collect(tree.context()), Pci)
    return facts


def only(tree: Tree) -> PciDevice:
    devices = probe(tree).devices
    assert isinstance(devices, list)
    assert len(devices) == 1
    return devices[0]


def test_a_healthy_gpu_below_a_root_port(tree: Tree) -> None:
    tree.bridge(ROOT_PORT, max_link_width="8", max_link_speed="16.0 GT/s PCIe")
    tree.device(
        ROOT_PORT + "/0000:01:00.0",
        iommu_group="17",
        aer_dev_fatal="Undefined 0\nDLP 1\nTOTAL_ERR_FATAL 1",
        aer_dev_nonfatal="Undefined 0\nTOTAL_ERR_NONFATAL 2",
        aer_dev_correctable="RxErr 3\nTOTAL_ERR_COR 3",
    )
    assert only(tree) == PciDevice(
        address="0000:01:00.0",
        kind="gpu",
        device_id="10de:2330",
        name=Unavailable(unavailable="absent", detail="no pci.ids on this machine"),
        driver_override=Unavailable(unavailable="absent", detail="none"),
        driver="nvidia",
        answers=True,
        power_state="D0",
        link_gts=32.0,
        link_width=16,
        max_link_gts=32.0,
        max_link_width=16,
        slot="0000:00:01.0",
        bridges=["0000:00:01.0"],
        slot_max_link_gts=16.0,
        slot_max_link_width=8,
        numa_node=1,
        iommu_group=17,
        aer_fatal=1,
        aer_nonfatal=2,
    )


@pytest.mark.parametrize(
    ("pci_class", "device", "kind"),
    [
        ("0x030000", "0x2b85", "gpu"),
        ("0x030200", "0x2330", "gpu"),
        ("0x068000", "0x22a3", "nvswitch"),
        ("0x068000", "0x03ec", "other"),  # a chipset of 2006
        ("0x040300", "0x22bd", "audio"),
        ("0x0c0330", "0x1ada", "usb"),
        ("0x0c8000", "0x1ad9", "other"),
        ("nonsense", "0x2330", "other"),
        ("0x030000", "", "other"),
    ],
)
def test_the_kind_by_class(tree: Tree, pci_class: str, device: str, kind: str) -> None:
    tree.device("pci0000:00/0000:00:05.0", **{"class": pci_class, "device": device})
    assert only(tree).kind == kind


def test_a_virtual_function_is_no_gpu_of_this_machine(tree: Tree) -> None:
    tree.device("pci0000:00/0000:01:00.4", config=b"\xff" * 64)
    tree.link("/sys/devices/pci0000:00/0000:01:00.4/physfn", "../0000:01:00.0")
    device = only(tree)
    assert device.kind == "other"
    assert reason(device.answers) == "not-supported"


def test_off_the_bus(tree: Tree) -> None:
    tree.bridge(ROOT_PORT)
    tree.device(
        ROOT_PORT + "/0000:01:00.0",
        config=b"\xff" * 64,
        current_link_speed="Unknown",
        current_link_width="63",
    )
    device = only(tree)
    assert device.answers is False
    assert reason(device.link_gts) == "not-supported"
    assert reason(device.link_width) == "not-supported"


def test_what_only_root_may_read_is_no_permission(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary user gets 64 bytes of a file that says it has 4096."""
    tree.bridge(ROOT_PORT, config=bytes(64))
    tree.device(ROOT_PORT + "/0000:01:00.0")
    monkeypatch.setattr(
        pci_acs, "os", SimpleNamespace(fstat=lambda _: SimpleNamespace(st_size=4096))
    )
    assert reason(probe(tree).acs_ports) == "no-permission"

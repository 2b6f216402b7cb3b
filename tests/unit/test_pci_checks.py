"""The checks on PCI: one fault at a time in a healthy machine, and what must raise no alarm."""

from __future__ import annotations

from typing import Any

import h100
import pytest
from build import snapshot
from judged import results
from kernel_machines import AREAS, judge
from msgspec.structs import replace

from envcheck.facts.base import ProgramSetting, Unavailable
from envcheck.facts.gpu import GpuPair
from envcheck.facts.host import Host
from envcheck.facts.kernel import ConfigLine, DkmsState, Kernel, KernelEvent, ModuleOption
from envcheck.facts.pci import Pci, PciDevice
from envcheck.facts.snapshot import Snapshot

ABSENT = Unavailable(unavailable="absent")
CLOSED = Unavailable(unavailable="no-permission")
BARE = Host(os_id="ubuntu", wsl=False, hypervisor=ABSENT)
ADDRESS = h100.ADDRESSES[h100.VICTIM]


def vfio(ids: str) -> ModuleOption:
    return ModuleOption(path="/etc/modprobe.d/vfio.conf", module="vfio_pci", name="ids", value=ids)


def devices(**changes: Any) -> list[PciDevice]:
    """The eight GPUs, the changes on one of them."""
    return [
        h100.pci_device(address, **(changes if n == h100.VICTIM else {}))
        for n, address in enumerate(h100.ADDRESSES)
    ]


@pytest.mark.parametrize(
    ("kernel", "gpu_support", "facts", "key"),
    [
        ("4.4.0-19041-Microsoft", "", {"wsl_device": False}, "wsl-1"),
        ("6.6.87.2-microsoft-standard-WSL2", "", {"wsl_device": False}, "wsl-without-gpu"),
        ("6.6.87.2-microsoft-standard-WSL2", "false", {"wsl_device": False}, "wsl-gpus-off"),
        ("6.6.87.2-microsoft-standard-WSL2", "false", {"wsl_device": True}, ""),
        ("6.6.87.2-microsoft-standard-WSL2", "", {"wsl_device": False, "container": "docker"}, ""),
    ],
)  # fmt: skip
def test_wsl_without_a_gpu(kernel: str, gpu_support: str, facts: dict[str, Any], key: str) -> None:
    given = ProgramSetting(name="wsl2.gpuSupport", value=gpu_support, source="%UserProfile%")
    host = replace(BARE, wsl=True, kernel=kernel, settings=[given], **facts)
    found = results(snapshot(host=host), AREAS)["PCI-001"].findings
    assert [one.cause.key for one in found] == [key] * bool(key)


def machine(found: list[PciDevice], **sections: Any) -> Snapshot:
    return h100.machine(**{"host": BARE, "pci": Pci(devices=found), **sections})


# PCI-001


def test_a_gpu_that_only_the_driver_lists_counts() -> None:
    result = judge(h100.machine(pci=Pci(devices=[])), "PCI-001")
    assert (result.outcome, result.detail) == (
        "pass",
        "8 × NVIDIA H100 80GB HBM3, listed by the driver",
    )


def test_wsl_is_not_judged() -> None:
    found = snapshot(host=Host(wsl=True), pci=Pci(devices=[]), kernel=Kernel(modules=[], log=[]))
    assert {r.outcome for r in results(found, AREAS).values()} == {"skipped"}


def test_a_udev_rule_that_takes_the_gpus_off_the_bus() -> None:
    rule = 'ATTR{vendor}=="0x10de", ATTR{class}=="0x%s", ATTR{remove}="1"'
    path = "/etc/udev/rules.d/50-remove-nvidia.rules"
    for kind, key in (("03[0-9]*", "gpu-removed-by-udev"), ("0c0330", "no-gpu")):
        kernel = Kernel(udev_rules=[ConfigLine(path=path, line=rule % kind)])
        found = snapshot(host=BARE, pci=Pci(devices=[]), kernel=kernel)
        (finding,) = judge(found, "PCI-001").findings
        assert finding.cause.key == key
        assert (path in str(finding.remedy)) == (key != "no-gpu")


# PCI-002


def test_a_rival_driver() -> None:
    result = judge(machine(devices(driver="nouveau")), "PCI-002")
    assert result.outcome == "fail"
    (finding,) = result.findings
    assert ADDRESS in finding.subject
    assert finding.evidence[0].fact == f"machine.pci.devices[{h100.VICTIM}].driver"
    assert finding.evidence[0].value == "nouveau"
    assert finding.remedy is not None
    assert any("/etc/modprobe.d/blacklist-" in command for command in finding.remedy.commands)
    assert "sudo update-initramfs -u" in finding.remedy.commands


def test_a_rival_that_took_what_nvidia_was_refused() -> None:
    lines = [
        KernelEvent(
            kind="module-rejected", text="Lockdown: modprobe: unsigned module loading is restricted"
        )
    ]
    built = [DkmsState(module="nvidia", version="1", state="installed", kernel="6.8")]
    gone = {"driver_version": ABSENT, "modules": [], "release": "6.8", "dkms": built}
    kernel = h100.kernel(log=lines, **gone)
    found = machine(devices(driver="nouveau"), kernel=kernel)
    assert judge(found, "PCI-002").outcome != "fail"


@pytest.mark.parametrize(
    ("override", "ids", "words"),
    [
        ("vfio-pci", "", f"/sys/bus/pci/devices/{ADDRESS}/driver_override"),
        ("vfio-pci", "10DE:2330,10de:10f0", "update-initramfs"),
        (ABSENT, "", "update-initramfs"),
    ],
)
def test_a_gpu_of_a_guest_comes_back_by_what_holds_it(override: Any, ids: str, words: str) -> None:
    options = [vfio(ids)] if ids else []
    held = devices(driver="vfio-pci", driver_override=override)
    result = judge(machine(held, kernel=h100.kernel(module_options=options)), "PCI-002")
    assert result.outcome == "warn" and result.findings[0].remedy is not None
    assert words in "\n".join(result.findings[0].remedy.commands)


@pytest.mark.parametrize(("ids", "outcome"), [("10de:2330", "warn"), ("10de:1b81", "pass")])
def test_a_gpu_that_nvidias_driver_took_before_vfio(ids: str, outcome: str) -> None:
    result = judge(machine(devices(), kernel=h100.kernel(module_options=[vfio(ids)])), "PCI-002")
    assert result.outcome == outcome
    assert all("vfio.conf" in finding.message for finding in result.findings)


# PCI-003


# PCI-004


# PCI-005


@pytest.mark.parametrize(
    ("now", "card", "slot", "outcome"), [(8, 16, 16, "warn"), (1, 16, 4, "fail")]
)
def test_the_links_width_is_judged_against_card_and_slot(
    now: int, card: int, slot: int, outcome: str
) -> None:
    found = machine(devices(link_width=now, max_link_width=card, slot_max_link_width=slot))
    result = judge(found, "PCI-005")
    assert result.outcome == outcome
    (finding,) = result.findings
    assert finding.remedy and len(finding.remedy.commands) == len(finding.subjects)


# PCI-007


def two_gpus(
    level: str = "PIX", p2p: str = "ok", nvlinks: bool = False, cpu: str = "", **pci: Any
) -> Snapshot:
    links = {} if nvlinks else {"nvlinks": Unavailable(unavailable="not-supported")}
    gpus = [h100.gpu(n, **links) for n in range(2)]
    first, second = h100.ADDRESSES[:2]
    pairs = [GpuPair(first=first, second=second, level=level, p2p_read=p2p)]
    found = [
        h100.pci_device(first, slot="0000:02:00.0", bridges=["0000:00:01.1", "0000:02:00.0"]),
        h100.pci_device(second, slot="0000:02:01.0", bridges=["0000:00:01.1", "0000:02:01.0"]),
    ]
    return h100.machine(
        gpus,
        host=replace(BARE, cpu_model=cpu) if cpu else BARE,
        pci=Pci(devices=found, **{"acs_ports": [], "iommu_mode": "identity", **pci}),
        nvml=h100.nvml(gpus, pairs=pairs),
    )


@pytest.mark.parametrize(
    "found",
    [
        two_gpus(),
        two_gpus(iommu_mode="DMA-FQ", acs_ports=["0000:02:01.0"], nvlinks=True),
        two_gpus(iommu_mode="DMA-FQ", acs_ports=["0000:02:01.0"], p2p="chipset not supported"),
        two_gpus(level="NODE", acs_ports=["0000:02:01.0"]),  # up to the processor in any case
        two_gpus(acs_ports=["0000:00:01.0"]),
        two_gpus(level="SYS", acs_ports=CLOSED),
        two_gpus(level="NODE", acs_ports=["0000:00:01.1"], cpu="Intel(R) Xeon(R) w7-3465X"),
        two_gpus(level="PHB", acs_ports=[], cpu="AMD EPYC 7763 64-Core Processor"),
        two_gpus(level="SYS", acs_ports=["0000:00:01.1"], cpu="AMD EPYC 7763 64-Core Processor"),
    ],
)
def test_no_alarm_where_transfers_are_not_hindered(found: Snapshot) -> None:
    assert judge(found, "PCI-007").outcome == "pass"

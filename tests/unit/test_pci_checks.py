"""The checks on PCI: one fault at a time in a healthy machine, and what must raise no alarm."""

from __future__ import annotations

from typing import Any

import h100
import pytest
from build import document, snapshot
from judged import results
from msgspec.structs import replace

from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import GpuPair, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel, KernelEvent, KernelModule
from envcheck.facts.pci import Pci, PciDevice
from envcheck.facts.snapshot import SCHEMA, Snapshot
from envcheck.findings.model import CheckResult

ABSENT = Unavailable(unavailable="absent")
CLOSED = Unavailable(unavailable="no-permission")
BARE = Host(os_id="ubuntu", wsl=False, hypervisor=ABSENT)
AREAS = ("pci", "kernel")
ADDRESS = h100.ADDRESSES[h100.VICTIM]


def devices(**changes: Any) -> list[PciDevice]:
    """The eight GPUs, the changes on one of them."""
    return [
        h100.pci_device(address, **(changes if n == h100.VICTIM else {}))
        for n, address in enumerate(h100.ADDRESSES)
    ]


def machine(found: list[PciDevice], **sections: Any) -> Snapshot:
    return h100.machine(**{"host": BARE, "pci": Pci(devices=found), **sections})


def judge(found: Snapshot, code: str) -> CheckResult:
    return results(found, AREAS)[code]


def test_a_healthy_machine_gives_no_alarm() -> None:
    found = h100.machine(host=BARE)
    told = {code: r for code, r in results(found, AREAS).items() if code.startswith("PCI")}
    assert {code: r.outcome for code, r in told.items()} == {
        "PCI-001": "pass",
        "PCI-002": "pass",
        "PCI-003": "pass",
        "PCI-004": "pass",
        "PCI-005": "pass",
        "PCI-006": "pass",
        "PCI-007": "pass",
        "PCI-008": "pass",
        "PCI-010": "pass",
    }
    assert told["PCI-010"].detail == "by NVLink"
    assert told["PCI-001"].detail == "8 × NVIDIA H100 80GB HBM3"
    assert told["PCI-005"].detail == "x16 (8 GPUs)"


# PCI-001


def test_no_gpu_is_one_failure_and_no_other() -> None:
    found = snapshot(
        host=BARE,
        pci=Pci(devices=[]),
        kernel=Kernel(modules=[], log=[], release="6.1", device_nodes=[]),
    )
    told = results(found, AREAS)
    assert told["PCI-001"].outcome == "fail"
    assert {r.outcome for code, r in told.items() if code != "PCI-001"} == {"skipped"}


def test_an_audio_device_is_no_gpu() -> None:
    found = snapshot(
        pci=Pci(devices=[PciDevice(address="0000:01:00.1", kind="audio", device_id="10de:1")])
    )
    assert judge(found, "PCI-001").outcome == "fail"


def test_a_machine_without_a_pci_bus_has_no_gpu_either() -> None:
    assert judge(snapshot(pci=Pci(devices=ABSENT)), "PCI-001").outcome == "fail"


@pytest.mark.parametrize("found", [[], ABSENT, CLOSED])
def test_a_gpu_that_only_the_driver_lists_counts(found: Any) -> None:
    result = judge(h100.machine(pci=Pci(devices=found)), "PCI-001")
    assert (result.outcome, result.detail) == (
        "pass",
        "8 × NVIDIA H100 80GB HBM3, listed by the driver",
    )


def test_what_cannot_be_looked_at_is_no_failure() -> None:
    assert judge(snapshot(pci=Pci(devices=CLOSED)), "PCI-001").outcome == "skipped"
    error = Unavailable(unavailable="error", detail="I/O error")
    assert judge(snapshot(pci=Pci(devices=error)), "PCI-001").outcome == "could-not-run"


def test_a_document_without_pci_facts_is_not_judged() -> None:
    told = results(Snapshot(schema=SCHEMA, redacted=True, machine=document()), AREAS)
    assert {r.outcome for r in told.values()} == {"skipped"}


def test_wsl_is_not_judged() -> None:
    found = snapshot(host=Host(wsl=True), pci=Pci(devices=[]), kernel=Kernel(modules=[], log=[]))
    assert {r.outcome for r in results(found, AREAS).values()} == {"skipped"}


def test_tegra_has_its_gpu_elsewhere() -> None:
    found = snapshot(pci=Pci(devices=[]), kernel=Kernel(modules=[KernelModule(name="nvgpu")]))
    assert judge(found, "PCI-001").outcome == "skipped"


# PCI-002


@pytest.mark.parametrize("driver", ["nouveau", "NovaCore", "nova_core"])
def test_a_rival_driver(driver: str) -> None:
    result = judge(machine(devices(driver=driver)), "PCI-002")
    assert result.outcome == "fail"
    (finding,) = result.findings
    assert ADDRESS in finding.subject
    assert finding.evidence[0].fact == f"machine.pci.devices[{h100.VICTIM}].driver"
    assert finding.evidence[0].value == driver
    assert finding.remedy is not None
    assert any("/etc/modprobe.d/blacklist-" in command for command in finding.remedy.commands)
    assert "sudo update-initramfs -u" in finding.remedy.commands


def test_a_rival_that_is_blacklisted_already_needs_a_new_ram_disk() -> None:
    found = machine(
        devices(driver="nouveau"),
        kernel=h100.kernel(blacklisted=["nouveau"]),
        host=Host(os_id="fedora", hypervisor=ABSENT),
    )
    remedy = judge(found, "PCI-002").findings[0].remedy
    assert remedy is not None
    assert remedy.commands == ["sudo dracut --force", "sudo reboot"]


def test_one_gpu_for_a_virtual_machine_is_a_warning() -> None:
    result = judge(machine(devices(driver="vfio-pci", driver_override="vfio-pci")), "PCI-002")
    assert (result.outcome, len(result.findings)) == ("warn", 1)


def test_all_gpus_for_virtual_machines_leave_none_for_this_one() -> None:
    found = machine(
        [h100.pci_device(address, driver="vfio-pci") for address in h100.ADDRESSES],
        kernel=Kernel(modules=[], log=[], release="6.8", module_files=[], driver_packages=[]),
        nvml=Nvml(init_code=9),
        nvidia_smi=h100.smi([]),
    )
    told = results(found, AREAS)
    assert told["PCI-002"].outcome == "fail"
    assert {r.outcome for code, r in told.items() if code != "PCI-002"} <= {"pass", "skipped"}


# PCI-003


def unbound(left: int = h100.COUNT - 1, **kernel: Any) -> Snapshot:
    """One GPU has no driver, and the driver lists ``left`` of the others."""
    others = [h100.gpu(n) for n in range(h100.COUNT) if n != h100.VICTIM][:left]
    return h100.machine(
        others, host=BARE, pci=Pci(devices=devices(driver=ABSENT)), kernel=h100.kernel(**kernel)
    )


def test_a_gpu_that_the_loaded_driver_refused() -> None:
    event = KernelEvent(kind="nvrm", text="NVRM: odd", pci_address=ADDRESS, count=3)
    result = judge(unbound(log=[event]), "PCI-003")
    assert result.outcome == "fail"
    assert "has not taken this GPU" in result.findings[0].message
    assert "3 times, last: NVRM: odd" in [e.value for e in result.findings[0].evidence]


def test_an_unbound_gpu_follows_from_a_missing_module() -> None:
    found = unbound(0, driver_version=ABSENT, modules=[], release="6.8", module_files=[])
    told = results(found, AREAS)
    assert told["KRN-001"].outcome == "fail"
    assert (told["PCI-003"].outcome, told["PCI-003"].consequence_of) == ("skipped", "KRN-001")


# PCI-004


def test_a_gpu_that_does_not_answer() -> None:
    result = judge(machine(devices(answers=False)), "PCI-004")
    assert [finding.subject for finding in result.findings] == [f"GPU {ADDRESS}"]
    assert result.outcome == "fail"


@pytest.mark.parametrize(
    "event",
    [
        KernelEvent(kind="xid", text="NVRM: Xid: 79", xid=79, pci_address=ADDRESS, seconds=12.0),
        KernelEvent(kind="fallen-off-bus", text="NVRM: fallen", pci_address=ADDRESS),
        KernelEvent(kind="fallen-off-bus", text="NVRM: fallen", pci_address="0000:ff:00.0"),
        KernelEvent(kind="fallen-off-bus", text="NVRM: fallen", pci_address=ABSENT),
    ],
)
def test_one_event_in_the_log_is_enough(event: KernelEvent) -> None:
    told = results(h100.machine(kernel=h100.kernel(log=[event])), AREAS)
    assert told["PCI-004"].outcome == "fail"
    assert len(told["PCI-004"].findings) == 1
    assert told["KRN-008"].outcome == "pass"  # told once


def test_an_unreadable_log_leaves_the_answers() -> None:
    result = judge(h100.machine(kernel=h100.kernel(log=CLOSED)), "PCI-004")
    assert result.outcome == "pass"
    assert [gap.needs_root for gap in result.unjudged] == [True]


def test_an_answer_that_could_not_be_read_is_none() -> None:
    error = Unavailable(unavailable="error", detail="I/O error")
    assert judge(machine(devices(answers=error)), "PCI-004").outcome == "could-not-run"


# PCI-005


@pytest.mark.parametrize(
    ("now", "card", "slot", "outcome"),
    [
        (8, 16, 16, "warn"),
        (8, 16, 8, "pass"),
        (8, 8, 16, "pass"),
        (1, 16, 4, "fail"),
        (4, 16, 16, "fail"),
        (16, 16, 32, "pass"),
    ],
)
def test_the_links_width_is_judged_against_card_and_slot(
    now: int, card: int, slot: int, outcome: str
) -> None:
    found = machine(devices(link_width=now, max_link_width=card, slot_max_link_width=slot))
    assert judge(found, "PCI-005").outcome == outcome


def test_the_links_speed_at_idle_is_not_judged() -> None:
    assert judge(machine(devices(link_gts=2.5)), "PCI-005").outcome == "pass"


@pytest.mark.parametrize(
    "changes",
    [
        {"power_state": "D3cold", "link_width": 1},
        {"slot_max_link_width": Unavailable(unavailable="not-collected"), "link_width": 1},
        {"answers": False, "link_width": 1},
    ],
)
def test_a_link_that_cannot_be_judged_leaves_the_others(changes: dict[str, Any]) -> None:
    result = judge(machine(devices(**changes)), "PCI-005")
    assert (result.outcome, result.findings) == ("pass", [])
    assert [gap.subject for gap in result.unjudged] == [f"GPU {ADDRESS}"]


@pytest.mark.parametrize("hypervisor", ["kvm", Unavailable(unavailable="not-collected")])
def test_made_up_slots_are_not_judged(hypervisor: Any) -> None:
    found = machine(devices(link_width=1), host=Host(hypervisor=hypervisor))
    assert judge(found, "PCI-005").outcome == "skipped"


# PCI-006


@pytest.mark.parametrize(
    ("fatal", "nonfatal", "outcome"), [(0, 0, "pass"), (1, 0, "warn"), (0, 2, "warn")]
)
def test_uncorrectable_errors_on_the_link(fatal: int, nonfatal: int, outcome: str) -> None:
    found = machine(devices(aer_fatal=fatal, aer_nonfatal=nonfatal, aer_correctable=99))
    assert judge(found, "PCI-006").outcome == outcome


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


def test_an_iommu_that_translates() -> None:
    result = judge(two_gpus(iommu_mode="DMA-FQ"), "PCI-007")
    assert (result.outcome, len(result.findings)) == ("warn", 1)


def test_acs_on_the_switch_between_two_gpus() -> None:
    result = judge(two_gpus(acs_ports=["0000:00:01.0", "0000:02:01.0"]), "PCI-007")
    assert result.outcome == "warn"
    assert result.findings[0].evidence[0].value == "0000:02:01.0"


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


@pytest.mark.parametrize("level", ["PHB", "NODE"])
def test_acs_on_the_root_ports_of_an_amd_processor(level: str) -> None:
    found = two_gpus(
        level=level, acs_ports=["0000:00:01.1"], cpu="AMD Ryzen Threadripper PRO 5995WX 64-Cores"
    )
    (finding,) = judge(found, "PCI-007").findings
    assert "hang" in finding.message
    assert finding.remedy is not None
    assert "gives up a protection" in finding.remedy.text
    assert finding.remedy.commands[1:] == ["sudo setpci -s 0000:00:01.1 ECAP_ACS+0x6.w=0000"]


# PCI-010


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (two_gpus(level="PHB"), "directly, by the processor's host bridge"),
        (two_gpus(p2p="chipset not supported"), "through the host's memory"),
        (h100.machine([h100.gpu()], nvml=h100.nvml([h100.gpu()])), "there is one GPU only"),
        (
            h100.machine([h100.gpu(0), h100.gpu(1, name="NVIDIA L40S")]),
            "the slowest sets the pace (1 x NVIDIA H100 80GB HBM3, 1 x NVIDIA L40S)",
        ),
    ],
)
def test_how_gpus_reach_each_other_is_told_and_never_a_fault(found: Snapshot, words: str) -> None:
    result = judge(found, "PCI-010")
    assert result.outcome in ("pass", "skipped")
    assert words in f"{result.detail} {result.reason}"


def test_what_root_could_tell_about_acs() -> None:
    result = judge(two_gpus(acs_ports=CLOSED), "PCI-007")
    assert result.outcome == "skipped"
    assert result.unjudged[0].needs_root


def test_one_gpu_or_a_virtual_machine_has_no_such_trouble() -> None:
    single = h100.machine([h100.gpu()], host=BARE, pci=Pci(devices=devices()[:1], iommu_mode="DMA"))
    assert judge(single, "PCI-007").outcome == "skipped"
    virtual = h100.machine(host=Host(hypervisor="kvm"))
    assert judge(virtual, "PCI-007").outcome == "skipped"

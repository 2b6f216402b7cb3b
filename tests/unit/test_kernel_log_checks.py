"""The checks on what logs say besides Xids: one fault at a time, what is over, and other machines' lines."""

from __future__ import annotations

from typing import Any

import h100
import pytest
from build import snapshot
from judged import results

from envcheck.collector.facts import is_unavailable
from envcheck.collector.linux import gpu_events
from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import KernelEvent
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult, Finding

ABSENT = Unavailable(unavailable="absent")
BARE = Host(os_id="ubuntu", wsl=False, hypervisor=ABSENT, container=ABSENT)
ADDRESS = h100.ADDRESSES[h100.VICTIM]
PORT = "0000:60:01.0"
AREAS = ("pci", "kernel", "driver", "gpu")
LOADED = "[ 5.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05"


def log(*lines: str) -> list[KernelEvent]:
    """What the collector makes of these lines."""
    events = gpu_events.fold(gpu_events.parse_text("\n".join(lines)))
    known = [
        {name: ABSENT if is_unavailable(value) else value for name, value in event.items()}
        for event in events
    ]
    return [KernelEvent(**event) for event in known]


def judge(found: Snapshot, code: str) -> CheckResult:
    return results(found, AREAS)[code]


def only(result: CheckResult, level: str = "fail") -> Finding:
    (finding,) = result.findings
    assert finding.level == level and finding.evidence and finding.remedy is not None
    return finding


def machine(*lines: str, gpus: Any = None, **kernel: Any) -> Snapshot:
    devices = [h100.pci_device(a, slot=PORT if a == ADDRESS else ABSENT) for a in h100.ADDRESSES]
    facts = h100.kernel(release="6.8.0-45-generic", log=log(*lines), **kernel)
    return h100.machine(gpus, host=BARE, pci=Pci(devices=devices), kernel=facts)


RESET = f"NVRM: Rate limiting GSP RPC error prints for GPU at PCI:{ADDRESS[:-2]} (printing 1 of every 30)."
NEEDS = "  The GPU likely needs to be reset."
UVM = "nvidia-uvm: uvm_global.c:279 uvm_global_set_fatal_error_impl[1] ERR: Encountered a global fatal error"
MISMATCH = (
    "NVRM: API mismatch: the client has the version 550.54.15, but",
    "NVRM: this kernel module has the version 535.104.05.  Please",
)


@pytest.mark.parametrize(
    ("lines", "level", "words", "command"),
    [
        ([UVM], "fail", "stopped for good", "modprobe -r nvidia_uvm"),
        (list(MISMATCH), "warn", "550.54.15", "libcuda.so"),
    ],
)
def test_lines_of_the_driver_without_an_xid(
    lines: list[str], level: str, words: str, command: str
) -> None:
    finding = only(judge(machine(LOADED, *(f"[ 99.0] {line}" for line in lines)), "KRN-014"), level)
    assert words in finding.message
    assert finding.remedy is not None
    assert any(command in one for one in finding.remedy.commands), finding.remedy.commands


def test_a_gpu_that_does_not_say_what_it_needs_fails() -> None:
    gpus = [h100.gpu(n, recovery_action=ABSENT, reset_required=ABSENT) for n in range(h100.COUNT)]
    found = only(judge(machine(f"[ 99.0] {RESET}{NEEDS}", gpus=gpus), "KRN-014"))
    assert found.subjects[0].index == h100.VICTIM and found.subjects[0].uuid


@pytest.mark.parametrize(
    ("line", "key", "answers"),
    [
        (f"NVRM: GPU {ADDRESS}: RmInitAdapter failed! (0x62:0x1a:2631)", "gpu-not-started", ""),
        ("NVRM: rm_init_adapter failed for device bearing minor number 0", "gpu-not-started", ""),
        ("NVRM: Can't find an IRQ for your NVIDIA card!", "no-interrupt", ""),
        (f"NVRM: GPU {ADDRESS} is already bound to nouveau.", "held-by-other-driver", ""),
        (f"pci {ADDRESS}: BAR 1: no space for [mem size 0x10000000 64bit pref]", "no-room-for-bar", ""),
        (f"pci {ADDRESS}: BAR 1 [mem size 0x1000 64bit pref]: can't assign; no space", "no-room-for-bar", ""),
        ("NVRM: GSP_FW init failed", "gsp-not-started", ""),
        ("NVRM: GspRmControl failed: NV_ERR_TIMEOUT", "gsp-not-started", ""),
        ("NVRM: watchdog found GPU 0 stuck", "gpu-stuck", "fail"),
        ("RIP: 0010:_nv012345rm+0x12/0x50 [nvidia]", "kernel-stopped-in-driver", "warn"),
        ("INFO: task nvidia-smi:1234 blocked for more than 120 seconds.", "driver-call-hangs", "warn"),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [nvidia-smi:1234]", "driver-call-hangs", "warn"),
        ("NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!",
         "nvlink-not-found", ""),
        ("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!",
         "nvlink-not-found", ""),
    ],
)  # fmt: skip
def test_a_line_by_what_it_says_and_by_whether_the_driver_lists_the_gpu(
    line: str, key: str, answers: str
) -> None:
    """On a machine with one GPU, which a line without an address is about."""
    gpu = h100.pci_device(ADDRESS)
    kernel = h100.kernel(release="6.8.0-45-generic", log=log(LOADED, f"[ 99.0] {line}"))
    common: Any = {"host": BARE, "pci": Pci(devices=[gpu]), "kernel": kernel}
    found = [
        finding
        for result in results(snapshot(**common, nvml=Nvml(init_code=9)), ("kernel",)).values()
        for finding in result.findings
        if finding.cause.key.startswith(key)
    ]
    (finding,) = found
    assert ADDRESS in finding.subject and finding.remedy is not None and finding.remedy.commands
    works = h100.machine([h100.gpu(h100.VICTIM)], **common)
    levels = [one.level for r in results(works, ("kernel",)).values() for one in r.findings]
    assert levels == ([answers] if answers else [])


@pytest.mark.parametrize(
    "line",
    [
        "INFO: task python3:1234 blocked for more than 120 seconds.",
        "RIP: 0010:amdgpu_device_init+0x12/0x50 [amdgpu]",
        "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kworker/1:1]",
        "pci 0000:05:00.0: BAR 6: no space for [mem size 0x00080000 pref]",
        "NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!",
        "NVRM: Persistence mode is deprecated and will be removed in a future release.",
        "nvidia-modeset: ERROR: GPU:0: Failed to query display engine channel state",
        "nvidia-modeset: WARNING: GPU:0: Lost display notification",
        "nvidia: loading out-of-tree module taints kernel.",
        "NVRM: GPU 0000:1b:00.0: Failed to bring up GSP.",  # and is listed now
        "mce: [Hardware Error]: Machine check events logged",
        "pcieport 0000:00:02.0: AER: Corrected error received: id=0010",
        "pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
        "nvme 0000:05:00.0: AER: can't recover (no error_detected callback)",
        f"nvidia {ADDRESS}: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Receiver ID)",
        f"pcieport {PORT}: AER: enabled with IRQ 28",
        f"pcieport {PORT}: DPC: enabled with IRQ 28",
        f"pcieport {PORT}: DPC: error containment capabilities: Int Msg #0, RPExt+ PoisonedTLP+",
        f"pcieport {PORT}: AER: device recovery successful",
        "DMAR: [DMA Read] Request device [05:00.0] fault addr 0x0 [fault reason 0x06]",
    ],
)
def test_lines_that_are_no_alarm(line: str) -> None:
    result = results(machine(LOADED, f"[ 99.0] {line}"), AREAS)
    assert {code: result[code].outcome for code in ("KRN-008", "KRN-013", "KRN-014", "KRN-015")} == {
        "KRN-008": "pass", "KRN-013": "pass", "KRN-014": "pass", "KRN-015": "pass",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "level", "words"),
    [
        (f"pcieport {PORT}: AER: Uncorrected (Fatal) error received: id=0010", "fail", "PCIe"),
        (f"pcieport {PORT}: AER: Uncorrectable (Non-Fatal) error received: {ADDRESS}", "warn", "PCIe"),
        (f"nvidia {ADDRESS}: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003]", "warn", "IOMMU"),
    ],
)  # fmt: skip
def test_lines_of_the_kernel_on_the_bus(line: str, level: str, words: str) -> None:
    finding = only(judge(machine(f"[ 99.0] {line}"), "KRN-015"), level)
    assert words in finding.message
    assert words == "machine itself" or ADDRESS in finding.subject


def test_pcie_errors_that_only_the_counters_hold() -> None:
    devices = [h100.pci_device(a, aer_fatal=int(a == ADDRESS)) for a in h100.ADDRESSES]
    kernel = h100.kernel(release="6.8.0-45-generic", log=[])
    finding = only(
        judge(h100.machine(host=BARE, pci=Pci(devices=devices), kernel=kernel), "KRN-015"), "warn"
    )
    assert ADDRESS in finding.subject and "1 fatal" in finding.message


def xids(*codes: int) -> list[str]:
    return [f"[ {n}.0] NVRM: Xid (PCI:{ADDRESS[:-2]}): {code}, x" for n, code in enumerate(codes)]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (152, "warn"),
        (153, "warn"),
        (159, "warn"),
        (166, "warn"),
        (167, "fail"),
        (168, "fail"),
        (169, "fail"),
        (170, "warn"),
        (56, "pass"),
        (58, "warn"),
        (14, "pass"),
    ],
)
def test_the_later_half_of_the_catalog(code: int, outcome: str) -> None:
    assert judge(machine(*xids(code)), "KRN-008").outcome == outcome


def test_a_gpu_that_had_to_be_reset_and_was() -> None:
    found = judge(machine(LOADED, f"[ 99.0] {RESET}{NEEDS}"), "KRN-014")
    assert only(found, "warn").cause.key == "reset-required-listed"


def test_an_nvswitch_and_a_gpu_that_fail_in_the_same_moment() -> None:
    switch = (
        "[ 0.5] nvidia-nvswitch1: SXid (PCI:0000:aa:00.0): 24007, Severity 1 Engine instance 12"
    )
    finding = only(judge(machine(switch, *xids(62)), "KRN-008"))
    assert [one.address for one in finding.subjects] == ["0000:aa:00.0", ADDRESS]


def test_memory_beyond_repair_is_one_finding_with_what_came_of_it() -> None:
    assert only(judge(machine(*xids(48, 64, 62)), "KRN-008")).cause.key == "memory-not-replaceable"


def test_hot_processors_are_no_gpu() -> None:
    line = "mce: CPU14: Package temperature is above threshold, cpu clock is throttled (total events = 26)"
    finding = only(judge(machine(LOADED, *xids(31), f"[ 99.0] {line}"), "KRN-014"), "warn")
    assert "processors" in finding.message and not finding.subjects


def test_a_board_with_nvswitches_that_lacks_a_gpu() -> None:
    devices = [h100.pci_device(a) for a in h100.ADDRESSES[1:]]
    devices.append(h100.pci_device("0000:aa:00.0", kind="nvswitch"))
    found = h100.machine(
        [h100.gpu(n) for n in range(1, h100.COUNT)],
        host=BARE,
        pci=Pci(devices=devices),
        kernel=h100.kernel(log=[]),
    )
    assert "7 GPUs" in only(judge(found, "PCI-004"), "warn").message


def test_a_line_that_no_table_knows_is_shown() -> None:
    line = "[ 9.0] gdrdrv: Unable to pin a page of no known kind: error -14"
    result = judge(machine(LOADED, line), "KRN-014")
    assert result.outcome == "pass" and "error -14" in result.note
    assert judge(machine(LOADED, "[ 9.0] nvidia-uvm: Loaded the UVM driver"), "KRN-014").note == ""

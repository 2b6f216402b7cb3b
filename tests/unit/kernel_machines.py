"""The healthy machine with one fault on the kernel's side, for the tests of those checks."""

from __future__ import annotations

from typing import Any

import h100
from build import snapshot
from judged import results

from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import Gpu, Nvml
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel, KernelEvent
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult, Finding

ABSENT = Unavailable(unavailable="absent")
RELEASE = "6.8.0-45-generic"
ADDRESS = h100.ADDRESSES[h100.VICTIM]
BARE = Host(os_id="ubuntu", wsl=False, hypervisor=ABSENT, container=ABSENT)
AREAS = ("pci", "kernel")


def judge(found: Snapshot, code: str) -> CheckResult:
    return results(found, AREAS)[code]


def only(result: CheckResult, level: str = "fail") -> Finding:
    (finding,) = result.findings
    assert finding.level == level
    assert result.outcome == level
    assert finding.evidence
    return finding


def healthy(gpus: list[Gpu] | None = None, host: Host = BARE, **kernel: Any) -> Snapshot:
    """The healthy machine with these facts of the kernel."""
    facts = h100.kernel(**{"release": RELEASE, **kernel})
    return h100.machine(gpus, host=host, kernel=facts)


def unloaded(host: Host = BARE, device_id: str = "", **kernel: Any) -> Snapshot:
    """A machine without a loaded driver, with the eight GPUs, or with one of that id."""
    lists = ("modules", "module_files", "driver_packages", "driver_files", "kept_out", "log")
    absent = ("driver_version", "driver_flavour", "dkms", "runfile_installer")
    facts: dict[str, Any] = {"release": RELEASE, "device_nodes": []}
    facts |= {name: [] for name in lists} | dict.fromkeys(absent, ABSENT)
    devices = [h100.pci_device(address, driver=ABSENT) for address in h100.ADDRESSES]
    if device_id:
        devices = [h100.pci_device(h100.ADDRESSES[0], driver=ABSENT, device_id=device_id)]
    return snapshot(
        host=host,
        pci=Pci(devices=devices),
        kernel=Kernel(**{**facts, **kernel}),
        nvml=Nvml(init_code=9),
    )


def event(text: str, kind: Any = "module-rejected", **more: Any) -> KernelEvent:
    return KernelEvent(kind=kind, text=text, **more)

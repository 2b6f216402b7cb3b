"""What the checks on PCI and on the kernel share: the NVIDIA devices, and the machine around them."""

from __future__ import annotations

import re
from collections import Counter

from ..facts.host import Host
from ..facts.kernel import DeviceNode, Kernel, KernelEvent
from ..facts.missing import CannotJudge, Skip
from ..facts.pci import Pci, PciDevice
from ..facts.view import SnapshotView, fact, facts_of, facts_or, need
from .driver_state import on_wsl
from .reading import Unavailable, known
from .verdicts import Evidence

ON_WSL = "on WSL the GPU's kernel driver is Windows' own"
# sysfs name of NVIDIA's own drivers, by what they drive.
NVIDIA_DRIVERS = ("nvidia", "nvidia-nvswitch")
# Drivers that hold a device for a virtual machine.
PASSTHROUGH = ("vfio_pci", "nvgrace_gpu_vfio_pci", "nvidia_vgpu_vfio", "pci_stub", "pciback")
GPU_NODE = re.compile(r"/dev/nvidia\d+\Z")


def pci_devices(view: SnapshotView) -> list[PciDevice]:
    """NVIDIA's devices on the bus; raises CannotJudge on WSL and where nobody could look."""
    if on_wsl(view):
        raise Skip(ON_WSL)
    return need(facts_of(view.machine.pci, "PCI devices").devices, "PCI devices")


def pci_gpus(view: SnapshotView) -> list[PciDevice]:
    gpus = [device for device in pci_devices(view) if device.kind == "gpu"]
    if not gpus:
        raise Skip("no NVIDIA GPU on the PCI bus")
    return gpus


def kernel_facts(view: SnapshotView) -> Kernel:
    """The kernel's facts on a machine that has, or may have, a GPU; raises CannotJudge elsewhere."""
    facts = facts_of(view.machine.kernel, "the kernel's facts")
    if on_wsl(view):
        raise Skip(ON_WSL)
    devices = facts_or(view.machine.pci, Pci).devices
    if known(facts.driver_version) is not None:
        return facts  # a loaded driver has a GPU, be it one that is not on PCI
    if isinstance(devices, Unavailable) and devices.unavailable == "absent":
        raise Skip("this machine has no PCI bus")
    if known(devices) is not None and not any(one.kind == "gpu" for one in known(devices) or []):
        raise Skip("no NVIDIA GPU on the PCI bus")
    return facts


def known_kernel(view: SnapshotView) -> Kernel | None:
    probe = view.machine.kernel
    return None if probe is None else probe.facts


def is_loaded(kernel: Kernel, module: str = "nvidia") -> bool | None:
    """Whether a module is loaded; None where that is not known."""
    if module == "nvidia" and known(kernel.driver_version) is not None:
        return True
    modules = known(kernel.modules)
    if modules is None:
        return None
    return any(one.name == module and known(one.state) in ("Live", None) for one in modules)


def driver_runs(view: SnapshotView, kernel: Kernel) -> bool | None:
    """Whether the nvidia module is at work: loaded, or, where a sandbox hides that, listing GPUs."""
    return True if listed_gpus(view) else is_loaded(kernel)


def driver_name(device: PciDevice) -> str | None:
    """The bound driver in one spelling: "vfio_pci", "nova_core"; None where none is bound."""
    driver = known(device.driver)
    if driver is None:
        return None
    name = driver.lower().replace("-", "_")
    return "nova_core" if name in ("novacore", "nova") else name


def held_for_guests(device: PciDevice) -> bool:
    return driver_name(device) in PASSTHROUGH


def device_evidence(view: SnapshotView, device: PciDevice, *fields: str) -> list[Evidence]:
    devices = fact(view.machine.pci, "devices") or []
    position = devices.index(device) if device in devices else 0
    return [
        view.evidence(f"machine.pci.devices[{position}].{field}", getattr(device, field))
        for field in fields
    ]


def event_evidence(view: SnapshotView, event: KernelEvent) -> Evidence:
    """The Evidence for a line of the kernel log: its text, how often it came, when the last time."""
    seconds = known(event.seconds)
    when = f" ({seconds:.0f} s after boot)" if seconds is not None else ""
    times = f"{event.count} times, last: " if event.count > 1 else ""
    return view.evidence("machine.kernel.log", f"{times}{event.text}{when}")


def listed_gpus(view: SnapshotView) -> dict[str, str]:
    """{PCI address: name} of the GPUs that the driver itself lists; empty where it lists none."""
    try:
        gpus = view.gpus
    except CannotJudge:
        return {}
    return {
        known(gpu.pci_address) or f"#{n}": known(gpu.name) or "GPU" for n, gpu in enumerate(gpus)
    }


def summary(names: list[str]) -> str:
    """ "8 × NVIDIA H100 80GB HBM3" """
    return ", ".join(f"{count} × {name}" for name, count in Counter(names).items())


def open_to_all(node: DeviceNode) -> bool:
    return bool(re.fullmatch("[0-7]{0,5}[67]", node.mode))


def host_facts(view: SnapshotView) -> Host:
    return facts_or(view.machine.host, Host)


def is_virtual(view: SnapshotView) -> bool:
    """Whether this is a virtual machine; raises CannotJudge where that is not known."""
    hypervisor = host_facts(view).hypervisor
    if isinstance(hypervisor, Unavailable):
        if hypervisor.unavailable == "absent":
            return False
        need(hypervisor, "whether this is a virtual machine")
    return True


def kept_closed(kernel: Kernel) -> list[DeviceNode]:
    """The GPUs' nodes that their mode opens to all, and that are closed all the same.

    That is what a device cgroup does, by which schedulers keep a job off other jobs' GPUs.
    """
    nodes = [node for node in known(kernel.device_nodes) or [] if GPU_NODE.match(node.path)]
    return [node for node in nodes if not node.usable and open_to_all(node)]

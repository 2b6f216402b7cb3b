"""What checks share on the driver: the codes that explain why it is missing, its version, device nodes."""

from __future__ import annotations

from ..data.versions import parse_version
from ..facts.kernel import DeviceNode, Service
from ..facts.view import SnapshotView, fact
from .reading import NOT_COLLECTED, Maybe, Unavailable, known
from .system_commands import on_system, systemctl
from .verdicts import Remedy

# Failures that explain why no driver answers: no device, another driver, none, no module, a rejected one.
NO_DRIVER = ("PCI-001", "PCI-002", "PCI-003", "KRN-001", "KRN-002")
# Failures that explain why no GPU can be judged. PCI-002 and PCI-003 are not among them: they may be
# about one GPU of several, and where they are about all of them KRN-001 or DRV-001 fails too.
NO_GPUS = ("PCI-001", "KRN-001", "KRN-002", "DRV-002", "DRV-001")

# And why a target, which may be a container, has none.
NO_GPUS_THERE = (*NO_GPUS, "BND-002", "BND-003", "BND-005")

# NVML's brand of boards without a display that are meant for computing: Tesla, and since 2020 plain NVIDIA.
DATA_CENTRE_BRANDS = ("Tesla", "NVIDIA")

REBOOT = "sudo reboot"
NVRM_LOG = "sudo dmesg | grep -iE 'nvrm|xid'"
# Keeps what the driver knows of an error; a reset or a reboot wipes it out.
REPORT = "sudo nvidia-bug-report.sh"
# Who has to stop before a module is unloaded, a GPU reset or the machine rebooted.
HOLDERS = "sudo fuser -v /dev/nvidia*"


def then_reboot(commands: list[str]) -> list[str]:
    """The commands and a reboot; none where there are none, for a reboot alone changes nothing."""
    return [*commands, REBOOT] if commands else []


def container(view: SnapshotView) -> str | None:
    """The kind of container that the facts were gathered in ("docker"), None outside of one."""
    kind: str | None = fact(view.machine.host, "container")
    return kind


def on_wsl(view: SnapshotView) -> bool:
    return fact(view.machine.host, "wsl") is True


def on_windows(view: SnapshotView) -> bool:
    """Whether the document was written on Windows: its GPUs have a driver model."""
    listed = (fact(view.machine.nvml, "gpus") or [], fact(view.machine.nvidia_smi, "gpus") or [])
    return any(known(gpu.driver_model) for gpus in listed for gpu in gpus)


def driver_version(view: SnapshotView) -> tuple[Maybe[str], str]:
    """The driver's version and the path of the fact: from NVML, else nvidia-smi, else the module."""
    missing: Maybe[str] = NOT_COLLECTED
    for section in ("nvml", "nvidia_smi", "kernel"):
        probe = getattr(view.machine, section)
        if probe is None or probe.facts is None:
            continue
        version: Maybe[str] = probe.facts.driver_version
        if not isinstance(version, Unavailable):
            return version, f"machine.{section}.driver_version"
        if missing is NOT_COLLECTED:
            missing = version
    return missing, "machine.nvml.driver_version"


def branch(version: str | None) -> str:
    """A driver's branch as packages are named after it: "535"; "" where it is not known."""
    parsed = parse_version(version) if version else None
    return str(parsed.major) if parsed is not None else ""


def device_node(view: SnapshotView, path: str) -> DeviceNode | bool | None:
    """The device node; None where it is not there, False where nobody looked."""
    nodes: list[DeviceNode] | None = fact(view.machine.kernel, "device_nodes")
    if nodes is None:
        return False
    return next((node for node in nodes if node.path == path), None)


def service(view: SnapshotView, name: str) -> Service | None:
    kernel = view.machine.kernel
    services = kernel.facts.services if kernel is not None and kernel.facts is not None else []
    return next((entry for entry in services if entry.name == name), None)


def driver_libraries(view: SnapshotView) -> list[str]:
    return on_system(view, "driver-libraries", branch=branch(known(driver_version(view)[0])))


def install_fabric_manager(view: SnapshotView) -> list[str]:
    """The commands that install the fabric manager of the driver's version; [] where that is not known."""
    driver = known(driver_version(view)[0]) or ""
    number = branch(driver)
    return on_system(view, "fabric-manager", branch=number, driver=driver) if number else []


def fabric_remedy(view: SnapshotView) -> Remedy:
    return Remedy(
        "Install and start the fabric manager of exactly the driver's version.",
        [
            *install_fabric_manager(view),
            systemctl("enable --now", "nvidia-fabricmanager"),
            systemctl("status", "nvidia-fabricmanager"),
        ],
    )

"""What a GPU's place in the NVSwitch fabric is lacking: each fault that the fabric tells, and its remedy."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.view import SnapshotView
from ...findings.model import Finding, Remedy
from ..driver.cuinit import fabric_remedy
from ..driver_state import REPORT, driver_version, service
from ..gpus import address_of, finding, reset
from ..nvidia_devices import known_kernel

_MANAGER = "nvidia-fabricmanager"
_LOG = f"journalctl -u {_MANAGER} -n 100"
_FABRIC = "nvidia-smi -q | grep -A 14 -i fabric"
# Boards whose switches stand in trays of their own, with the fabric manager in one of them.
_MULTI_NODE = ("GB200", "GB300")


def _zeros(cluster: str) -> bool:
    return not cluster.strip("0-")


def is_multi_node(gpu: Gpu) -> bool:
    """Whether the fabric goes beyond the machine, and its manager runs elsewhere."""
    name, cluster = known(gpu.name) or "", known(gpu.fabric_cluster)
    return any(one in name for one in _MULTI_NODE) or (cluster is not None and not _zeros(cluster))


def rejoin(view: SnapshotView, gpu: Gpu) -> Remedy:
    """What brings a GPU into the fabric, by what runs on this machine."""
    if is_multi_node(gpu):
        return Remedy(
            "The fabric manager of a multi-node NVLink system runs on its switches: look there whether it"
            " runs"
            " and has this node in a partition; then see the IMEX service here, and reset the GPU.",
            [
                _FABRIC,
                "systemctl status nvidia-imex",
                "nvidia-imex-ctl -N",
                REPORT,
                f"sudo nvidia-smi --gpu-reset -i {address_of(gpu)}",
            ],
        )
    manager = service(view, _MANAGER)
    if manager is None or known(manager.running) is not True:
        return fabric_remedy(view)
    driver, own = known(driver_version(view)[0]), known(manager.version)
    if driver and own and driver != own:
        return fabric_remedy(view)
    return Remedy(
        "The fabric manager runs and could not bring the GPU in: read its log, then restart it while nothing"
        " uses the GPUs; where it stays, reset the GPUs and NVSwitches together, or reboot.",
        [
            _LOG,
            "tail -n 100 /var/log/fabricmanager.log",
            f"sudo systemctl restart {_MANAGER}",
            REPORT,
            "sudo nvidia-smi --gpu-reset",
        ],
    )


# Fault (collector/nvml/labels.py): level, what it means, headline. Its remedy is in `_remedy`.
_FAULTS = {
    "degraded_bandwidth": (
        "warn",
        "The NVSwitch fabric has limited capacity at this GPU (degraded bandwidth): some of its NVLinks or"
        " switch ports are out, and exchange between GPUs is slower.",
        "has degraded NVLink bandwidth",
    ),
    "route_recovery_in_progress": (
        "warn",
        "NVLink routes of this GPU are being recovered after a failure: exchange between GPUs stands still or"
        " fails until that is done.",
        "has NVLink routes in recovery",
    ),
    "route_unhealthy": (
        "fail",
        "The recovery of this GPU's NVLink routes failed or was aborted (route unhealthy): exchange with"
        " other"
        " GPUs hangs or fails.",
        "has unhealthy NVLink routes",
    ),
    "access_timeout_recovery": (
        "warn",
        "The GPU recovers from a timeout of access over NVLink: programs that share memory with other GPUs"
        " hang"
        " or die until that is done.",
        "recovers from an NVLink access timeout",
    ),
    "incorrect_system_guid": (
        "fail",
        "The fabric manager found a wrong system GUID: the board's or tray's identity does not belong to this"
        " fabric, and the GPU is left out of it.",
        "has a wrong system GUID in its fabric",
    ),
    "incorrect_chassis_serial_number": (
        "fail",
        "The chassis' serial number is not that of the fabric's other nodes: this node is cabled, or was"
        " put, into"
        " another rack's fabric, and the GPU is left out of it.",
        "has another chassis' serial number",
    ),
    "no_partition": (
        "fail",
        "The GPU is in no partition of the NVSwitch fabric: it reaches no other GPU over NVLink.",
        "is in no NVLink partition",
    ),
    "partition_not_assigned": (
        "fail",
        "No partition of the NVSwitch fabric is assigned to the GPU: it reaches no other GPU over NVLink.",
        "is in no NVLink partition",
    ),
    "insufficient_nvlinks": (
        "fail",
        "The GPU has too few NVLinks up for the fabric (insufficient NVLinks): it is left out, and reaches"
        " other"
        " GPUs over PCIe or the network alone.",
        "has too few NVLinks for its fabric",
    ),
    "incompatible_gpu_firmware": (
        "fail",
        "The GPU's firmware does not go with the fabric's: the GPU is left out of it.",
        "has firmware that its fabric refuses",
    ),
    "invalid_location": (
        "fail",
        "The GPU's place (chassis, slot, tray) is not one that the fabric knows: the GPU is left out of it.",
        "is in a place that its fabric does not know",
    ),
    "gpu_state_invalid": (
        "fail",
        "The GPU is in a state that the fabric does not take (GPU state invalid): it is left out of it.",
        "is in a state that its fabric refuses",
    ),
    "fabric_manager_disconnected": (
        "warn",
        "The fabric has lost its global fabric manager: what runs goes on, and no failure is repaired and no"
        " partition changed until it is back.",
        "has lost its fabric manager",
    ),
}


def told_faults(view: SnapshotView, gpu: Gpu, faults: list[str]) -> Iterator[Finding]:
    """A Finding for each fault; one that another says more exactly is left out."""
    for fault in faults:
        if fault == "partition_not_assigned" and "no_partition" in faults:
            continue
        level, message, headline = _FAULTS.get(
            fault,
            (
                "fail",
                f"The NVSwitch fabric is unhealthy at this GPU ({fault.replace('_', ' ')}): exchange"
                " between GPUs is"
                " slow or fails.",
                "",
            ),
        )
        yield finding(
            view,
            level,
            gpu,
            message,
            "fabric_faults fabric_state fabric_status fabric_health fabric_clique",
            _remedy(view, gpu, fault),
            headline,
        )


def _remedy(view: SnapshotView, gpu: Gpu, fault: str) -> Remedy:
    at = address_of(gpu)
    links = [f"nvidia-smi nvlink -s -i {at}", f"nvidia-smi nvlink -e -i {at}"]
    log = [] if is_multi_node(gpu) else _logs(view)
    if fault in ("degraded_bandwidth", "insufficient_nvlinks"):
        return Remedy(
            "See which NVLinks are down, and why in the fabric manager's log; reset the GPU, and have the"
            " link's"
            " cable, board or switch looked at where it stays down.",
            [*links, *log, REPORT, f"sudo nvidia-smi --gpu-reset -i {at}"],
        )
    if fault in ("route_recovery_in_progress", "access_timeout_recovery"):
        return Remedy(
            "Wait some minutes and look again: the job that met it has to be started anew. Where it lasts,"
            " drain"
            " the machine, and reset the GPU.",
            [_FABRIC, *links, *log, REPORT, f"sudo nvidia-smi --gpu-reset -i {at}"],
        )
    if fault == "route_unhealthy":
        return reset(
            gpu,
            "Look at the NVLinks and at the fabric manager's log; only a reset sets the routes up.",
        )
    if fault in ("no_partition", "partition_not_assigned"):
        return _into_a_partition(gpu)
    if fault == "incompatible_gpu_firmware":
        return Remedy(
            "Bring the board's firmware (VBIOS) and the switches' to one release of the vendor's, and the"
            " driver"
            " with it.",
            [f"nvidia-smi -q -i {at} | grep -iE 'vbios|firmware'", *log],
        )
    if fault in ("incorrect_system_guid", "incorrect_chassis_serial_number", "invalid_location"):
        return Remedy(
            "Compare what the node says of its place with the fabric's plan and with its neighbours; check"
            " the"
            " cables, and let the vendor set the identity right.",
            [f"nvidia-smi -q -i {at} | grep -iA 8 'platform info'", *log],
        )
    if fault == "fabric_manager_disconnected":
        return Remedy(
            "See on the switches (NMX-Controller) whether the global fabric manager runs, and whether the"
            " node"
            " reaches them.",
            [_FABRIC, *log],
        )
    if fault == "gpu_state_invalid":
        return reset(gpu, "A reset gives the GPU a state to begin from.")
    return reset(gpu, "Look at the fabric manager's log, and reset the GPUs and NVSwitches.")


def _into_a_partition(gpu: Gpu) -> Remedy:
    if is_multi_node(gpu):
        return Remedy(
            "Have whoever runs the rack's fabric (NMX-Controller) put this GPU into a partition, then look"
            " again.",
            [_FABRIC, "nvidia-imex-ctl -N"],
        )
    return Remedy(
        "Where NVSwitches are shared between virtual machines, activate the partition of this GPU with the"
        " fabric manager's tool, on the host or service machine; elsewhere restart the fabric manager.",
        ["fmpm -l", "fmpm -a PARTITION", f"sudo systemctl restart {_MANAGER}"],
    )


def _logs(view: SnapshotView) -> list[str]:
    kernel = known_kernel(view)
    here = kernel is None or service(view, _MANAGER) is not None
    return [_LOG] if here else []

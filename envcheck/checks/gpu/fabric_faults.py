"""The faults that the NVSwitch fabric reports for a GPU, and how a GPU joins the fabric again."""

from __future__ import annotations

from ..driver.cuinit import fabric_remedy
from ..driver_state import REPORT, driver_version, service
from ..gpus import RESET, RESETS, address_of
from ..reading import Gpu, SnapshotView, known
from ..verdicts import Cause, Level, Remedy

MANAGER = "nvidia-fabricmanager"
LOG = f"journalctl -u {MANAGER} -n 100"
_FABRIC = "nvidia-smi -q | grep -A 14 -i fabric"
_LINKS = ("nvidia-smi nvlink -s -i {gpu}", "nvidia-smi nvlink -e -i {gpu}")
_RESET_ONE = (REPORT, "sudo nvidia-smi --gpu-reset -i {gpu}")
# Boards whose switches are in trays of their own, with the fabric manager in one of them.
_MULTI_NODE = ("GB200", "GB300")


def is_multi_node(gpu: Gpu) -> bool:
    """Whether the fabric goes beyond the machine, and its manager runs elsewhere."""
    name, cluster = known(gpu.name) or "", known(gpu.fabric_cluster)
    return any(one in name for one in _MULTI_NODE) or bool(cluster and cluster.strip("0-"))


def rejoin(view: SnapshotView, gpu: Gpu) -> Remedy:
    """How a GPU joins the fabric, by what runs on this machine."""
    if is_multi_node(gpu):
        return Remedy(
            "The fabric manager of a multi-node NVLink system runs on its switches: check there whether it"
            " runs and has this node in a partition; then check the IMEX service here, and reset the GPU.",
            [
                _FABRIC,
                "systemctl status nvidia-imex",
                "nvidia-imex-ctl -N",
                REPORT,
                f"sudo nvidia-smi --gpu-reset -i {address_of(gpu)}",
            ],
        )
    manager = service(view, MANAGER)
    if manager is None or known(manager.running) is not True:
        return fabric_remedy(view)
    driver, own = known(driver_version(view)[0]), known(manager.version)
    if driver and own and driver != own:
        return fabric_remedy(view)
    return Remedy(
        "The fabric manager runs and could not bring the GPU in: read its log, then restart it while nothing"
        " uses the GPUs; if that does not help, reset the GPUs and NVSwitches together, or reboot.",
        [
            LOG,
            "tail -n 100 /var/log/fabricmanager.log",
            f"sudo systemctl restart {MANAGER}",
            REPORT,
            "sudo nvidia-smi --gpu-reset",
        ],
    )


def partition(gpu: Gpu) -> Remedy | None:
    """What puts a GPU of a multi-node fabric into a partition; None elsewhere."""
    if not is_multi_node(gpu):
        return None
    return Remedy(
        "Have the rack's operator put this GPU into a partition of its fabric (NMX-Controller), then run"
        " envcheck again.",
        [_FABRIC, "nvidia-imex-ctl -N"],
    )


# What to do, and the commands, for several faults each.
_LINKS_DOWN = (
    "Check which NVLinks are down, and why in the fabric manager's log; reset the GPU, and have the link's"
    " cable, board or switch checked if it stays down.",
    (*_LINKS, LOG, *_RESET_ONE),
)
_WAIT = (
    "Wait some minutes and check again: restart the job that met it. If it persists, drain the machine, and"
    " reset the GPU.",
    (_FABRIC, *_LINKS, LOG, *_RESET_ONE),
)
_JOIN_A_PARTITION = (
    "If NVSwitches are shared between virtual machines, activate the partition of this GPU with the fabric"
    " manager's tool, on the host or service machine; otherwise restart the fabric manager.",
    ("fmpm -l", "fmpm -a PARTITION", f"sudo systemctl restart {MANAGER}"),
)
_CHECK_PLACE = (
    "Compare what the node reports of its place with the fabric's plan and with its neighbours; check the"
    " cables, and let the vendor correct the identity.",
    ("nvidia-smi -q -i {gpu} | grep -iA 8 'platform info'", LOG),
)
_UPDATE = (
    "Update the board's firmware (VBIOS), the switches' and the driver to one release of the vendor's.",
    ("nvidia-smi -q -i {gpu} | grep -iE 'vbios|firmware'", LOG),
)
_FIND_MANAGER = (
    "Check on the switches (NMX-Controller) whether the global fabric manager runs, and whether the node"
    " reaches them.",
    (_FABRIC, LOG),
)
_RESET = (f"Check the NVLinks and the fabric manager's log. {RESET}", RESETS)

# What a fault does to the user.
_SLOW = "exchange with other GPUs is slower"
_STALLS = "exchange with other GPUs hangs or fails"
_ALONE = "it is left out, and reaches other GPUs over PCIe or the network alone"

OTHER = Cause(
    "other-fabric-fault",
    "fail",
    "has an unhealthy NVSwitch fabric",
    "The NVSwitch fabric is unhealthy at this GPU ({fault}): exchange between GPUs is slow or fails.",
    *_RESET,
)
# Fault (collector/nvml/labels.py): severity, headline, effect, remedy.
_FAULTS: dict[str, tuple[Level, str, str, tuple[str, tuple[str, ...]]]] = {
    "degraded_bandwidth": ("warn", "has degraded NVLink bandwidth", _SLOW, _LINKS_DOWN),
    "route_recovery_in_progress": ("warn", "has NVLink routes in recovery", _STALLS, _WAIT),
    "route_unhealthy": ("fail", "has unhealthy NVLink routes", _STALLS, _RESET),
    "access_timeout_recovery": (
        "warn",
        "recovers from an NVLink access timeout",
        _STALLS,
        _WAIT,
    ),
    "incorrect_system_guid": (
        "fail",
        "has a system GUID of another fabric",
        _ALONE,
        _CHECK_PLACE,
    ),
    "incorrect_chassis_serial_number": (
        "fail",
        "has another chassis' serial number",
        _ALONE,
        _CHECK_PLACE,
    ),
    "no_partition": ("fail", "is in no NVLink partition", _ALONE, _JOIN_A_PARTITION),
    "partition_not_assigned": (
        "fail",
        "has no NVLink partition assigned",
        _ALONE,
        _JOIN_A_PARTITION,
    ),
    "insufficient_nvlinks": ("fail", "has too few NVLinks for its fabric", _ALONE, _LINKS_DOWN),
    "incompatible_gpu_firmware": ("fail", "has firmware that its fabric refuses", _ALONE, _UPDATE),
    "invalid_location": ("fail", "is in a place unknown to its fabric", _ALONE, _CHECK_PLACE),
    "gpu_state_invalid": ("fail", "is in a state that its fabric refuses", _ALONE, _RESET),
    "fabric_manager_disconnected": (
        "warn",
        "has lost its fabric manager",
        "no failure is repaired and no partition changed until it is back",
        _FIND_MANAGER,
    ),
}
FAULTS = {
    fault: Cause(
        fault.replace("_", "-"),
        severity,
        headline,
        f"The GPU {headline} ({fault.replace('_', ' ')}): {effect}.",
        *remedy,
    )
    for fault, (severity, headline, effect, remedy) in _FAULTS.items()
}

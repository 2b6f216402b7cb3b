"""The check on the NVSwitch fabric that joins GPUs to each other."""

from __future__ import annotations

from ..declared import declared_causes
from ..driver_on_disk import upstream
from ..driver_state import REPORT, driver_version, fabric_remedy, service
from ..gpus import address_of, found, judge_gpus
from ..reading import CudaDriver, Gpu, NotKnown, Skip, SnapshotView, fact, facts_or, known, need
from ..system_commands import systemctl
from ..verdicts import Passed, Remedy, Verdicts, check

CAUSE = declared_causes(__name__)

MANAGER = "nvidia-fabricmanager"
LOG = f"journalctl -u {MANAGER} -n 100"
_FABRIC = "nvidia-smi -q | grep -A 14 -i fabric"
_CONFIGURATION = "/usr/share/nvidia/nvswitch/fabricmanager.cfg"
_UNFINISHED = ("not started", "in progress")
_NONE_HERE = ("n/a", "not supported", "")
# Boards whose switches are in trays of their own, with the fabric manager in one of them.
_MULTI_NODE = ("GB200", "GB300")

_PASSING = ("degraded", "recovery", "disconnected")


@check("GPU-012")
def fabric_is_set_up(view: SnapshotView) -> Verdicts:
    return judge_gpus(view, lambda gpu: _fabric(view, gpu))


def _fabric(view: SnapshotView, gpu: Gpu) -> Verdicts:
    state = need(gpu.fabric_state, "the fabric's state").strip()
    status = (known(gpu.fabric_status) or "").strip()
    health = (known(gpu.fabric_health) or "").strip().lower()
    fields = "fabric_state fabric_status fabric_health fabric_faults"
    faults = known(gpu.fabric_faults) or []
    failed = bool(status) and status.lower() not in ("success", *_NONE_HERE)
    if state.lower() in _NONE_HERE:
        raise Skip("the GPU is not part of a fabric")
    if state.lower() in _UNFINISHED:
        code = known(facts_or(view.machine.cuda, CudaDriver).init_code)
        if len(view.gpus) == 1 and code == 0:
            yield Passed("not joined, and CUDA starts: a single GPU may do without the fabric")
        else:
            advice, mode = _rejoin(view, gpu), _mode(view)
            cause = (
                CAUSE["fabric-shared-with-guests"]
                if f"FABRIC_MODE={mode}" in advice.text
                else CAUSE["not-joined"]
            )
            yield found(view, cause, gpu, fields, advice=advice, state=state, mode=mode)
        return
    if failed:
        yield found(
            view, CAUSE["join-failed"], gpu, fields, advice=_rejoin(view, gpu), status=status
        )
    for fault in faults:
        if fault == "partition_not_assigned" and "no_partition" in faults:
            continue
        cause = (
            CAUSE["passing-fabric-fault"]
            if any(word in fault for word in _PASSING)
            else CAUSE["fabric-fault"]
        )
        yield found(view, cause, gpu, fields, fault=fault.replace("_", " "))
    if failed or faults:
        return
    if health in ("unhealthy", "limited capacity"):
        yield found(
            view,
            CAUSE["fabric-unhealthy"] if health == "unhealthy" else CAUSE["fabric-limited"],
            gpu,
            fields,
        )
    elif state.lower() != "completed" or health not in ("healthy", *_NONE_HERE):
        raise NotKnown(f"a fabric in state '{state}', with health '{health}'")
    else:
        yield Passed(f"fabric {state.lower()}")


def _is_multi_node(gpu: Gpu) -> bool:
    name, cluster = known(gpu.name) or "", known(gpu.fabric_cluster)
    return any(one in name for one in _MULTI_NODE) or bool(cluster and cluster.strip("0-"))


def _rejoin(view: SnapshotView, gpu: Gpu) -> Remedy:
    reset = f"sudo nvidia-smi --gpu-reset -i {address_of(gpu)}"
    if _is_multi_node(gpu) and not has_nvswitch(view):
        return Remedy(
            "The fabric manager of a multi-node NVLink system runs on its switches: check there whether it"
            " runs and has this node in a partition; then check the IMEX service here, and reset the GPU.",
            [_FABRIC, systemctl("status", "nvidia-imex"), "nvidia-imex-ctl -N", REPORT, reset],
        )
    manager, driver = service(view, MANAGER), known(driver_version(view)[0])
    own = upstream(known(manager.version) or "") if manager is not None else ""
    joined = [one for one in view.gpus if known(one.fabric_state) == "Completed" and one is not gpu]
    others = any(known(one.fabric_status) in ("Success", None) for one in joined)
    mode = _mode(view)
    if mode != "0" and not others and fact(view.machine.host, "hypervisor") is None:
        return Remedy(
            f"The fabric manager is set to share the fabric between virtual machines (FABRIC_MODE={mode} in"
            f" {_CONFIGURATION}), and waits for a hypervisor to activate partitions. If the GPUs are meant"
            " for this machine itself: set it to 0 and restart the fabric manager.",
            [
                f"sudo sed -i.bak 's/^FABRIC_MODE=.*/FABRIC_MODE=0/' {_CONFIGURATION}",
                systemctl("restart", MANAGER),
                _FABRIC,
            ],
        )
    if not others and (manager is None or known(manager.running) is not True):
        return fabric_remedy(view)
    if not others and driver and own not in ("", driver):
        return fabric_remedy(view)
    return Remedy(
        "The fabric manager could not bring the GPU in: read its log, then restart it while nothing uses the"
        " GPUs; if that does not help, reset the GPUs and NVSwitches together, or reboot; if it comes again,"
        " have this GPU's module examined.",
        [LOG, systemctl("restart", MANAGER), REPORT, "sudo nvidia-smi --gpu-reset"],
    )


def _mode(view: SnapshotView) -> str:
    manager = service(view, MANAGER)
    return "0" if manager is None else manager.settings.get("FABRIC_MODE", "0")


def has_nvswitch(view: SnapshotView) -> bool:
    pci = view.machine.pci
    devices = None if pci is None or pci.facts is None else known(pci.facts.devices)
    return any(device.kind == "nvswitch" for device in devices or [])

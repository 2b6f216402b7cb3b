"""Checks on what joins GPUs to each other: the NVSwitch fabric, peer-to-peer access."""

from __future__ import annotations

from collections.abc import Iterator

from ..driver.cuinit import fabric_remedy
from ..driver_state import NO_GPUS, service
from ..gpus import RESET, RESETS, found, judge_gpus
from ..reading import Gpu, NotKnown, Skip, SnapshotView, facts_of, known, need
from ..verdicts import (
    Evidence,
    Finding,
    Passed,
    Verdicts,
    check,
    fail,
    gpu_subject,
    warn,
)
from .fabric_faults import FAULTS, LOG, MANAGER, OTHER, partition, rejoin

_UNFINISHED = ("not started", "in progress")
_NONE_HERE = ("n/a", "not supported", "")
_NOT_READY = 802  # CUDA_ERROR_SYSTEM_NOT_READY

_HEADLINE = "has not joined the NVSwitch fabric"
NOT_JOINED = fail(
    "not-joined",
    _HEADLINE,
    "The GPU has not joined the NVSwitch fabric (state '{state}'; right after boot that takes a minute or"
    " two): CUDA programs do not start (error 802), or GPUs reach each other over PCIe alone, many times"
    " slower.",
)
NOT_JOINED_ALONE = warn(
    "not-joined-alone",
    _HEADLINE,
    "The GPU has not joined the NVSwitch fabric (state '{state}'): CUDA starts on it nevertheless, and would"
    " not together with other GPUs.",
)
JOIN_ERROR = fail(
    "join-failed",
    "has not joined the NVSwitch fabric",
    "Joining the NVSwitch fabric ended in an error ('{status}'): GPUs reach each other over PCIe alone, many"
    " times slower.",
)
UNHEALTHY = fail(
    "fabric-unhealthy",
    "has an unhealthy NVSwitch fabric",
    "The NVSwitch fabric is unhealthy at this GPU: exchange between GPUs is slow or fails.",
    f"Read the fabric manager's log, and reset the GPUs and NVSwitches. {RESET}",
    *RESETS,
)
LIMITED = warn(
    "fabric-limited",
    "has an NVSwitch fabric of limited capacity",
    "The NVSwitch fabric has limited capacity at this GPU: exchange between GPUs is slower.",
    "Read the fabric manager's log.",
    LOG,
)
_NO_MANAGER = (
    "This machine has NVSwitches and its fabric manager is not running: CUDA does not start, or GPUs reach"
    " each other over PCIe alone."
)
NO_MANAGER = fail("no-fabric-manager", "the fabric manager is not running", _NO_MANAGER)
MAYBE_NO_MANAGER = warn(
    "no-fabric-manager-cuda-unknown", "the fabric manager is not running", _NO_MANAGER
)


@check(
    "GPU-012",
    title="The NVSwitch fabric is set up",
    causes=(
        *(NOT_JOINED, NOT_JOINED_ALONE, JOIN_ERROR, UNHEALTHY, LIMITED),
        *(NO_MANAGER, MAYBE_NO_MANAGER, OTHER, *FAULTS.values()),
    ),
    about="On machines with NVSwitch the fabric manager has to join each GPU to the fabric before CUDA"
    " starts: until then cuInit returns 802, or GPUs reach each other over PCIe alone, many times slower"
    " and without any error; nvidia-smi -L and the NVLink states look fine. If the driver does not report"
    " the fabric's state (before Hopper), an NVSwitch without a running fabric manager is judged by whether"
    " CUDA starts.",
    sources=["pytorch#35710; NVIDIA Fabric Manager User Guide"],
    follows=(*NO_GPUS, "KRN-011", "KRN-016"),
)
def fabric_is_set_up(view: SnapshotView) -> Verdicts:
    verdicts = list(judge_gpus(view, lambda gpu: _fabric(view, gpu)))
    if any(isinstance(verdict, (Finding, Passed)) for verdict in verdicts):
        yield from verdicts
    else:
        yield from list(_manager_missing(view)) or verdicts


def _fabric(view: SnapshotView, gpu: Gpu) -> Verdicts:
    state = need(gpu.fabric_state, "the fabric's state").strip()
    status = (known(gpu.fabric_status) or "").strip()
    health = (known(gpu.fabric_health) or "").strip().lower()
    if state.lower() in _NONE_HERE:
        raise Skip("the GPU is not part of a fabric")
    fields = "fabric_state fabric_status fabric_health"
    if state.lower() in _UNFINISHED:
        yield _unfinished(view, gpu, state, fields)
        return
    failed = bool(status) and status.lower() not in ("success", *_NONE_HERE)
    faults = known(gpu.fabric_faults) or []
    if failed:
        yield found(view, JOIN_ERROR, gpu, fields, advice=rejoin(view, gpu), status=status)
    if failed or faults:
        yield from _faults(view, gpu, faults)
    elif health == "unhealthy":
        yield found(view, UNHEALTHY, gpu, fields)
    elif health == "limited capacity":
        yield found(view, LIMITED, gpu, fields)
    elif state.lower() != "completed" or health not in ("healthy", *_NONE_HERE):
        raise NotKnown(f"a fabric in state '{state}', with health '{health}'")
    else:
        yield Passed(f"fabric {state.lower()}")


def _faults(view: SnapshotView, gpu: Gpu, faults: list[str]) -> Iterator[Finding]:
    fields = "fabric_faults fabric_state fabric_status fabric_health fabric_clique"
    for fault in faults:
        if fault == "partition_not_assigned" and "no_partition" in faults:
            continue
        advice = partition(gpu) if "partition" in fault else None
        cause = FAULTS.get(fault, OTHER)
        yield found(view, cause, gpu, fields, advice=advice, fault=fault.replace("_", " "))


def _unfinished(view: SnapshotView, gpu: Gpu, state: str, fields: str) -> Finding:
    """The finding on a GPU that has not joined; a single GPU may do without the fabric."""
    alone = len(view.gpus) == 1 and _cuda_code(view) == 0
    cause = NOT_JOINED_ALONE if alone else NOT_JOINED
    evidence, advice = _manager_evidence(view), rejoin(view, gpu)
    return found(view, cause, gpu, fields, evidence=evidence, advice=advice, state=state)


def _cuda_code(view: SnapshotView) -> int | None:
    cuda = view.machine.cuda
    return None if cuda is None or cuda.facts is None else known(cuda.facts.init_code)


def _manager_evidence(view: SnapshotView) -> list[Evidence]:
    manager = service(view, MANAGER)
    if manager is None:
        return []
    running = {True: "running", False: "not running", None: "not known"}[known(manager.running)]
    installed = {True: "installed", False: "not installed", None: ""}[known(manager.installed)]
    version = known(manager.version)
    parts = filter(None, (installed, version and f"version {version}", running))
    return [view.evidence("machine.kernel.services", f"{MANAGER}: {', '.join(parts)}")]


def has_nvswitch(view: SnapshotView) -> bool:
    pci = view.machine.pci
    devices = None if pci is None or pci.facts is None else known(pci.facts.devices)
    return any(device.kind == "nvswitch" for device in devices or [])


def _manager_missing(view: SnapshotView) -> Iterator[Finding]:
    """NVSwitches without a running fabric manager, if the GPUs do not report the fabric's state."""
    manager, code = service(view, MANAGER), _cuda_code(view)
    stopped = manager is not None and known(manager.running) is False
    if not stopped or code == 0 or not has_nvswitch(view):
        return
    yield (NO_MANAGER if code == _NOT_READY else MAYBE_NO_MANAGER).found(
        evidence=[
            view.evidence("machine.pci.devices", "NVSwitch present"),
            *_manager_evidence(view),
            *([view.evidence("machine.cuda.init_code")] if code is not None else []),
        ],
        advice=fabric_remedy(view),
    )


NO_P2P = warn(
    "no-peer-to-peer",
    "GPUs have no peer-to-peer access",
    "{bad} of {pairs} pairs of GPUs have no peer-to-peer access though the machine has NVSwitches: exchange"
    " between them goes through the host, many times slower.",
    "Check the topology, and the fabric manager's log.",
    "nvidia-smi topo -p2p r",
    LOG,
)


@check(
    "GPU-019",
    title="GPUs on one NVSwitch fabric reach each other directly",
    causes=(NO_P2P,),
    about="On a machine with NVSwitches every GPU reads every other's memory directly (peer to peer). On"
    " machines without, that depends on chipset, board and product line, and its lack is no fault.",
    sources=["nvml.h, nvmlDeviceGetP2PStatus; NVIDIA Fabric Manager User Guide"],
    follows=(*NO_GPUS, "GPU-012"),
)
def peers_are_reached(view: SnapshotView) -> Verdicts:
    pairs = need(facts_of(view.machine.nvml, "NVML").pairs, "the GPUs' topology")
    if len(view.gpus) < 2:
        raise Skip("there is one GPU alone")
    if not has_nvswitch(view):
        raise Skip("this machine has no NVSwitch")
    on_mig = {known(gpu.pci_address) for gpu in view.gpus if known(gpu.mig_enabled)}
    pairs = [
        pair
        for pair in pairs
        if not {pair.first, pair.second} & on_mig and known(pair.p2p_read) is not None
    ]
    if not pairs:
        raise Skip("peer-to-peer access is not known of any pair of GPUs")
    bad = [pair for pair in pairs if (known(pair.p2p_read) or "").lower() != "ok"]
    if not bad:
        yield Passed(f"{len(pairs)} pairs")
        return
    ends = {end for pair in bad for end in (pair.first, pair.second)}
    lines = [f"{pair.first} to {pair.second}: {known(pair.p2p_read)}" for pair in bad[:4]]
    yield NO_P2P.found(
        [gpu_subject(gpu) for gpu in view.gpus if known(gpu.pci_address) in ends],
        [view.evidence("machine.nvml.pairs", line) for line in lines],
        bad=len(bad),
        pairs=len(pairs),
    )

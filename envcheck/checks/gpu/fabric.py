"""Checks on what joins GPUs to each other: NVLink, the NVSwitch fabric, peer-to-peer access."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.gpu import Gpu, GpuPair
from ...facts.missing import NotKnown, Skip
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import gpu_subject
from ..driver.cuinit import fabric_remedy
from ..driver_state import NO_GPUS, service
from ..gpus import finding, judge_gpus, reset, together
from ..registry import check
from .fabric_faults import rejoin, told_faults

_UNFINISHED = ("not started", "in progress")
_NONE_HERE = ("n/a", "not supported", "")
_MANAGER = "nvidia-fabricmanager"
_NOT_READY = 802  # CUDA_ERROR_SYSTEM_NOT_READY


@check(
    "GPU-012",
    title="The NVSwitch fabric is set up",
    problem="has not joined the NVSwitch fabric",
    about="On machines with NVSwitch the fabric manager has to join each GPU to the fabric before CUDA"
    " starts: until the fabric's state is 'Completed', with success, cuInit returns 802, or GPUs reach each"
    " other over PCIe alone, many times slower and without any error. The fabric tells its own faults, each"
    " with another remedy: a route that failed or is being recovered, degraded bandwidth, a GPU without a"
    " partition, with too few NVLinks, with other firmware, in the wrong place. An unhealthy fabric is a"
    " failure, one of limited capacity or in recovery a warning. nvidia-smi -L and the NVLink states look"
    " fine all the while."
    " Where the driver does not tell the state (before Hopper), an NVSwitch without a running fabric"
    " manager is judged by whether CUDA starts.",
    sources=(
        "pytorch#35710",
        "NVIDIA Fabric Manager User Guide",
        "NVSentinel#883 (Completed, with an error as status)",
        "nvidia-smi(1), Fabric; nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*",
        "gpud#1106 (GB200: no fabric manager on the node)",
    ),
    follows=(*NO_GPUS, "KRN-011", "KRN-016"),
)
def fabric_is_set_up(view: SnapshotView) -> Iterator[Verdict]:
    verdicts = list(judge_gpus(view, lambda gpu: _fabric(view, gpu)))
    if all(not isinstance(verdict, (Finding, Passed)) for verdict in verdicts):
        found = list(_manager_missing(view))
        yield from found or verdicts
    else:
        yield from verdicts


def _fabric(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    state = need(gpu.fabric_state, "the fabric's state").strip()
    status = (known(gpu.fabric_status) or "").strip()
    health = (known(gpu.fabric_health) or "").strip().lower()
    if state.lower() in _NONE_HERE:
        raise Skip("the GPU is not part of a fabric")
    fields = "fabric_state fabric_status fabric_health"
    faults = known(gpu.fabric_faults) or []
    if state.lower() in _UNFINISHED:
        yield _unfinished(view, gpu, state, fields)
    elif status and status.lower() not in ("success", *_NONE_HERE):
        yield finding(
            view,
            "fail",
            gpu,
            f"Joining the NVSwitch fabric ended in an error ('{status}'): GPUs reach each other over PCIe"
            " alone, many times slower.",
            fields,
            rejoin(view, gpu),
        )
        yield from told_faults(view, gpu, faults)
    elif faults:
        yield from told_faults(view, gpu, faults)
    elif health == "unhealthy":
        yield finding(
            view,
            "fail",
            gpu,
            "The NVSwitch fabric is unhealthy at this GPU: exchange between GPUs is slow or fails.",
            fields,
            reset(gpu, "Look at the fabric manager's log, and reset the GPUs and NVSwitches."),
        )
    elif health == "limited capacity":
        yield finding(
            view,
            "warn",
            gpu,
            "The NVSwitch fabric has limited capacity at this GPU: exchange between GPUs is slower.",
            fields,
            Remedy("Look at the fabric manager's log.", [f"journalctl -u {_MANAGER} -n 100"]),
        )
    elif state.lower() != "completed" or health not in ("healthy", *_NONE_HERE):
        raise NotKnown(f"a fabric in state '{state}', with health '{health}'")
    else:
        yield Passed(f"fabric {state.lower()}")


def _unfinished(view: SnapshotView, gpu: Gpu, state: str, fields: str) -> Finding:
    """The finding on a GPU that has not joined; CUDA on a GPU by itself may do without the fabric."""
    code = _cuda_code(view)
    alone = len(view.gpus) == 1 and code == 0
    if alone:
        effect = "CUDA starts on it nevertheless, and would not together with other GPUs."
    elif code == 0:
        effect = "CUDA starts, and GPUs reach each other over PCIe alone, many times slower."
    elif code is None:
        effect = (
            "CUDA programs do not start (error 802), or exchange between GPUs is many times slower."
        )
    else:
        effect = "no CUDA program starts."
    lasts = (
        " Right after boot that takes a minute or two; later, it does not get through."
        if state.lower() == "in progress"
        else ""
    )
    found = finding(
        view,
        "warn" if alone else "fail",
        gpu,
        f"The GPU has not joined the NVSwitch fabric (state '{state}'): {effect}{lasts}",
        fields,
        rejoin(view, gpu),
    )
    found.evidence.extend(_manager_evidence(view))
    return found


def _cuda_code(view: SnapshotView) -> int | None:
    cuda = view.machine.cuda
    return None if cuda is None or cuda.facts is None else known(cuda.facts.init_code)


def _manager_evidence(view: SnapshotView) -> list[Evidence]:
    manager = service(view, _MANAGER)
    if manager is None:
        return []
    running = {True: "running", False: "not running", None: "not known"}[known(manager.running)]
    installed = {True: "installed", False: "not installed", None: ""}[known(manager.installed)]
    version = known(manager.version)
    told = ", ".join(
        part for part in (installed, version and f"version {version}", running) if part
    )
    return [view.evidence("machine.kernel.services", f"{_MANAGER}: {told}")]


def has_nvswitch(view: SnapshotView) -> bool:
    pci = view.machine.pci
    devices = None if pci is None or pci.facts is None else known(pci.facts.devices)
    return any(device.kind == "nvswitch" for device in devices or [])


def _manager_missing(view: SnapshotView) -> Iterator[Finding]:
    """NVSwitches without a running fabric manager, where the GPUs do not tell the fabric's state."""
    manager = service(view, _MANAGER)
    code = _cuda_code(view)
    if (
        not has_nvswitch(view)
        or manager is None
        or known(manager.running) is not False
        or code == 0
    ):
        return
    yield Finding(
        "fail" if code == _NOT_READY else "warn",
        "This machine has NVSwitches and its fabric manager is not running: CUDA does not start, or GPUs"
        " reach each other over PCIe alone.",
        evidence=[
            view.evidence("machine.pci.devices", "NVSwitch present"),
            *_manager_evidence(view),
            *([view.evidence("machine.cuda.init_code")] if code is not None else []),
        ],
        remedy=fabric_remedy(view),
    )


@check(
    "GPU-019",
    title="GPUs on one NVSwitch fabric reach each other directly",
    problem="GPUs have no peer-to-peer access",
    about="On a machine with NVSwitches every GPU reads every other's memory directly (peer to peer). Where"
    " a pair does not, exchange between the two goes through the host's memory: a warning. On machines"
    " without NVSwitch, peer-to-peer access depends on chipset, board and product line, and its lack is no"
    " fault. GPUs with MIG on have no peer-to-peer access by design.",
    sources=("nvml.h, nvmlDeviceGetP2PStatus", "NVIDIA Fabric Manager User Guide"),
    follows=(*NO_GPUS, "GPU-012"),
)
def peers_are_reached(view: SnapshotView) -> Iterator[Verdict]:
    pairs = need(facts_of(view.machine.nvml, "NVML").pairs, "the GPUs' topology")
    if len(view.gpus) < 2:
        raise Skip("there is one GPU alone")
    if not has_nvswitch(view):
        raise Skip("this machine has no NVSwitch")
    on_mig = {known(gpu.pci_address) for gpu in view.gpus if known(gpu.mig_enabled)}
    judged = [pair for pair in pairs if not {pair.first, pair.second} & on_mig]
    told = [pair for pair in judged if known(pair.p2p_read) is not None]
    if not told:
        raise Skip("no pair of GPUs tells whether it has peer-to-peer access")
    yield from together(_pairs(view, told))


def _pairs(view: SnapshotView, pairs: list[GpuPair]) -> Iterator[Verdict]:
    bad = [pair for pair in pairs if (known(pair.p2p_read) or "").lower() != "ok"]
    if not bad:
        yield Passed(f"{len(pairs)} pairs")
        return
    ends = {end for pair in bad for end in (pair.first, pair.second)}
    yield Finding(
        "warn",
        f"{len(bad)} of {len(pairs)} pairs of GPUs have no peer-to-peer access though the machine has"
        " NVSwitches: exchange between them goes through the host, many times slower.",
        [gpu_subject(gpu) for gpu in view.gpus if known(gpu.pci_address) in ends],
        [
            view.evidence(
                "machine.nvml.pairs", f"{pair.first} to {pair.second}: {known(pair.p2p_read)}"
            )
            for pair in bad[:4]
        ],
        Remedy(
            "Look at the topology, and at the fabric manager's log.",
            ["nvidia-smi topo -p2p r", f"journalctl -u {_MANAGER} -n 100"],
        ),
    )

"""Why NCCL fails between GPUs, by what it warns of: a first sentence and what to do, for each known cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.missing import CannotJudge
from ...facts.view import SnapshotView
from ...findings.model import Remedy
from ..driver_state import then_reboot
from ..system_commands import in_engine, on_system
from .common import Seen
from .nccl_seen import ALONE, NVLS_OFF, P2P_OFF, is_right, nccl, text_of, words_of


class NcclCause(NamedTuple):
    headline: str  # the first sentence, without its full stop
    then: str  # what that does
    remedy: Remedy


_NO_SPACE = ("no space left", "posix_fallocate", "failed to extend")
_MULTICAST = ("nvls", "multicast")
_SHARING = (
    "ipc handle",
    "cudaipc",
    "ipcopen",
    "ipcget",
    "shareablehandle",
    "shareable handle",
    "operation not permitted",
    "pidfd",
)
_PEERS = ("peer access", "peeraccess")
_INTERFACES = ("no socket interface", "socket creation failed", "address family not supported")


def cause_of(view: SnapshotView, seen: Seen, trial: SystemTrial) -> NcclCause | None:
    """The cause that NCCL's own words stand for; None where they are not known."""
    said = [*words_of(trial, "warnings"), trial.reason]
    alone = seen.trial(ALONE)
    if alone is not None and alone.outcome != "ok":
        said.append(alone.reason)
    told = "\n".join(said).lower()
    for words, make in _CAUSES:
        if any(word in told for word in words):
            return make(view, seen, trial, told)
    return None


def _old_driver(view: SnapshotView, seen: Seen, trial: SystemTrial, _told: str) -> NcclCause:
    built = text_of(trial, "built_cuda")
    cuda = view.machine.cuda
    has = None if cuda is None or cuda.facts is None else known(cuda.facts.driver_api_version)
    newest = (
        f", and the driver knows CUDA {has} at most" if has else ", and the driver does not know it"
    )
    return NcclCause(
        f"{nccl(seen)} is built for {f'CUDA {built}' if built else 'a newer CUDA'}{newest}",
        "no communicator starts ('CUDA driver version is insufficient for CUDA runtime version')",
        Remedy(
            "Install a newer driver, or the NCCL of the CUDA that this one knows, as the framework's own"
            " packages bring it.",
            then_reboot(on_system(view, "update-driver")),
        ),
    )


def _no_code(_view: SnapshotView, seen: Seen, _trial: SystemTrial, _told: str) -> NcclCause:
    return NcclCause(
        f"{nccl(seen)} has no code for these GPUs",
        "it is older than they are ('no kernel image is available for execution on the device')",
        Remedy("Install a framework that is built for them: it brings a newer NCCL."),
    )


def _shared_memory(view: SnapshotView, seen: Seen, _trial: SystemTrial, _told: str) -> NcclCause:
    host = view.seen.host
    facts = None if host is None else host.facts
    total = None if facts is None else known(facts.shm_total_mib)
    inside = facts is not None and known(facts.container) is not None
    size = f" ({total} MiB)" if total else ""
    return NcclCause(
        f"/dev/shm is too small for NCCL{size}",
        f"{nccl(seen)} gets no shared memory for the ways between the GPUs",
        Remedy(
            "Start the container with more shared memory; it cannot be enlarged from inside."
            if inside
            else "Make it larger, and take away what earlier jobs left in it.",
            in_engine(view, "limits")
            if inside
            else ["df -h /dev/shm", "ls -l /dev/shm", "sudo mount -o remount,size=50% /dev/shm"],
        ),
    )


def _host_sharing(_view: SnapshotView, seen: Seen, _trial: SystemTrial, _told: str) -> NcclCause:
    return NcclCause(
        f"{nccl(seen)} shares the host's memory by a way that these GPUs do not allow",
        "its shared memory in CUDA's own allocations needs direct access between the GPUs (nccl#1838)",
        Remedy(
            "Let NCCL share it through /dev/shm, or use a newer driver.",
            ["export NCCL_CUMEM_HOST_ENABLE=0"],
        ),
    )


def _multicast(view: SnapshotView, seen: Seen, trial: SystemTrial, _told: str) -> NcclCause | None:
    without = seen.trial(NVLS_OFF)
    if without is not None and not is_right(without):
        return None  # it is not the multicast alone
    states = sorted(_fabric(view))
    fabric = f" (the fabric's state: {', '.join(states)})" if states else ""
    works = ", without it the sum is right" if without is not None else ""
    warning = next(
        (one for one in words_of(trial, "warnings") if any(w in one.lower() for w in _MULTICAST)),
        "",
    )
    return NcclCause(
        f"NVLS fails, NVLink's multicast{fabric}{works}",
        f"NCCL starts no communicator of several GPUs ({warning or 'in nvls.cc'})",
        Remedy(
            "Restart the fabric manager with the driver's own version, and reboot if that does not help; in a"
            " virtual machine or a container the host decides about multicast. Until then do without it,"
            " slower.",
            ["sudo systemctl restart nvidia-fabricmanager", f"export {NVLS_OFF}"],
        ),
    )


def _fabric(view: SnapshotView) -> Iterable[str]:
    try:
        gpus = view.seen_gpus
    except CannotJudge:
        return set()
    told = {(known(gpu.fabric_state), known(gpu.fabric_status)) for gpu in gpus}
    return {", ".join(filter(None, pair)) for pair in told if any(pair)}


def _sharing(view: SnapshotView, seen: Seen, trial: SystemTrial, _told: str) -> NcclCause:
    host = view.seen.host
    inside = host is not None and host.facts is not None and known(host.facts.container) is not None
    works = ", without direct transfers the sum is right" if is_right(seen.trial(P2P_OFF)) else ""
    return NcclCause(
        "One process may not use GPU memory that another one shares (CUDA IPC)" + works,
        f"{nccl(seen)} cannot connect the GPUs directly"
        + _quoted(trial, _SHARING)
        + (": a container keeps its processes apart" if inside else ""),
        Remedy(
            "Give the container the host's IPC namespace, and all ranks of a machine one container; or let"
            " NCCL share memory in the older way, or not directly at all.",
            [
                *(["docker run --ipc=host …  # or podman"] if inside else []),
                "export NCCL_CUMEM_ENABLE=0",
                f"export {P2P_OFF}",
            ],
        ),
    )


def _peers(_view: SnapshotView, seen: Seen, trial: SystemTrial, told: str) -> NcclCause:
    if "shm.cc" in told or "cumem_host" in told:
        return _host_sharing(_view, seen, trial, told)
    works = ", without them the sum is right" if is_right(seen.trial(P2P_OFF)) else ""
    return NcclCause(
        "The driver refuses direct transfers between these GPUs" + works,
        f"{nccl(seen)} counts on them{_quoted(trial, _PEERS)}",
        Remedy(
            "Look for what forbids them: a virtual machine, an IOMMU or Access Control Services. A newer NCCL"
            " asks first; until then do without.",
            [f"export {P2P_OFF}", "nvidia-smi topo -p2p r"],
        ),
    )


def _interfaces(_view: SnapshotView, seen: Seen, trial: SystemTrial, _told: str) -> NcclCause:
    return NcclCause(
        "NCCL finds no network interface to meet on",
        f"{nccl(seen)} needs one, if only lo, even between the GPUs of one machine"
        + _quoted(trial, _INTERFACES),
        Remedy(
            "Take NCCL_SOCKET_IFNAME away, or start the container with a network.",
            ["unset NCCL_SOCKET_IFNAME", "ip -brief address"],
        ),
    )


def _duplicate(_view: SnapshotView, seen: Seen, trial: SystemTrial, _told: str) -> NcclCause:
    return NcclCause(
        "NCCL sees one GPU twice",
        f"{nccl(seen)} joins no two ranks on it{_quoted(trial, ('duplicate gpu',))}",
        Remedy("Name every GPU once.", ["echo $CUDA_VISIBLE_DEVICES", "nvidia-smi -L"]),
    )


def _quoted(trial: SystemTrial, words: Iterable[str]) -> str:
    for one in words_of(trial, "warnings"):
        if any(word in one.lower() for word in words):
            return f' ("{one}")'
    return ""


_Make = Callable[[SnapshotView, Seen, SystemTrial, str], NcclCause | None]
_CAUSES: tuple[tuple[tuple[str, ...], _Make], ...] = (
    (("driver version is insufficient",), _old_driver),
    (("no kernel image", "named symbol not found"), _no_code),
    (_MULTICAST, _multicast),
    (_PEERS, _peers),
    (_NO_SPACE, _shared_memory),
    (_SHARING, _sharing),
    (_INTERFACES, _interfaces),
    (("duplicate gpu",), _duplicate),
)

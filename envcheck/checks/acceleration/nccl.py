"""The check on NCCL between the GPUs of one machine: an exact sum on each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...facts.acceleration import SystemTrial
from ..driver_state import then_reboot
from ..reading import CannotJudge, SnapshotView, known
from ..system_commands import in_engine, on_system
from ..verdicts import Cause, Finding, Passed, Remedy, Verdict, Verdicts, check
from .common import NOTHING_RUNS, Seen, count, each_run, failed, ok, text, words

ABSENT = "the target has no libnccl"
# What explains that it fails or hangs: shared memory, fabric, redirected transfers, interfaces, libraries.
FOLLOWS = (
    *(*NOTHING_RUNS, "HOST-008", "GPU-012", "KRN-011", "GPU-013", "GPU-025"),
    *("PCI-007", "NET-001", "NET-008", "LIB-006", "LIB-007"),
)
# The trials' names, as the collector's system gives them.
TOGETHER, ALONE = "all-reduce", "one rank"
NVLS_OFF, P2P_OFF = "NCCL_NVLS_ENABLE=0", "NCCL_P2P_DISABLE=1"
_STAGES = {
    "one rank": "in a communicator of one GPU",
    "join": "while the GPUs connect to each other",
    "sum": "in the first all-reduce",
    "bandwidth": "in an all-reduce of many megabytes",
}
_NOT_ITS_OWN = ("start", "cuda", "load")

WRONG = Cause(
    "wrong-sums",
    "fail",
    headline="NCCL's sums are wrong{cured}",
    sentence="{nccl} sums wrongly on {ranks} GPUs ({where}){cured}: training continues with wrong gradients.",
)
_STOPS = "{nccl} {verb} between {ranks} GPUs{at}{cured}: training stands still there."
HANGS = Cause("hangs", "fail", "NCCL hangs between the GPUs{cured}", _STOPS)
CRASHES = Cause("crashes", "fail", "NCCL crashes between the GPUs{cured}", _STOPS)
FAILS = Cause(
    "fails-between-gpus",
    "fail",
    headline="NCCL fails between the GPUs{cured}",
    sentence="{nccl} works on each GPU alone and fails between them{cured}: {why}{warning}{others}.",
)


def _known(key: str, headline: str, more: str, remedy: str, *commands: str) -> Cause:
    """A cause that NCCL's own words name; "{warning}" quotes them."""
    return Cause(key, "fail", headline, f"{headline}{more}{{warning}}.", remedy, commands)


OLD_DRIVER = _known(
    "driver-too-old",
    "{nccl} is built for {built}, and {newest}",
    ": no communicator starts",
    "Install a newer driver, or the NCCL of the CUDA that this one knows, as the framework's own packages"
    " bring it.",
)
NO_CODE = _known(
    "no-code-for-gpus",
    "{nccl} has no code for these GPUs",
    ": it is older than they are",
    "Install a framework that is built for them: it brings a newer NCCL.",
)
SMALL_SHM = _known(
    "shm-too-small",
    "/dev/shm is too small for NCCL{size}",
    ": {nccl} gets no shared memory for the ways between the GPUs",
    "",
)
MULTICAST = _known(
    "multicast-fails",
    "NVLS fails, NVLink's multicast{fabric}{works}",
    ": {nccl} starts no communicator of several GPUs",
    "Restart the fabric manager with the driver's own version, and reboot if that does not help; in a virtual"
    " machine or a container the host decides about multicast. Until then do without it, slower.",
    *("sudo systemctl restart nvidia-fabricmanager", f"export {NVLS_OFF}"),
)
NO_IPC = _known(
    "ipc-refused",
    "One process may not use GPU memory that another one shares (CUDA IPC){works}",
    ": {nccl} cannot connect the GPUs directly{inside}",
    "Give the container the host's IPC namespace, and all ranks of a machine one container; or let NCCL share"
    " memory in the older way, or not directly at all.",
)
NO_PEERS = _known(
    "peer-access-refused",
    "The driver refuses direct transfers between these GPUs{works}",
    ": {nccl} counts on them",
    "Look for what forbids them: a virtual machine, an IOMMU or Access Control Services. Until then do"
    " without, and let NCCL share the host's memory through /dev/shm.",
    *(f"export {P2P_OFF} NCCL_CUMEM_HOST_ENABLE=0", "nvidia-smi topo -p2p r"),
)
NO_INTERFACE = _known(
    "no-interface",
    "NCCL finds no network interface to meet on",
    ": {nccl} needs one, if only lo, even between the GPUs of one machine",
    "Take NCCL_SOCKET_IFNAME away, or start the container with a network.",
    *("unset NCCL_SOCKET_IFNAME", "ip -brief address"),
)


@check(
    "ACC-012",
    title="NCCL",
    causes=[
        *(WRONG, HANGS, CRASHES, FAILS, OLD_DRIVER, NO_CODE, SMALL_SHM),
        *(MULTICAST, NO_IPC, NO_PEERS, NO_INTERFACE),
    ],
    about="Every GPU gets a process of its own, joins by the target's own libnccl and sums a million numbers"
    " of three types, which must be exact; a communicator of one rank, the control, must give its own numbers"
    " back. Where that fails, multicast (NVLS) and direct transfers are taken away in turn.",
    sources=(
        "NVIDIA NCCL user guide: environment variables, troubleshooting",
        "nccl#2079, nccl#257 (hangs), nccl#290, nccl#342 (/dev/shm), nccl#1788 (multicast), nccl#1838",
    ),
    follows=FOLLOWS,
    systems=("nccl",),
)
def nccl_sums(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        together, without = seen.trial(TOGETHER), seen.trial(NVLS_OFF)
        if together is None or count(together, "ranks") < 2:
            yield seen.unjudged("one rank adds up nothing" if together else failed(seen, None))
        elif count(together, "wrong") or (ok(together) and count(without, "wrong")):
            wrong = together if count(together, "wrong") else without
            elements = f"{count(wrong, 'wrong')} elements"
            where = ", ".join(words(wrong, "wrong_in")[:4]) or elements
            yield _found(seen, WRONG, together, where=where)
        elif ok(together):
            yield _worked(seen, together)
        elif count(together, "hung") or together.outcome in ("timeout", "crashed"):
            yield _stopped(view, seen, together)
        else:
            yield _failed(view, seen, together)

    yield from each_run(view, "nccl", judge, absent=ABSENT)


def _worked(seen: Seen, together: SystemTrial) -> Verdict:
    ranks = count(together, "ranks")
    if not is_right(together):
        return seen.unjudged("the sums were not compared")
    if count(seen.trial(ALONE), "own_numbers") != ranks:
        return seen.unjudged("one rank alone does not get its own numbers back")
    without = seen.trial(NVLS_OFF)
    also = "" if without is None else f"; without NVLS {failed(seen, without)}"
    also = "; without NVLS, too" if is_right(without) else also
    return Passed(f"{nccl(seen)}: exact sums on {ranks} GPUs, {way(together)}{also}")


def _stopped(view: SnapshotView, seen: Seen, together: SystemTrial) -> Verdict:
    stage = next(iter(words(together, "stages")), "").rpartition(": ")[2]
    if stage in _NOT_ITS_OWN:
        return seen.unjudged(f"{nccl(seen)} never ended, before it came to its work ({stage})")
    crashed = together.outcome == "crashed"
    verb, cause = ("crashes", CRASHES) if crashed else ("hangs", HANGS)
    at = f" {_STAGES[stage]}" if stage in _STAGES else ""
    explained = None if _cured(seen)[0] else _explained(view, seen, together)
    return explained or _found(seen, cause, together, verb=verb, at=at)


def _failed(view: SnapshotView, seen: Seen, together: SystemTrial) -> Verdict:
    explained = _explained(view, seen, together)
    if explained is not None:
        return explained
    why = failed(seen, together)
    if together.outcome == "out-of-memory" or not count(seen.trial(ALONE), "own_numbers"):
        return seen.unjudged(f"{nccl(seen)}: {why}")
    warnings, others = words(together, "warnings"), words(together, "others")
    path = text(together, "library") or "libnccl.so.2"
    several = f"; the target has {len(others) + 1} of them, this is {path}" if others else ""
    warning = f' ("{warnings[0]}")' if warnings else ""
    return _found(seen, FAILS, together, why=why, warning=warning, others=several)


def _found(seen: Seen, cause: Cause, together: SystemTrial, **params: Any) -> Finding:
    """With what helped, and what to do, by what was tried instead."""
    cured, remedy = _cured(seen)
    params.update(nccl=nccl(seen), ranks=count(together, "ranks"), cured=cured)
    return cause.found(evidence=seen.evidence(), advice=remedy, **params)


def _cured(seen: Seen) -> tuple[str, Remedy]:
    if is_right(seen.trial(NVLS_OFF)):
        return ", but not without NVLS (NVLink's multicast)", Remedy(
            MULTICAST.remedy, [*MULTICAST.commands]
        )
    topology = "nvidia-smi topo -p2p r"
    if is_right(seen.trial(P2P_OFF)):
        return ", but not without direct transfers between the GPUs", Remedy(
            "Look for what redirects or breaks them: Access Control Services on bridges, an IOMMU that"
            " translates (iommu=pt lets it pass), a virtual machine, NVLink errors. Until then NCCL can do"
            " without them, slower.",
            [
                f"export {P2P_OFF}",
                "sudo lspci -vvv | grep -i acsctl",
                "cat /proc/cmdline",
                topology,
            ],
        )
    return "", Remedy(
        "Let NCCL log more where it is used, and look at how the GPUs reach each other.",
        ["export NCCL_DEBUG=INFO", "nvidia-smi topo -m", topology],
    )


class _Symptom(NamedTuple):
    """What NCCL's own words stand for. details: the cause's parameters; None: it is not the cause."""

    signs: tuple[str, ...]
    cause: Cause
    details: Callable[[SnapshotView, Seen, SystemTrial], dict[str, Any] | None]


def _explained(view: SnapshotView, seen: Seen, trial: SystemTrial) -> Finding | None:
    """The cause that NCCL's own words stand for; None where they are not known."""
    alone = seen.trial(ALONE)
    lines = [*words(trial, "warnings"), trial.reason, "" if alone is None else alone.reason]
    for symptom in _SYMPTOMS:
        line = next((x for x in lines if any(one in x.lower() for one in symptom.signs)), None)
        if line is None:
            continue
        details = symptom.details(view, seen, trial)
        if details is None:
            return None
        params = {"nccl": nccl(seen), "warning": f' ("{line}")', **details}
        return symptom.cause.found(evidence=seen.evidence(), **params)
    return None


def _old_driver(view: SnapshotView, _seen: Seen, trial: SystemTrial) -> dict[str, Any]:
    built = text(trial, "built_cuda")
    cuda = view.machine.cuda
    has = None if cuda is None or cuda.facts is None else known(cuda.facts.driver_api_version)
    return {
        "built": f"CUDA {built}" if built else "a newer CUDA",
        "newest": f"the driver knows CUDA {has} at most" if has else "the driver does not know it",
        "commands": then_reboot(on_system(view, "update-driver")),
    }


def _shared_memory(view: SnapshotView, _seen: Seen, _trial: SystemTrial) -> dict[str, Any]:
    host = view.seen.host
    total = None if host is None or host.facts is None else known(host.facts.shm_total_mib)
    remedy = Remedy(
        "Make it larger, and take away what earlier jobs left in it.",
        ["df -h /dev/shm", "ls -l /dev/shm", "sudo mount -o remount,size=50% /dev/shm"],
    )
    if _inside(view):
        more = "Start the container with more shared memory; it cannot be enlarged from inside."
        remedy = Remedy(more, in_engine(view, "limits"))
    return {"size": f" ({total} MiB)" if total else "", "advice": remedy}


def _inside(view: SnapshotView) -> bool:
    """Whether it runs in a container."""
    host = view.seen.host
    return host is not None and host.facts is not None and known(host.facts.container) is not None


def _multicast(view: SnapshotView, seen: Seen, _trial: SystemTrial) -> dict[str, Any] | None:
    without = seen.trial(NVLS_OFF)
    if without is not None and not is_right(without):
        return None  # it is not the multicast alone
    try:
        pairs = {(known(gpu.fabric_state), known(gpu.fabric_status)) for gpu in view.seen_gpus}
    except CannotJudge:
        pairs = set()
    states = sorted({", ".join(filter(None, pair)) for pair in pairs if any(pair)})
    return {
        "fabric": f" (the fabric's state: {', '.join(states)})" if states else "",
        "works": "" if without is None else ", without it the sum is right",
    }


def _sharing(view: SnapshotView, seen: Seen, trial: SystemTrial) -> dict[str, Any]:
    inside = _inside(view)
    engine = ["docker run --ipc=host …  # or podman"] if inside else []
    return {
        **_direct(view, seen, trial),
        "inside": ": a container keeps its processes apart" if inside else "",
        "commands": [*engine, "export NCCL_CUMEM_ENABLE=0", f"export {P2P_OFF}"],
    }


def _direct(_view: SnapshotView, seen: Seen, _trial: SystemTrial) -> dict[str, Any]:
    right = is_right(seen.trial(P2P_OFF))
    return {"works": ", without direct transfers the sum is right" if right else ""}


def _nothing(_view: SnapshotView, _seen: Seen, _trial: SystemTrial) -> dict[str, Any]:
    return {}


_IPC = (
    *("ipc handle", "cudaipc", "ipcopen", "ipcget", "shareablehandle", "shareable handle"),
    *("operation not permitted", "pidfd"),
)
_SYMPTOMS = (
    _Symptom(("driver version is insufficient",), OLD_DRIVER, _old_driver),
    _Symptom(("no kernel image", "named symbol not found"), NO_CODE, _nothing),
    _Symptom(("nvls", "multicast"), MULTICAST, _multicast),
    _Symptom(("peer access", "peeraccess"), NO_PEERS, _direct),
    _Symptom(("no space left", "posix_fallocate", "failed to extend"), SMALL_SHM, _shared_memory),
    _Symptom(_IPC, NO_IPC, _sharing),
    _Symptom(("no socket interface", "socket creation failed"), NO_INTERFACE, _nothing),
)


def nccl(seen: Seen) -> str:
    """ "NCCL 2.21.5", of the first trial that has its version."""
    versions = [text(one, "version") for one in seen.run.trials]
    return f"NCCL {next(filter(None, versions), '')}".strip()


def is_right(trial: SystemTrial | None) -> bool:
    """Whether all its sums came, and were exact."""
    if trial is None or not ok(trial) or "wrong" not in trial.evidence:
        return False
    return count(trial, "compared") > 0 and trial.evidence["wrong"] == 0


def way(trial: SystemTrial) -> str:
    """ "Ring over P2P/CUMEM", as far as it was logged."""
    over = ", ".join(words(trial, "transports")[:3])
    algorithm = text(trial, "algorithm") or "an algorithm that it does not log"
    return f"{algorithm} over {over}" if over else algorithm

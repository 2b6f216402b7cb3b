"""The check on NCCL between the GPUs of one machine: an exact sum on each of them."""

from __future__ import annotations

from ...facts.acceleration import SystemTrial
from ...facts.host import Host
from ..driver_state import then_reboot
from ..network.common import gpus
from ..reading import SnapshotView, fact, facts_or, known
from ..system_commands import in_engine, on_system, systemctl
from ..verdicts import Cause, Finding, Params, Passed, Remedy, Verdict, Verdicts, check, fail
from .common import NOTHING_RUNS, Seen, each_run, failed, number, ok, text, words

ABSENT = "the target has no libnccl"
# What explains that it fails or hangs: shared memory, fabric, redirected transfers, interfaces, libraries.
FOLLOWS = (
    *NOTHING_RUNS,
    "HOST-008",
    "GPU-012",
    "KRN-011",
    "GPU-013",
    "PCI-007",
    "NET-001",
    "NET-008",
    "LIB-006",
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
_TOPOLOGY = "nvidia-smi topo -p2p r"
_LARGER_SHM = ["df -h /dev/shm", "ls -l /dev/shm", "sudo mount -o remount,size=50% /dev/shm"]

WRONG = fail(
    "wrong-sums",
    "NCCL's sums are wrong{cured}",
    "{nccl} sums wrongly on {ranks} GPUs ({where}){cured}: training continues with wrong gradients.",
)
HANGS = fail(
    "hangs",
    "NCCL hangs between the GPUs{cured}",
    "{nccl} hangs between {ranks} GPUs{at}{cured}: training stands still there.",
)
CRASHES = fail(
    "crashes",
    "NCCL crashes between the GPUs{cured}",
    "{nccl} crashes between {ranks} GPUs{at}{cured}.",
)
FAILS = fail(
    "fails-between-gpus",
    "NCCL fails between the GPUs{cured}",
    "{nccl} works on each GPU alone and fails between them{cured}: {why}{warning}{others}.",
)
OLD_DRIVER = fail(
    "driver-too-old",
    "{nccl} is built for {built}, and {newest}",
    "{nccl} is built for {built}, and {newest}: no communicator starts{warning}.",
    "Install a newer driver, or the NCCL of the CUDA that this one knows, as the framework's own packages"
    " bring it.",
)
SMALL_SHM = fail(
    "shm-too-small",
    "/dev/shm is too small for NCCL{size}",
    "/dev/shm is too small{size}: {nccl} gets no shared memory for the ways between the GPUs{warning}.",
)
MULTICAST = fail(
    "multicast-fails",
    "NVLS fails, NVLink's multicast{fabric}{works}",
    "NVLS fails, NVLink's multicast{fabric}{works}: {nccl} starts no communicator of several GPUs{warning}.",
    "Restart the fabric manager with the driver's own version, and reboot if that does not help; in a virtual"
    " machine or a container the host decides about multicast. Until then do without it, slower.",
    systemctl("restart", "nvidia-fabricmanager"),
    f"export {NVLS_OFF}",
)
NO_IPC = fail(
    "ipc-refused",
    "One process may not use GPU memory that another one shares (CUDA IPC){works}",
    "One process may not use GPU memory that another one shares (CUDA IPC){works}: {nccl} cannot connect the"
    " GPUs directly{inside}{warning}.",
    "Give the container the host's IPC namespace, and all ranks of a machine one container; or let NCCL share"
    " memory in the older way, or not directly at all.",
)
NO_INTERFACE = fail(
    "no-interface",
    "NCCL finds no network interface to meet on",
    "{nccl} finds no network interface to meet on; it needs one, if only lo, even between the GPUs of one"
    " machine{warning}.",
    "Take NCCL_SOCKET_IFNAME away, or start the container with a network.",
    "unset NCCL_SOCKET_IFNAME",
    "ip -brief address",
)
# Words of NCCL's log, and the cause that they stand for.
_SYMPTOMS: tuple[tuple[Cause, tuple[str, ...]], ...] = (
    (OLD_DRIVER, ("driver version is insufficient",)),
    (MULTICAST, ("nvls", "multicast")),
    (SMALL_SHM, ("no space left", "posix_fallocate", "failed to extend")),
    (NO_IPC, ("ipc handle", "cudaipc", "ipcopen", "ipcget", "shareablehandle", "shareable handle")),
    (NO_IPC, ("operation not permitted", "pidfd")),
    (NO_INTERFACE, ("no socket interface", "socket creation failed")),
)


@check(
    "ACC-012",
    title="NCCL",
    causes=[
        WRONG,
        HANGS,
        CRASHES,
        FAILS,
        OLD_DRIVER,
        SMALL_SHM,
        MULTICAST,
        NO_IPC,
        NO_INTERFACE,
    ],
    about="Every GPU gets a process of its own, joins by the target's own libnccl and sums a million numbers"
    " of three types, which must be exact; a communicator of one rank is the control. Where that fails,"
    " multicast (NVLS) and direct transfers are taken away in turn.",
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
        if together is None or number(together, "ranks") < 2:
            yield seen.unjudged("one rank adds up nothing" if together else failed(seen, None))
        elif number(together, "wrong") or (ok(together) and number(without, "wrong")):
            wrong = together if number(together, "wrong") else without
            elements = f"{number(wrong, 'wrong'):g} elements"
            where = ", ".join(words(wrong, "wrong_in")[:4]) or elements
            yield _found(seen, WRONG, together, where=where)
        elif ok(together):
            yield _worked(seen, together)
        elif number(together, "hung") or together.outcome in ("timeout", "crashed"):
            yield _stopped(view, seen, together)
        else:
            yield _explained(view, seen, together) or _failed(seen, together)

    yield from each_run(view, "nccl", judge, absent=ABSENT)


def _worked(seen: Seen, together: SystemTrial) -> Verdict:
    ranks = number(together, "ranks")
    if not is_right(together):
        return seen.unjudged("the sums were not compared")
    if number(seen.trial(ALONE), "own_numbers") != ranks:
        return seen.unjudged("one rank alone does not get its own numbers back")
    without = seen.trial(NVLS_OFF)
    also = "" if without is None else f"; without NVLS {failed(seen, without)}"
    also = "; without NVLS, too" if is_right(without) else also
    return Passed(f"{nccl(seen)}: exact sums on {ranks:g} GPUs, {way(together)}{also}")


def _stopped(view: SnapshotView, seen: Seen, together: SystemTrial) -> Verdict:
    stage = next(iter(words(together, "stages")), "").rpartition(": ")[2]
    if stage in _NOT_ITS_OWN:
        return seen.unjudged(f"{nccl(seen)} never ended, before it came to its work ({stage})")
    explained = None if _cured(seen)[0] else _explained(view, seen, together)
    cause = CRASHES if together.outcome == "crashed" else HANGS
    at = f" {_STAGES[stage]}" if stage in _STAGES else ""
    return explained or _found(seen, cause, together, at=at)


def _failed(seen: Seen, together: SystemTrial) -> Verdict:
    why = failed(seen, together)
    if together.outcome == "out-of-memory" or not number(seen.trial(ALONE), "own_numbers"):
        return seen.unjudged(f"{nccl(seen)}: {why}")
    warnings, others = words(together, "warnings"), words(together, "others")
    path = text(together, "library") or "libnccl.so.2"
    several = f"; the target has {len(others) + 1} of them, this is {path}" if others else ""
    warning = f' ("{warnings[0]}")' if warnings else ""
    return _found(seen, FAILS, together, why=why, warning=warning, others=several)


def _found(seen: Seen, cause: Cause, together: SystemTrial, **params: str) -> Finding:
    """With what helped, and what to do, by what was tried instead."""
    cured, advice = _cured(seen)
    given: Params = {
        "nccl": nccl(seen),
        "ranks": number(together, "ranks"),
        "cured": cured,
        **params,
    }
    return cause.found(evidence=seen.evidence(), advice=advice, **given)


def _cured(seen: Seen) -> tuple[str, Remedy]:
    if is_right(seen.trial(NVLS_OFF)):
        advice = Remedy(MULTICAST.remedy, list(MULTICAST.commands))
        return ", but not without NVLS (NVLink's multicast)", advice
    if is_right(seen.trial(P2P_OFF)):
        return ", but not without direct transfers between the GPUs", Remedy(
            "Look for what redirects or breaks them: Access Control Services on bridges, an IOMMU that"
            " translates (iommu=pt lets it pass), a virtual machine, NVLink errors. Until then NCCL can do"
            " without them, slower.",
            [
                f"export {P2P_OFF}",
                "sudo lspci -vvv | grep -i acsctl",
                "cat /proc/cmdline",
                _TOPOLOGY,
            ],
        )
    return "", Remedy(
        "Let NCCL log more where it is used, and look at how the GPUs reach each other.",
        ["export NCCL_DEBUG=INFO", "nvidia-smi topo -m", _TOPOLOGY],
    )


def _explained(view: SnapshotView, seen: Seen, trial: SystemTrial) -> Finding | None:
    """The cause that NCCL's own words stand for; None where they are not known."""
    alone = seen.trial(ALONE)
    lines = [*words(trial, "warnings"), trial.reason, "" if alone is None else alone.reason]
    for cause, signs in _SYMPTOMS:
        line = next((one for one in lines if any(sign in one.lower() for sign in signs)), None)
        if line is None:
            continue
        without = seen.trial(NVLS_OFF)
        if cause is MULTICAST and without is not None and not is_right(without):
            return None  # it is not the multicast alone
        given = {"nccl": nccl(seen), "warning": f' ("{line}")', **_params(view, seen, trial, cause)}
        return cause.found(evidence=seen.evidence(), **given)
    return None


def _params(view: SnapshotView, seen: Seen, trial: SystemTrial, cause: Cause) -> Params:
    """What a cause's templates and its remedy need on this machine."""
    host = facts_or(view.seen.host, Host)
    inside = known(host.container) is not None
    if cause is OLD_DRIVER:
        built, has = text(trial, "built_cuda"), fact(view.machine.cuda, "driver_api_version")
        return {
            "built": f"CUDA {built}" if built else "a newer CUDA",
            "newest": f"the driver knows CUDA {has} at most"
            if has
            else "the driver does not know it",
            "commands": then_reboot(on_system(view, "update-driver")),
        }
    if cause is SMALL_SHM:
        total = known(host.shm_total_mib)
        advised, commands = (
            "Make it larger, and take away what earlier jobs left in it.",
            _LARGER_SHM,
        )
        if inside:
            advised = (
                "Start the container with more shared memory; it cannot be enlarged from inside."
            )
            commands = in_engine(view, "limits")
        size = f" ({total} MiB)" if total else ""
        return {"size": size, "advice": Remedy(advised, commands)}
    if cause is MULTICAST:
        works = ", without it the sum is right" if seen.trial(NVLS_OFF) is not None else ""
        return {"fabric": _fabric(view), "works": works}
    if cause is NO_IPC:
        direct = is_right(seen.trial(P2P_OFF))
        engine = ["docker run --ipc=host …  # or podman"] if inside else []
        return {
            "works": ", without direct transfers the sum is right" if direct else "",
            "inside": ": a container keeps its processes apart" if inside else "",
            "commands": [*engine, "export NCCL_CUMEM_ENABLE=0", f"export {P2P_OFF}"],
        }
    return {}


def _fabric(view: SnapshotView) -> str:
    pairs = {(known(gpu.fabric_state), known(gpu.fabric_status)) for gpu in gpus(view)}
    states = sorted({", ".join(filter(None, pair)) for pair in pairs if any(pair)})
    return f" (the fabric's state: {', '.join(states)})" if states else ""


def nccl(seen: Seen) -> str:
    """ "NCCL 2.21.5", of the first trial that has its version."""
    versions = [text(one, "version") for one in seen.run.trials]
    return f"NCCL {next(filter(None, versions), '')}".strip()


def is_right(trial: SystemTrial | None) -> bool:
    """Whether all its sums came, and were exact."""
    if trial is None or not ok(trial) or "wrong" not in trial.evidence:
        return False
    return number(trial, "compared") > 0 and trial.evidence["wrong"] == 0


def way(trial: SystemTrial) -> str:
    """ "Ring over P2P/CUMEM", as far as it was logged."""
    over = ", ".join(words(trial, "transports")[:3])
    algorithm = text(trial, "algorithm") or "an algorithm that it does not log"
    return f"{algorithm} over {over}" if over else algorithm

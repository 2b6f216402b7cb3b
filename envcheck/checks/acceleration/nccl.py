"""The check on NCCL between the GPUs of one machine: an exact sum on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.missing import CannotJudge
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ..driver_state import then_reboot
from ..registry import check
from ..system_commands import in_engine, on_system
from .common import NOTHING_RUNS, Seen, each_run, failed, text, words

ABSENT = "the target has no libnccl"
# What explains that it fails or hangs: shared memory, fabric, redirected transfers, interfaces, libraries.
FOLLOWS = (
    *NOTHING_RUNS,
    "HOST-008",
    "GPU-012",
    "KRN-011",
    "GPU-013",
    "GPU-025",
    "PCI-007",
    "NET-001",
    "NET-008",
    "LIB-006",
    "LIB-007",
)
# The trials' names, as the collector's system gives them.
TOGETHER, ALONE = "all-reduce", "one rank"
NVLS_OFF, P2P_OFF = "NCCL_NVLS_ENABLE=0", "NCCL_P2P_DISABLE=1"
_STAGES = {
    "start": "before Python had started",
    "cuda": "while CUDA started on the GPU",
    "load": "while it was loaded",
    "one-rank": "in a communicator of one GPU",
    "alone": "in a communicator of one GPU",
    "join": "while the GPUs connect to each other",
    "sum": "in the first all-reduce",
    "bandwidth": "in an all-reduce of many megabytes",
}
_NOT_ITS_OWN = ("start", "cuda", "load")

NEEDS_NVLS = Cause(
    "fails-without-nvls",
    "warn",
    headline="NCCL fails between the GPUs without NVLS",
    sentence="{nccl} is right with NVLS, and without it fails: {why}.",
)
WRONG_WITHOUT_NVLS = Cause(
    "wrong-without-nvls",
    "fail",
    headline="NCCL's sums are wrong without NVLS",
    sentence="{nccl} is right with NVLS, and without it wrong.",
)
WRONG = Cause(
    "wrong-sums",
    "fail",
    headline="NCCL's sums are wrong{cured}",
    sentence="{nccl} adds up wrong on {ranks} GPUs ({where}){cured}: training goes on with wrong gradients.",
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
OLD_DRIVER = Cause(
    "driver-too-old",
    "fail",
    headline="{nccl} is built for {built}{newest}",
    sentence="{nccl} is built for {built}{newest}: no communicator starts ('CUDA driver version is"
    " insufficient for CUDA runtime version').",
    remedy="Install a newer driver, or the NCCL of the CUDA that this one knows, as the framework's own"
    " packages bring it.",
)
NO_CODE = Cause(
    "no-code-for-gpus",
    "fail",
    headline="{nccl} has no code for these GPUs",
    sentence="{nccl} has no code for these GPUs: it is older than they are ('no kernel image is available for"
    " execution on the device').",
    remedy="Install a framework that is built for them: it brings a newer NCCL.",
)
SMALL_SHM = Cause(
    "shm-too-small",
    "fail",
    headline="/dev/shm is too small for NCCL{size}",
    sentence="/dev/shm is too small for NCCL{size}: {nccl} gets no shared memory for the ways between the"
    " GPUs.",
)
CUMEM_HOST = Cause(
    "host-sharing-refused",
    "fail",
    headline="{nccl} shares the host's memory in a way that these GPUs do not allow",
    sentence="{nccl} shares the host's memory in a way that these GPUs do not allow: its shared memory in"
    " CUDA's own allocations needs direct access between the GPUs (nccl#1838).",
    remedy="Let NCCL share it through /dev/shm, or use a newer driver.",
    commands=["export NCCL_CUMEM_HOST_ENABLE=0"],
)
MULTICAST = Cause(
    "multicast-fails",
    "fail",
    headline="NVLS fails, NVLink's multicast{fabric}{works}",
    sentence="NVLS fails, NVLink's multicast{fabric}{works}: NCCL starts no communicator of several GPUs"
    " ({warning}).",
    remedy="Restart the fabric manager with the driver's own version, and reboot if that does not help; in a"
    " virtual machine or a container the host decides about multicast. Until then do without it, slower.",
    commands=["sudo systemctl restart nvidia-fabricmanager", f"export {NVLS_OFF}"],
)
NO_IPC = Cause(
    "ipc-refused",
    "fail",
    headline="One process may not use GPU memory that another one shares (CUDA IPC){works}",
    sentence="One process may not use GPU memory that another one shares (CUDA IPC){works}: {nccl} cannot"
    " connect the GPUs directly{warning}{inside}.",
    remedy="Give the container the host's IPC namespace, and all ranks of a machine one container; or let"
    " NCCL share memory in the older way, or not directly at all.",
)
NO_PEERS = Cause(
    "peer-access-refused",
    "fail",
    headline="The driver refuses direct transfers between these GPUs{works}",
    sentence="The driver refuses direct transfers between these GPUs{works}: {nccl} counts on them{warning}.",
    remedy="Look for what forbids them: a virtual machine, an IOMMU or Access Control Services. A newer NCCL"
    " asks first; until then do without.",
    commands=[f"export {P2P_OFF}", "nvidia-smi topo -p2p r"],
)
NO_INTERFACE = Cause(
    "no-interface",
    "fail",
    headline="NCCL finds no network interface to meet on",
    sentence="NCCL finds no network interface to meet on: {nccl} needs one, if only lo, even between the GPUs"
    " of one machine{warning}.",
    remedy="Take NCCL_SOCKET_IFNAME away, or start the container with a network.",
    commands=["unset NCCL_SOCKET_IFNAME", "ip -brief address"],
)
GPU_TWICE = Cause(
    "gpu-twice",
    "fail",
    headline="NCCL sees one GPU twice",
    sentence="NCCL sees one GPU twice: {nccl} joins no two ranks on it{warning}.",
    remedy="Name every GPU once.",
    commands=["echo $CUDA_VISIBLE_DEVICES", "nvidia-smi -L"],
)


@check(
    "ACC-012",
    title="NCCL",
    causes=[
        *(NEEDS_NVLS, WRONG_WITHOUT_NVLS, WRONG, HANGS, CRASHES, FAILS, OLD_DRIVER, NO_CODE),
        *(SMALL_SHM, CUMEM_HOST, MULTICAST, NO_IPC, NO_PEERS, NO_INTERFACE, GPU_TWICE),
    ],
    about="NCCL adds up gradients across GPUs. Every GPU gets a process of its own, as in training, joins by"
    " the target's own libnccl, and sends a million integers, and as many numbers in single and in half"
    " precision, whose sum is exact: each element on each GPU is compared. A communicator of one rank, which"
    " gives each GPU's own numbers back, is the control, and never counts as working. What NCCL logs names"
    " algorithm and transport. Where NVLink's multicast (NVLS) is in use the same is run without it; where"
    " the sum is wrong, or never comes, without direct transfers between GPUs: if that helps, they are the"
    " cause. A wrong sum, a hang and an error between GPUs that work one by one are failures. With one GPU"
    " it is not applicable.",
    sources=(
        "NVIDIA NCCL user guide: environment variables, troubleshooting",
        "nccl#2079, nccl#257 (hangs), nccl#290, nccl#342 (/dev/shm), nccl#1788 (multicast), nccl#1838",
        "issue-corpus.csv: Horovod/NCCL",
    ),
    follows=FOLLOWS,
    systems=("nccl",),
)
def nccl_sums(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        together = seen.trial(TOGETHER)
        if together is None or count(together, "ranks") < 2:
            why = failed(seen, None) if together is None else "one rank adds up nothing"
            yield seen.unjudged(why)
        elif count(together, "wrong"):
            wrong_in = ", ".join(words(together, "wrong_in")[:4])
            where = wrong_in or f"{count(together, 'wrong')} elements"
            yield _found(seen, WRONG, together, where=where)
        elif together.outcome == "ok":
            yield _worked(seen, together)
        else:
            hung = count(together, "hung") or together.outcome in ("timeout", "crashed")
            yield _stopped(view, seen, together) if hung else _failed(view, seen, together)

    yield from each_run(view, "nccl", judge, absent=ABSENT)


def _worked(seen: Seen, together: SystemTrial) -> Verdict:
    alone, ranks = seen.trial(ALONE), count(together, "ranks")
    if not count(together, "compared") or "wrong" not in together.evidence:
        return seen.unjudged("the sums were not compared")
    if alone is None or count(alone, "own_numbers") != ranks:
        return seen.unjudged("one rank alone does not get its own numbers back")
    without = seen.trial(NVLS_OFF)
    if without is not None and not is_right(without):
        cause = WRONG_WITHOUT_NVLS if count(without, "wrong") else NEEDS_NVLS
        return cause.found(
            evidence=seen.evidence(together, without),
            advice=_look_closer(P2P_OFF),
            nccl=nccl(seen),
            why=failed(seen, without),
        )
    also = "; without NVLS, too" if without is not None else ""
    return Passed(f"{nccl(seen)}: exact sums on {ranks} GPUs, {way(together)}{also}")


def _stopped(view: SnapshotView, seen: Seen, together: SystemTrial) -> Verdict:
    stages = words(together, "stages")
    stage = stages[0].rpartition(": ")[2] if stages else ""
    if stage in _NOT_ITS_OWN:
        return seen.unjudged(f"{nccl(seen)} never ended, {_STAGES[stage]}")
    crashed = together.outcome == "crashed"
    return (None if _cured(seen)[0] else _explained(view, seen, together)) or _found(
        seen,
        CRASHES if crashed else HANGS,
        together,
        verb="crashes" if crashed else "hangs",
        at=f" {_STAGES[stage]}" if stage in _STAGES else "",
    )


def _failed(view: SnapshotView, seen: Seen, together: SystemTrial) -> Verdict:
    explained = _explained(view, seen, together)
    if explained is not None:
        return explained
    why = failed(seen, together)
    if together.outcome == "out-of-memory" or not count(seen.trial(ALONE), "own_numbers"):
        return Unjudged("could-not-run", f"{nccl(seen)}: {why}")
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
            "Restart the fabric manager, and reboot if that does not help; until then do without multicast.",
            ["sudo systemctl restart nvidia-fabricmanager", f"export {NVLS_OFF}"],
        )
    if is_right(seen.trial(P2P_OFF)):
        return ", but not without direct transfers between the GPUs", Remedy(
            "Look for what redirects or breaks them: Access Control Services on bridges, an IOMMU that"
            " translates (iommu=pt lets it pass), a virtual machine, NVLink errors. Until then NCCL can do"
            " without them, slower.",
            [
                f"export {P2P_OFF}",
                "sudo lspci -vvv | grep -i acsctl",
                "cat /proc/cmdline",
                "nvidia-smi topo -p2p r",
            ],
        )
    return "", _look_closer()


def _look_closer(*also: str) -> Remedy:
    settings = " ".join(["NCCL_DEBUG=INFO", *also])
    return Remedy(
        "Let NCCL log more where it is used, and look at how the GPUs reach each other.",
        [f"export {settings}", "nvidia-smi topo -m", "nvidia-smi topo -p2p r"],
    )


class _Symptom(NamedTuple):
    """What NCCL's own words stand for.

    details(view, seen, trial): the cause's parameters, "commands" or "advice"; None: it is not the cause.
    """

    signs: tuple[str, ...]
    cause: Cause
    details: Callable[[SnapshotView, Seen, SystemTrial], dict[str, Any] | None]


def _explained(view: SnapshotView, seen: Seen, trial: SystemTrial) -> Finding | None:
    """The cause that NCCL's own words stand for; None where they are not known."""
    lines = [*words(trial, "warnings"), trial.reason]
    alone = seen.trial(ALONE)
    if alone is not None and alone.outcome != "ok":
        lines.append(alone.reason)
    logged = "\n".join(lines).lower()
    for symptom in _SYMPTOMS:
        if any(sign in logged for sign in symptom.signs):
            cause, details = symptom.cause, symptom.details(view, seen, trial)
            if cause is NO_PEERS and ("shm.cc" in logged or "cumem_host" in logged):
                cause = CUMEM_HOST
            if details is None:
                return None
            quoted = _quoted(trial, symptom.signs)
            params = {"nccl": nccl(seen), "warning": f' ("{quoted}")' if quoted else "", **details}
            return cause.found(evidence=seen.evidence(), **params)
    return None


def _quoted(trial: SystemTrial, signs: Iterable[str]) -> str:
    """The first warning that has one of these signs."""
    warnings = words(trial, "warnings")
    return next((one for one in warnings if any(sign in one.lower() for sign in signs)), "")


def _old_driver(view: SnapshotView, seen: Seen, trial: SystemTrial) -> dict[str, Any]:
    built = text(trial, "built_cuda")
    cuda = view.machine.cuda
    has = None if cuda is None or cuda.facts is None else known(cuda.facts.driver_api_version)
    newest = f"the driver knows CUDA {has} at most" if has else "the driver does not know it"
    return {
        "built": f"CUDA {built}" if built else "a newer CUDA",
        "newest": f", and {newest}",
        "commands": then_reboot(on_system(view, "update-driver")),
    }


def _shared_memory(view: SnapshotView, seen: Seen, _trial: SystemTrial) -> dict[str, Any]:
    host = view.seen.host
    total = None if host is None or host.facts is None else known(host.facts.shm_total_mib)
    if _inside(view):
        words_ = "Start the container with more shared memory; it cannot be enlarged from inside."
        remedy = Remedy(words_, in_engine(view, "limits"))
    else:
        words_ = "Make it larger, and take away what earlier jobs left in it."
        enlarge = "sudo mount -o remount,size=50% /dev/shm"
        remedy = Remedy(words_, ["df -h /dev/shm", "ls -l /dev/shm", enlarge])
    return {"size": f" ({total} MiB)" if total else "", "advice": remedy}


def _inside(view: SnapshotView) -> bool:
    """Whether it runs in a container."""
    host = view.seen.host
    return host is not None and host.facts is not None and known(host.facts.container) is not None


def _multicast(view: SnapshotView, seen: Seen, trial: SystemTrial) -> dict[str, Any] | None:
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
        "works": ", without it the sum is right" if without is not None else "",
        "warning": _quoted(trial, _NVLS) or "in nvls.cc",
    }


def _sharing(view: SnapshotView, seen: Seen, _trial: SystemTrial) -> dict[str, Any]:
    inside = _inside(view)
    engine = ["docker run --ipc=host …  # or podman"] if inside else []
    return {
        "works": _works(seen, "direct transfers"),
        "inside": ": a container keeps its processes apart" if inside else "",
        "commands": [*engine, "export NCCL_CUMEM_ENABLE=0", f"export {P2P_OFF}"],
    }


def _works(seen: Seen, without: str) -> str:
    return f", without {without} the sum is right" if is_right(seen.trial(P2P_OFF)) else ""


def _nothing(_view: SnapshotView, _seen: Seen, _trial: SystemTrial) -> dict[str, Any]:
    return {}


_NVLS = ("nvls", "multicast")
_IPC = (
    "ipc handle",
    "cudaipc",
    "ipcopen",
    "ipcget",
    "shareablehandle",
    "shareable handle",
    "operation not permitted",
    "pidfd",
)
_SYMPTOMS = (
    _Symptom(("driver version is insufficient",), OLD_DRIVER, _old_driver),
    _Symptom(("no kernel image", "named symbol not found"), NO_CODE, _nothing),
    _Symptom(_NVLS, MULTICAST, _multicast),
    _Symptom(
        ("peer access", "peeraccess"),
        NO_PEERS,
        lambda _view, seen, _trial: {"works": _works(seen, "them")},
    ),
    _Symptom(("no space left", "posix_fallocate", "failed to extend"), SMALL_SHM, _shared_memory),
    _Symptom(_IPC, NO_IPC, _sharing),
    _Symptom(
        ("no socket interface", "socket creation failed", "address family not supported"),
        NO_INTERFACE,
        _nothing,
    ),
    _Symptom(("duplicate gpu",), GPU_TWICE, _nothing),
)


def count(trial: SystemTrial | None, name: str) -> int:
    """A count of a trial's evidence; 0 where it has none."""
    value = None if trial is None else trial.evidence.get(name)
    return value if isinstance(value, int) else 0


def nccl(seen: Seen) -> str:
    """ "NCCL 2.21.5", of the first trial that has its version."""
    versions = [text(one, "version") for one in seen.run.trials]
    return f"NCCL {next(filter(None, versions), '')}".strip()


def is_right(trial: SystemTrial | None) -> bool:
    """Whether all its sums came, and were exact."""
    if trial is None or trial.outcome != "ok" or "wrong" not in trial.evidence:
        return False
    return count(trial, "compared") > 0 and trial.evidence["wrong"] == 0


def way(trial: SystemTrial) -> str:
    """ "Ring over P2P/CUMEM, 24 channels", as far as it was logged."""
    over = ", ".join(words(trial, "transports")[:3])
    parts = [
        text(trial, "algorithm") or "an algorithm that it does not log",
        f"over {over}" if over else "",
    ]
    channels = count(trial, "channels")
    return " ".join(filter(None, parts)) + (f", {channels} channels" if channels else "")

"""The check on NCCL between the GPUs of one machine: an exact sum on each of them."""

from __future__ import annotations

from ...facts.acceleration import SystemTrial
from ...facts.host import Host
from ..declared import declared_causes
from ..driver_state import then_reboot
from ..network.common import gpus
from ..reading import SnapshotView, fact, facts_or, known
from ..system_commands import in_engine, on_system
from ..verdicts import Cause, Finding, Params, Passed, Remedy, Verdict, Verdicts, check
from .common import Seen, each_run, failed, number, ok, text, words

CAUSE = declared_causes(__name__)

ABSENT = "the target has no libnccl"
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

MULTICAST = CAUSE["multicast-fails"]
NO_IPC = CAUSE["ipc-refused"]
# Words of NCCL's log, and the cause that they stand for.
_SYMPTOMS: tuple[tuple[Cause, tuple[str, ...]], ...] = (
    (CAUSE["driver-too-old"], ("driver version is insufficient",)),
    (MULTICAST, ("nvls", "multicast")),
    (CAUSE["shm-too-small"], ("no space left", "posix_fallocate", "failed to extend")),
    (NO_IPC, ("ipc handle", "cudaipc", "ipcopen", "ipcget", "shareablehandle", "shareable handle")),
    (NO_IPC, ("operation not permitted", "pidfd")),
    (CAUSE["no-interface"], ("no socket interface", "socket creation failed")),
)


@check("ACC-012")
def nccl_sums(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        together, without = seen.trial(TOGETHER), seen.trial(NVLS_OFF)
        if together is None or number(together, "ranks") < 2:
            yield seen.unjudged("one rank adds up nothing" if together else failed(seen, None))
        elif number(together, "wrong") or (ok(together) and number(without, "wrong")):
            wrong = together if number(together, "wrong") else without
            elements = f"{number(wrong, 'wrong'):g} elements"
            where = ", ".join(words(wrong, "wrong_in")[:4]) or elements
            yield _found(seen, CAUSE["wrong-sums"], together, where=where)
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
    cause = CAUSE["crashes"] if together.outcome == "crashed" else CAUSE["hangs"]
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
    return _found(
        seen, CAUSE["fails-between-gpus"], together, why=why, warning=warning, others=several
    )


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
    if cause is CAUSE["driver-too-old"]:
        built, has = text(trial, "built_cuda"), fact(view.machine.cuda, "driver_api_version")
        return {
            "built": f"CUDA {built}" if built else "a newer CUDA",
            "newest": f"the driver knows CUDA {has} at most"
            if has
            else "the driver does not know it",
            "commands": then_reboot(on_system(view, "update-driver")),
        }
    if cause is CAUSE["shm-too-small"]:
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

"""The check on NCCL between the GPUs of one machine: an exact sum on each of them."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.acceleration import SystemTrial
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ..registry import check
from .common import NOTHING_RUNS, Seen, each_run, failed
from .nccl_causes import NcclCause, cause_of
from .nccl_seen import ALONE, NVLS_OFF, P2P_OFF, TOGETHER, count, is_right, nccl, way, words_of

ABSENT = "the target has no libnccl"
# What explains that it fails or hangs: shared memory, fabric, redirected transfers, interfaces, libraries.
FOLLOWS = (
    *NOTHING_RUNS,
    "HOST-008",
    "BND-006",
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


@check(
    "ACC-012",
    title="NCCL",
    problem="NCCL does not work between the GPUs",
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
            yield Unjudged("could-not-run", why)
        elif count(together, "wrong"):
            yield _wrong(seen, together)
        elif together.outcome == "ok":
            yield from _worked(seen, together)
        elif count(together, "hung") or together.outcome in ("timeout", "crashed"):
            yield _stopped(view, seen, together)
        else:
            yield _failed(view, seen, together)

    yield from each_run(view, "nccl", judge, absent=ABSENT)


def _worked(seen: Seen, together: SystemTrial) -> Iterator[Verdict]:
    alone, ranks = seen.trial(ALONE), count(together, "ranks")
    if not count(together, "compared") or "wrong" not in together.evidence:
        yield Unjudged("could-not-run", "the sums were not compared")
        return
    if alone is None or count(alone, "own_numbers") != ranks:
        why = "one rank alone does not get its own numbers back: nothing can be said of several"
        yield Unjudged("could-not-run", why)
        return
    without = seen.trial(NVLS_OFF)
    if without is not None and not is_right(without):
        yield Finding(
            "fail" if count(without, "wrong") else "warn",
            f"{nccl(seen)} is right with NVLS, and without it"
            f" {'wrong' if count(without, 'wrong') else 'fails: ' + failed(seen, without)}.",
            evidence=seen.evidence(together, without),
            remedy=_look_closer(P2P_OFF),
            headline="NCCL fails between the GPUs without NVLS",
        )
        return
    also = "; without NVLS, too" if without is not None else ""
    yield Passed(f"{nccl(seen)}: exact sums on {ranks} GPUs, {way(together)}{also}")


def _wrong(seen: Seen, together: SystemTrial) -> Verdict:
    where = ", ".join(words_of(together, "wrong_in")[:4]) or f"{count(together, 'wrong')} elements"
    cured, remedy = _cured(seen)
    return Finding(
        "fail",
        f"{nccl(seen)} adds up wrong on {count(together, 'ranks')} GPUs ({where}){cured}: training"
        " goes on with wrong gradients.",
        evidence=seen.evidence(),
        remedy=remedy,
        headline=f"NCCL's sums are wrong{cured}",
    )


def _stopped(view: SnapshotView, seen: Seen, together: SystemTrial) -> Verdict:
    stages = words_of(together, "stages")
    stage = stages[0].rpartition(": ")[2] if stages else ""
    if stage in _NOT_ITS_OWN:
        return Unjudged("could-not-run", f"{nccl(seen)} never ended, {_STAGES[stage]}")
    at = f" {_STAGES[stage]}" if stage in _STAGES else ""
    verb = "crashes" if together.outcome == "crashed" else "hangs"
    cured, remedy = _cured(seen)
    cause = None if cured else cause_of(view, seen, together)
    if cause is not None:
        return _finding(seen, cause)
    return Finding(
        "fail",
        f"{nccl(seen)} {verb} between {count(together, 'ranks')} GPUs{at}{cured}: training stands still"
        " there.",
        evidence=seen.evidence(),
        remedy=remedy,
        headline=f"NCCL {verb} between the GPUs{cured}",
    )


def _failed(view: SnapshotView, seen: Seen, together: SystemTrial) -> Verdict:
    cause = cause_of(view, seen, together)
    if cause is not None:
        return _finding(seen, cause)
    alone = seen.trial(ALONE)
    if together.outcome == "out-of-memory" or not count(alone, "own_numbers"):
        return Unjudged("could-not-run", f"{nccl(seen)}: {failed(seen, together)}")
    cured, remedy = _cured(seen)
    warnings = words_of(together, "warnings")
    said = f' ("{warnings[0]}")' if warnings else ""
    return Finding(
        "fail",
        f"{nccl(seen)} works on each GPU alone and fails between them{cured}: {failed(seen, together)}"
        f"{said}{_several(together)}.",
        evidence=seen.evidence(),
        remedy=remedy,
        headline=f"NCCL fails between the GPUs{cured}",
    )


def _finding(seen: Seen, cause: NcclCause) -> Finding:
    return Finding(
        "fail",
        f"{cause.headline}: {cause.then}.",
        evidence=seen.evidence(),
        remedy=cause.remedy,
        headline=cause.headline,
    )


def _several(together: SystemTrial) -> str:
    others = words_of(together, "others")
    return (
        f"; the target has {len(others) + 1} of them, this is {_path(together)}" if others else ""
    )


def _path(together: SystemTrial) -> str:
    return str(together.evidence.get("library", "libnccl.so.2"))


def _cured(seen: Seen) -> tuple[str, Remedy]:
    """(", but not without …", what to do), by what was tried in place of it."""
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
        "Let NCCL say more where it is used, and look at how the GPUs reach each other.",
        [f"export {settings}", "nvidia-smi topo -m", "nvidia-smi topo -p2p r"],
    )

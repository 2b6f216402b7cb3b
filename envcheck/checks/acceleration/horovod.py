"""The check on Horovod: ranks that sum, and what they sum over."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ..registry import check
from ..target import pip_install
from .common import NO_IMPORT, Seen, each_run, failed, number
from .distributed import could_not, exact, listed, no_control, ok, summed, word, wrong

_NAMES = {"NCCL": "NCCL", "GLOO": "Gloo", "MPI": "MPI"}
_BUILD = {"tensorflow": "TENSORFLOW", "torch": "PYTORCH"}
_LAST_TENSORFLOW = (2, 16)  # from here on its last release does not work


@check(
    "ACC-014",
    title="Horovod",
    problem="Horovod does not sum between GPUs as it should",
    about="Horovod's ranks are started as horovodrun starts them, without ssh: one a GPU where there are"
    " several, else two on the processor; by mpirun where it is built with MPI alone. Each gives its number"
    " to a sum, which must be exact in all, weights must be the same after a broadcast and after one step of"
    " a distributed optimizer, and the timeline names what summed: NCCL_ALLREDUCE, GLOO_ALLREDUCE or"
    " MPI_ALLREDUCE. One rank proves nothing: it is what the others are held against. Between GPUs, a Horovod"
    " built without NCCL copies every gradient to the host and sums there, and says nothing of it.",
    sources=(
        "Horovod 0.28.1, run on TensorFlow 1.15.5 and 2.15.1 with Gloo",
        "Horovod, docs/timeline.rst and docs/gpus.rst",
        "horovod#3103",
        "horovod#4290",
    ),
    follows=(*NO_IMPORT, "PKG-011"),
    systems=("horovod",),
)
def horovod(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        trial, control = seen.trial("ranks"), seen.trial("one rank")
        if not ok(trial):
            yield _could_not(seen, trial)
            return
        if not ok(control) or number(control, "size") != 1:
            yield no_control(seen, control)
            return
        ranks = number(trial, "ranks")
        if number(trial, "size") < 2 or number(trial, "size") != ranks:
            yield Finding(
                "fail",
                f"{ranks:g} ranks of Horovod in {seen.title} do not find each other: each is one of"
                f" {number(trial, 'size'):g}, and trains alone.",
                seen.subjects,
                seen.evidence(trial, control),
                headline="Horovod's ranks train alone",
            )
            return
        if not exact(trial, "wrong") or not _stepped(trial):
            yield wrong(
                seen,
                f"Horovod in {seen.title} does not sum right: {summed(trial)}; after a broadcast and one step"
                f" weights are {', '.join(listed(trial, 'weights')) or 'unknown'} instead of"
                f" {number(trial, 'step'):g}.",
                "Horovod sums wrongly",
                trial,
                control,
            )
            return
        yield _over(view, seen, trial)

    yield from each_run(
        view, "horovod", judge, absent="the target has neither TensorFlow nor PyTorch"
    )


def _stepped(trial: SystemTrial | None) -> bool:
    weights = listed(trial, "weights")
    return weights == [str(float(number(trial, "step")))]


def _could_not(seen: Seen, trial: SystemTrial | None) -> Verdict:
    version = parse_version(known(seen.run.framework_version) or "")
    if (
        seen.run.framework == "tensorflow"
        and version is not None
        and version.release[:2] >= _LAST_TENSORFLOW
    ):
        why = f"{seen.title}: {failed(seen, trial)} (Horovod's last release, 0.28.1, is for TensorFlow up to"
        return Unjudged("could-not-run", f"{why} 2.15: horovod#4290)", seen.subjects)
    return could_not(seen, trial)


def _over(view: SnapshotView, seen: Seen, trial: SystemTrial | None) -> Verdict:
    """What is said of exact sums, by what they went over."""
    found = [one.partition("_")[0] for one in listed(trial, "operations")]
    through = " and ".join(_NAMES.get(one, one) for one in dict.fromkeys(found))
    with_nccl = trial is not None and trial.evidence.get("nccl") is True
    if seen.run.device != "gpu":
        lacks = "" if with_nccl else ", without NCCL in it"
        return Passed(
            f"Horovod {word(trial, 'version')} in {seen.title}: {number(trial, 'size'):g} ranks,"
            f" {summed(trial)}, equal weights, over {through or 'what its timeline does not name'}"
            f"{seen.where}{lacks}"
        )
    if "NCCL" in found:
        return Passed(
            f"Horovod {word(trial, 'version')} in {seen.title}: {number(trial, 'size'):g} ranks, a GPU each,"
            f" {summed(trial)}, equal weights, over {through}"
        )
    if with_nccl and not found:
        words = "its timeline names nothing that summed"
        return Unjudged("could-not-run", f"{seen.title}: {words}", seen.subjects)
    where = through or "the host"
    if with_nccl:
        return Finding(
            "fail",
            f"Horovod in {seen.title} is built with NCCL and sums between GPUs over {where}: every gradient"
            " goes through the host.",
            seen.subjects,
            seen.evidence(trial),
            Remedy(
                "Nothing may choose another way: neither the build (HOROVOD_GPU_OPERATIONS=NCCL) nor the"
                " environment.",
                ["env | grep ^HOROVOD_", "horovodrun --check-build"],
            ),
            headline=f"Horovod sums over {where}, though NCCL is built in",
        )
    return Finding(
        "warn" if "MPI" in found else "fail",  # an MPI may know its way between GPUs
        f"Horovod in {seen.title} is built without NCCL, and sums between GPUs over {where}: every gradient"
        " goes through the host, and several GPUs are hardly faster than one.",
        seen.subjects,
        seen.evidence(trial),
        Remedy(
            "Build it again with NCCL, whose headers must be there (libnccl-dev, or HOROVOD_NCCL_HOME).",
            [
                f"HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_WITH_{_BUILD.get(seen.run.framework, 'TENSORFLOW')}=1 "
                + pip_install(view, f"horovod=={word(trial, 'version') or '0.28.1'}")
                + " --no-cache-dir --no-binary=horovod --no-build-isolation --force-reinstall --no-deps",
                "horovodrun --check-build",
            ],
        ),
        headline=f"Horovod sums over {where}: it is built without NCCL",
    )

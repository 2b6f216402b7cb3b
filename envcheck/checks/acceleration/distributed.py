"""Checks on devices and processes that train together: TensorFlow's strategies and Horovod.

A trial must come to its end, its control must be alone, the members must find each other, and their sum must
be exact. A row of _JOBS says what differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ..declared import declared_causes
from ..reading import SnapshotView
from ..target import pip_install
from ..verdicts import Cause, Params, Passed, Unjudged, Verdict, Verdicts, check, fail
from .common import NO_IMPORT, Seen, each_run, failed, number, ok, text, words

CAUSE = declared_causes(__name__)

_OVER_NCCL = ("NcclAllReduce", "CollectiveAllReduce")  # not through one of the GPUs
_BACKENDS = {"NCCL": "NCCL", "GLOO": "Gloo", "MPI": "MPI"}
_LAST_TENSORFLOW = (2, 16)  # from here on Horovod's last release does not work


class _Job(NamedTuple):
    """How one system is judged.

    members(trial): how many found each other. works: the detail of a pass, or a function that makes the
    verdict where nothing is wrong. meets: by gRPC.
    """

    trial: str
    control: str
    alone: Cause
    wrong: Cause
    members: Callable[[SystemTrial | None], float]
    works: str | Callable[[SnapshotView, Seen, SystemTrial], Verdict]
    meets: bool = False
    absent: str = "the target has no TensorFlow"


def _alone(headline: str, sentence: str) -> Cause:
    """The members do not find each other, and each trains alone."""
    return fail("trains-alone", headline, sentence)


def _wrong(headline: str, sentence: str) -> Cause:
    remedy = (
        "Nothing trained this way is right: look at the log of NCCL, and at the GPUs' own checks."
    )
    return fail("wrong-sum", headline, sentence, remedy, "export NCCL_DEBUG=INFO")


def _could_not(seen: Seen, trial: SystemTrial | None) -> Unjudged:
    """A trial that came to nothing: why, and what is often behind it."""
    why, hint = failed(seen, trial), ""
    if through := text(trial, "proxy"):
        hint = (
            f" ({through} is set, and gRPC takes that proxy for this machine's own addresses, too)"
        )
    version = parse_version(seen.version)
    newer = version is not None and version.release[:2] >= _LAST_TENSORFLOW
    if seen.run.system == "horovod" and newer:
        hint = " (Horovod's last release, 0.28.1, is for TensorFlow up to 2.15: horovod#4290)"
    return seen.unjudged(f"{why}{hint}")


def _judged(view: SnapshotView, seen: Seen, job: _Job) -> Verdict:
    trial, control = seen.trial(job.trial), seen.trial(job.control)
    around = seen.trial(f"{job.trial}, no_proxy") if job.meets else None
    if trial is None or not ok(trial):
        if not ok(around):
            return _could_not(seen, trial)
        variable = text(around, "proxy") or text(trial, "proxy")
        return seen.found(CAUSE["proxy-in-the-way"], trial, around, variable=variable)
    if not ok(control) or job.members(control) > 1:
        return seen.unjudged(
            f"its control, {job.control}, came to nothing: {failed(seen, control)}"
        )
    met = job.members(trial) >= 2
    if met and _exact(trial):
        if not isinstance(job.works, str):
            return job.works(view, seen, trial)
        return Passed(f"{seen.title}: {job.works.format(**_params(trial))}{seen.where}")
    return seen.found(job.wrong if met else job.alone, trial, control, **_params(trial))


def _params(trial: SystemTrial) -> Params:
    names = ("sum", "expected", "wrong", "step", "replicas", "ranks")
    return {
        **{name: number(trial, name) for name in names},
        "members": number(trial, "size") or number(trial, "replicas"),
        "weights": ", ".join(words(trial, "weights")) or "unknown",
    }


def _exact(trial: SystemTrial) -> bool:
    """Whether the sum is what it must be, everywhere, and weights are the same."""
    evidence, weights = trial.evidence, words(trial, "weights")
    if "step" in evidence and weights != [str(float(number(trial, "step")))]:
        return False  # of Horovod: after one step
    if "weights" in evidence and len(weights) != 1:
        return False
    right = number(trial, "sum") == number(trial, "expected") > 0
    return right and number(trial, "differing") == number(trial, "wrong") == 0


def _summed(trial: SystemTrial) -> str:
    """ "sum 3 of 3" """
    return f"sum {number(trial, 'sum'):g} of {number(trial, 'expected'):g}"


def _replicas(trial: SystemTrial | None) -> float:
    return number(trial, "replicas")


def _size(trial: SystemTrial | None) -> float:
    """Of Horovod, where it is that of all ranks."""
    size, ranks = number(trial, "size"), number(trial, "ranks")
    return size if ranks in (0, size) else 1


def _mirrored(_view: SnapshotView, seen: Seen, trial: SystemTrial) -> Verdict:
    reduction, implementation = text(trial, "reduction"), text(trial, "implementation")
    over = " ".join(filter(None, (reduction, implementation)))
    by_others = reduction not in _OVER_NCCL or implementation == "RING"
    if seen.run.device == "gpu" and reduction and by_others:
        return seen.found(CAUSE["sums-without-nccl"], trial, more=seen.logged("nccl"), over=over)
    how = f", by {over}" if over else ""
    what = f"{number(trial, 'replicas'):g} replicas, {_summed(trial)}, the same weights{how}"
    return Passed(f"{seen.title}: {what}{seen.where}")


def _ranks(view: SnapshotView, seen: Seen, trial: SystemTrial) -> Verdict:
    """Horovod's, by what the sums went over. An MPI may know its way between GPUs."""
    found = [one.partition("_")[0] for one in words(trial, "operations")]
    over = " and ".join(_BACKENDS.get(one, one) for one in dict.fromkeys(found))
    with_nccl = trial.evidence.get("nccl") is True
    on_cpu = seen.run.device != "gpu"
    version = text(trial, "version")
    if on_cpu or "NCCL" in found or ("MPI" in found and not with_nccl):
        each = "" if on_cpu else ", a GPU each"
        lacks = "" if with_nccl or "NCCL" in found else ", without NCCL in it"
        return Passed(
            f"Horovod {version} in {seen.title}: {number(trial, 'size'):g} ranks{each}, {_summed(trial)},"
            f" equal weights, over {over or 'what its timeline does not name'}{seen.where}{lacks}"
        )
    if with_nccl and not found:
        return seen.unjudged("its timeline does not name what summed")
    if with_nccl:
        return seen.found(CAUSE["nccl-unused"], trial, over=over)
    build = (
        "HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_WITH_TENSORFLOW=1 "
        + pip_install(view, f"horovod=={version or '0.28.1'}")
        + " --no-cache-dir --no-binary=horovod --no-build-isolation --force-reinstall --no-deps"
    )
    commands = [build, "horovodrun --check-build"]
    return seen.found(
        CAUSE["built-without-nccl"], trial, commands=commands, over=over or "the host"
    )


_JOBS = {
    "mirrored": _Job(
        "mirrored",
        "OneDeviceStrategy",
        _alone(
            "MirroredStrategy trains on one device",
            "MirroredStrategy in {title} was given several devices and has {members:g} replica.",
        ),
        _wrong(
            "MirroredStrategy sums wrongly",
            "MirroredStrategy in {title} does not sum right: sum {sum:g} of {expected:g}, with {wrong:g} of"
            " {members:g} replicas wrong; its copies of a variable are {weights}.",
        ),
        _replicas,
        _mirrored,
    ),
    "multiworker": _Job(
        "workers",
        "without TF_CONFIG",
        _alone(
            "each worker trains alone: TF_CONFIG has no effect",
            "Two workers of {title} do not find each other: each trains alone, with {members:g} replica,"
            " though TF_CONFIG names both.",
        ),
        _wrong(
            "workers sum wrongly",
            "Workers of {title} do not sum right: sum {sum:g} of {expected:g}, and their weights are"
            " {weights}.",
        ),
        _replicas,
        "{replicas:g} workers in sync, sum {sum:g} of {expected:g}, the same weights; without TF_CONFIG a"
        " worker trains alone without a message",
        meets=True,
    ),
    "horovod": _Job(
        "ranks",
        "one rank",
        _alone(
            "Horovod's ranks train alone",
            "{ranks:g} ranks of Horovod in {title} do not find each other: each is one of {members:g}, and"
            " trains alone.",
        ),
        _wrong(
            "Horovod sums wrongly",
            "Horovod in {title} does not sum right: sum {sum:g} of {expected:g}; after a broadcast and one"
            " step weights are {weights} instead of {step:g}.",
        ),
        _size,
        _ranks,
        absent="the target has neither TensorFlow nor PyTorch",
    ),
}


def _register(
    code: str,
    system: str,
    title: str,
    about: str,
    *sources: str,
    causes: tuple[Cause, ...] = (),
    follows: tuple[str, ...] = (),
) -> None:
    job = _JOBS[system]

    @check(
        code,
        title=title,
        causes=[job.alone, job.wrong, *([CAUSE["proxy-in-the-way"]] if job.meets else []), *causes],
        about=about,
        sources=sources,
        follows=(*NO_IMPORT, *follows),
        systems=(system,),
    )
    def judge(view: SnapshotView) -> Verdicts:
        yield from each_run(
            view, system, lambda seen: [_judged(view, seen, job)], absent=job.absent
        )


_register(
    "ACC-015",
    "mirrored",
    "MirroredStrategy",
    "Each replica on each GPU (without one, on the processor made into two) gives its number to a sum, which"
    " must be exact, and to a variable, whose copies must stay the same; the control is OneDeviceStrategy.",
    "TensorFlow, tf.distribute.MirroredStrategy",
    "TensorFlow, python/distribute/cross_device_ops.py: select_cross_device_ops, choose_the_best",
    causes=(CAUSE["sums-without-nccl"],),
)
_register(
    "ACC-016",
    "multiworker",
    "MultiWorkerMirrored",
    "Two processes on 127.0.0.1 are named by TF_CONFIG: replicas in sync must be two, their sum exact and"
    " their weights the same. The control has no TF_CONFIG and trains alone.",
    "TensorFlow, tf.distribute.MultiWorkerMirroredStrategy",
    "gRPC, doc/environment_variables.md: grpc_proxy, https_proxy, http_proxy, no_grpc_proxy, no_proxy",
    "observed: TensorFlow 1.15.5 and 2.15.1 hang with http_proxy set",
)
_register(
    "ACC-014",
    "horovod",
    "Horovod",
    "Horovod's ranks are started without ssh, one for each GPU, else two on the processor: each number in a"
    " sum must be exact, and weights the same after a broadcast and a step. The timeline names the library"
    " that summed; between GPUs it must be NCCL.",
    "Horovod 0.28.1, run on TensorFlow 1.15.5 and 2.15.1 with Gloo",
    "Horovod, docs/timeline.rst and docs/gpus.rst; horovod#3103, horovod#4290",
    causes=(CAUSE["nccl-unused"], CAUSE["built-without-nccl"]),
    follows=("PKG-011",),
)

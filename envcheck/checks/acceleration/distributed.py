"""Checks on TensorFlow's strategies: replicas on several devices, and processes that work together."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.acceleration import SystemTrial
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ..registry import check
from .common import NO_IMPORT, Seen, each_run, failed, number

_ABSENT = "the target has no TensorFlow"
_CAUSES = (
    (("/dev/shm", "shared memory", "bus error", "no space left"), "is /dev/shm too small?"),
    (
        ("refused", "unreachable", "timed out", "no tcp connection"),
        "does a firewall stand between 127.0.0.1 and itself?",
    ),
    (("address already in use",), "another program took its port meanwhile: try again"),
)
# What sums between GPUs without going through one of them.
_OVER_NCCL = ("NcclAllReduce", "CollectiveAllReduce")


def could_not(seen: Seen, trial: SystemTrial | None) -> Unjudged:
    """A trial that came to nothing: why, and what is often behind it."""
    words = failed(seen, trial)
    low = words.lower()
    hint = next((why for signs, why in _CAUSES if any(one in low for one in signs)), "")
    through = word(trial, "proxy")
    if through and not hint:
        hint = f"{through} is set, and gRPC takes that proxy for this machine's own addresses, too"
    return Unjudged(
        "could-not-run", f"{seen.title}: {words}{f' ({hint})' if hint else ''}", seen.subjects
    )


def word(trial: SystemTrial | None, name: str) -> str:
    """A word of a trial's evidence; "" where it has none."""
    value = None if trial is None else trial.evidence.get(name)
    return value if isinstance(value, str) else ""


def listed(trial: SystemTrial | None, name: str) -> list[str]:
    """A list of words of a trial's evidence; empty where it has none."""
    value = None if trial is None else trial.evidence.get(name)
    return value if isinstance(value, list) else []


def ok(trial: SystemTrial | None) -> bool:
    return trial is not None and trial.outcome == "ok"


def exact(trial: SystemTrial | None, off: str = "differing") -> bool:
    """Whether the sum is what it must be, everywhere, and weights are the same."""
    return (
        number(trial, "expected") > 0
        and number(trial, "sum") == number(trial, "expected")
        and number(trial, off) == 0
        and (
            "weights" not in (trial.evidence if trial else {}) or len(listed(trial, "weights")) == 1
        )
    )


def summed(trial: SystemTrial | None) -> str:
    """ "sum 3 of 3" """
    return f"sum {number(trial, 'sum'):g} of {number(trial, 'expected'):g}"


def set_aside(trial: SystemTrial | None) -> str:
    """To stand behind what passed: a TF_CONFIG of the user's that it did not run with."""
    told = word(trial, "tf_config")
    return f"; TF_CONFIG is set here ({told}), and was set aside" if told else ""


def no_control(seen: Seen, control: SystemTrial | None) -> Unjudged:
    return Unjudged(
        "could-not-run",
        f"{seen.title}: what it is held against came to nothing: {failed(seen, control)}",
        seen.subjects,
    )


def wrong(seen: Seen, what: str, headline: str, *trials: SystemTrial | None) -> Finding:
    return Finding(
        "fail",
        what,
        seen.subjects,
        seen.evidence(*trials),
        Remedy(
            "Nothing that is trained so is right: look at the log of NCCL, and at the GPUs' own checks.",
            ["export NCCL_DEBUG=INFO"],
        ),
        headline=headline,
    )


def _proxied(seen: Seen, plain: SystemTrial, around: SystemTrial) -> Finding:
    """It hung, and went well as soon as 127.0.0.1 was left out of the proxy's business."""
    variable = word(around, "proxy") or word(plain, "proxy")
    return Finding(
        "warn",
        f"Processes of {seen.title} that work together do not reach each other: {variable} is set, gRPC goes"
        " to that proxy even for this machine's own addresses, and training hangs without a word. With"
        " no_proxy they do.",
        seen.subjects,
        seen.evidence(plain, around),
        Remedy(
            "Name the hosts of the cluster, and this one, in no_proxy, wherever training is started.",
            ["export no_proxy=localhost,127.0.0.1${no_proxy:+,$no_proxy}"],
        ),
        headline=f"TensorFlow's processes do not reach each other: {variable} without no_proxy",
    )


def _connected(seen: Seen, name: str) -> tuple[SystemTrial | None, Verdict | None]:
    """The trial that went well, or what is said where none did."""
    plain, around = seen.trial(name), seen.trial(f"{name}, no_proxy")
    if ok(plain):
        return plain, None
    if plain is not None and around is not None and ok(around):
        return None, _proxied(seen, plain, around)
    return None, could_not(seen, plain)


@check(
    "ACC-015",
    title="MirroredStrategy",
    problem="MirroredStrategy does not train on all devices alike",
    about="tf.distribute.MirroredStrategy keeps a copy of every variable on each GPU and sums gradients"
    " between them. It is run on all GPUs (without one, on the processor made into two): each replica gives"
    " its number to a sum of a quarter of a million numbers, which must be exact on all of them, and to a"
    " variable, whose copies must stay the same. OneDeviceStrategy is what it is held against. Which"
    " reduction was chosen is told: without NCCL it falls back to one GPU that sums for all, with no more"
    " than a line in the log, and several GPUs are then hardly faster than one. A TF_CONFIG that is set is"
    " put aside: a strategy that is told no devices would wait for the machines that it names.",
    sources=(
        "TensorFlow, tf.distribute.MirroredStrategy",
        "TensorFlow, python/distribute/cross_device_ops.py: select_cross_device_ops, choose_the_best",
        "acceleration.md, tried on two logical CPUs",
    ),
    follows=NO_IMPORT,
    systems=("mirrored",),
)
def mirrored(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        trial, control = seen.trial("mirrored"), seen.trial("OneDeviceStrategy")
        if not ok(trial):
            yield could_not(seen, trial)
            return
        if not ok(control) or number(control, "replicas") != 1:
            yield no_control(seen, control)
            return
        replicas = number(trial, "replicas")
        if replicas < 2:
            yield wrong(
                seen,
                f"MirroredStrategy in {seen.title} was given several devices and has {replicas:g} replica.",
                "MirroredStrategy trains on one device",
                trial,
            )
            return
        if not exact(trial, "wrong"):
            weights = ", ".join(listed(trial, "weights")) or "unknown"
            yield wrong(
                seen,
                f"MirroredStrategy in {seen.title} does not sum right: {summed(trial)}, with"
                f" {number(trial, 'wrong'):g} of {replicas:g} replicas wrong; its copies of a variable are"
                f" {weights}.",
                "MirroredStrategy sums wrongly",
                trial,
                control,
            )
            return
        reduction, implementation = word(trial, "reduction"), word(trial, "implementation")
        how = " ".join(filter(None, (reduction, implementation)))
        by_others = reduction not in _OVER_NCCL or implementation == "RING"
        if seen.run.device == "gpu" and reduction and by_others:
            yield _without_nccl(seen, trial, how)
            return
        yield Passed(
            f"{seen.title}: {replicas:g} replicas, {summed(trial)}, the same weights"
            f"{f', by {how}' if how else ''}{seen.where}{set_aside(trial)}"
        )

    yield from each_run(view, "mirrored", judge, absent=_ABSENT)


def _without_nccl(seen: Seen, trial: SystemTrial | None, reduction: str) -> Finding:
    return Finding(
        "warn",
        f"MirroredStrategy in {seen.title} sums between the GPUs by {reduction}, without NCCL: every gradient"
        " goes through one GPU or the host, and several GPUs are hardly faster than one.",
        seen.subjects,
        [*seen.evidence(trial), *seen.logged("nccl")],
        Remedy(
            "Use a TensorFlow that is built with NCCL (NVIDIA's, or upstream's for Linux), with whole GPUs:"
            " NCCL does without virtual ones. With more than four GPUs linked as in a DGX-1, a program may"
            " ask for tf.distribute.HierarchicalCopyAllReduce().",
        ),
        headline=f"MirroredStrategy sums without NCCL: {reduction}",
    )


@check(
    "ACC-016",
    title="MultiWorkerMirrored",
    problem="workers of one cluster do not train together",
    about="tf.distribute.MultiWorkerMirroredStrategy makes the processes that TF_CONFIG names one cluster."
    " Two are started on 127.0.0.1, on the processor or with a GPU each where there are several: replicas in"
    " sync must be two, their sum exact, and their weights the same, though each began with others. A third"
    " without TF_CONFIG is what they are held against: it trains alone, and says nothing of it, as any worker"
    " does whose launcher forgot the variable. gRPC uses http_proxy even for 127.0.0.1 unless no_proxy names"
    " it; it then hangs, which is tried out.",
    sources=(
        "TensorFlow, tf.distribute.MultiWorkerMirroredStrategy",
        "gRPC, doc/environment_variables.md: grpc_proxy, https_proxy, http_proxy, no_grpc_proxy, no_proxy",
        "observed: TensorFlow 1.15.5 and 2.15.1 hang with http_proxy set",
    ),
    follows=NO_IMPORT,
    systems=("multiworker",),
)
def multi_worker(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        trial, problem = _connected(seen, "workers")
        if trial is None:
            yield problem or could_not(seen, None)
            return
        control = seen.trial("without TF_CONFIG")
        if not ok(control) or number(control, "replicas") != 1:
            yield no_control(seen, control)
            return
        if number(trial, "replicas") < 2:
            yield Finding(
                "fail",
                f"Two workers of {seen.title} do not find each other: each trains alone, with"
                f" {number(trial, 'replicas'):g} replica, though TF_CONFIG names both.",
                seen.subjects,
                seen.evidence(trial, control),
                headline="each worker trains alone: TF_CONFIG is not heeded",
            )
            return
        if not exact(trial):
            yield wrong(
                seen,
                f"Workers of {seen.title} do not sum right: {summed(trial)}, and their weights are"
                f" {', '.join(listed(trial, 'weights')) or 'unknown'}.",
                "workers sum wrongly",
                trial,
                control,
            )
            return
        yield Passed(
            f"{seen.title}: {number(trial, 'replicas'):g} workers in sync, {summed(trial)}, the same weights"
            f"{seen.where}; without TF_CONFIG a worker trains alone and says nothing{set_aside(trial)}"
        )

    yield from each_run(view, "multiworker", judge, absent=_ABSENT)


@check(
    "ACC-017",
    title="parameter servers",
    problem="a parameter server does not get its workers' updates",
    about="A chief, two workers and a parameter server are started on 127.0.0.1, on the processor: with"
    " ClusterCoordinator from TensorFlow 2.4 on, else with tf.train.Server and every worker's own session. A"
    " variable must live on the server (/job:ps), and have got each worker's updates, none twice and none"
    " lost. It is held against a variable without a cluster. In TensorFlow 1, ParameterServerStrategy() reads"
    " no TF_CONFIG unless it is given a TFConfigClusterResolver, and trains alone without a word. gRPC's"
    " proxies are as for ACC-016.",
    sources=(
        "TensorFlow, tf.distribute.ParameterServerStrategy, tf.distribute.coordinator.ClusterCoordinator",
        "TensorFlow 1.15.5, python/distribute/parameter_server_strategy.py: ParameterServerStrategyV1",
    ),
    follows=NO_IMPORT,
    systems=("parameter-servers",),
)
def parameter_servers(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        trial, problem = _connected(seen, "cluster")
        if trial is None:
            yield problem or could_not(seen, None)
            return
        control = seen.trial("without a cluster")
        if not ok(control) or "/job:ps" in word(control, "place"):
            yield no_control(seen, control)
            return
        place = word(trial, "place")
        if "/job:ps" not in place:
            yield Finding(
                "fail",
                f"A variable of {seen.title}'s ParameterServerStrategy lives on {place or 'no device'}, and"
                " on no parameter server: each worker trains alone.",
                seen.subjects,
                seen.evidence(trial, control),
                headline="the parameter server holds nothing",
            )
            return
        if not exact(trial) or number(trial, "workers") < 2:
            yield Finding(
                "fail",
                f"A parameter server of {seen.title} does not get what its workers send: {summed(trial)},"
                f" from {number(trial, 'workers'):g} of 2 workers.",
                seen.subjects,
                seen.evidence(trial, control),
                headline="updates to the parameter server are lost",
            )
            return
        yield Passed(
            f"{seen.title}: {number(trial, 'workers'):g} workers, {summed(trial)} on {place}, by"
            f" {word(trial, 'program')}{seen.where}{set_aside(trial)}"
        )

    yield from each_run(view, "parameter-servers", judge, absent=_ABSENT)


@check(
    "ACC-018",
    title="TensorFlow on Spark",
    problem="executors of Spark do not train together",
    about="Where pyspark and tensorflowonspark are both installed, a Spark of two executors is started on"
    " this machine, and TFCluster makes one cluster of them: TF_CONFIG must be set in both, and a sum of"
    " MultiWorkerMirroredStrategy exact. With master_node=None, the default, TF_CONFIG stays empty and each"
    " executor trains alone without a word: that is what it is held against. It takes longer than all others:"
    " Java starts, and three Pythons import TensorFlow. The project is archived upstream.",
    sources=(
        "tensorflowonspark 2.2.5, TFCluster.py and TFSparkNode.py",
        "acceleration.md, tried with pyspark 3.5.9 and TensorFlow 2.15.1",
    ),
    follows=NO_IMPORT,
    systems=("spark",),
)
def spark(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        trial, control = seen.trial("cluster"), seen.trial("without a chief")
        if not ok(trial):
            yield could_not(seen, trial if trial is not None else control)
            return
        if not ok(control) or number(control, "configured") > 0:
            yield no_control(seen, control)
            return
        executors = number(trial, "executors")
        if number(trial, "configured") < executors or number(trial, "replicas") < 2:
            yield Finding(
                "fail",
                f"Executors of Spark train alone in {seen.title}: {number(trial, 'configured'):g} of"
                f" {executors:g} got a TF_CONFIG, and {number(trial, 'replicas'):g} replicas are in sync.",
                seen.subjects,
                seen.evidence(trial, control),
                headline="executors of Spark train alone",
            )
            return
        if not exact(trial):
            yield wrong(
                seen,
                f"Executors of Spark do not sum right in {seen.title}: {summed(trial)}.",
                "executors of Spark sum wrongly",
                trial,
                control,
            )
            return
        yield Passed(
            f"{seen.title}: {executors:g} executors of Spark {word(control, 'spark')} in sync,"
            f" {summed(trial)}"
            f"{seen.where}; with master_node=None each trains alone (tensorflowonspark is archived upstream)"
        )

    yield from each_run(view, "spark", judge, absent=_ABSENT)

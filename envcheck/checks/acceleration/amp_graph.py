"""The check on AMP by graph rewrite in TensorFlow: half types in the graph that ran."""

from __future__ import annotations

from packaging.version import Version

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ..environment.misleading import is_true
from ..environment.mixed_precision import KERAS_HAS_IT
from ..kernel.events import gpu_at
from ..reading import SnapshotView, known
from ..verdicts import Finding, Passed, Remedy, Verdict, Verdicts, check, fail, fill_in
from .common import NO_IMPORT, Seen, each_run, failed, number, ok, words

_SUITABLE = Version("7.0")  # the first compute capability that the rewrite takes
_SWITCHES = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"
_WAYS = {"session": "a wrapped optimizer", "function": "tf.function"}

NOTHING = fail(
    "rewrite-changes-nothing",
    "AMP is on in {title} and changes nothing",
    "AMP by graph rewrite, asked for by {ways}, changes nothing in {title}: all {convolutions:.9g}"
    " convolutions of a step stay in 32 bits.{because}",
)
STEP_FAILS = fail(
    "step-fails",
    "a step that runs fails with AMP in {title}",
    "In {title} a step that runs fails with AMP by graph rewrite ({way}): {why}.",
)


@check(
    "ACC-001",
    title="AMP, graph rewrite",
    causes=[NOTHING, STEP_FAILS],
    about="A tiny step is run with automatic mixed precision asked for as a program does, and with it off:"
    " engaged where the graph that ran has half types and the other has none.",
    sources=(
        "TensorFlow's documentation of enable_mixed_precision_graph_rewrite and tf.config.optimizer",
        "tensorflow/tensorflow#33435",
    ),
    follows=NO_IMPORT,
    systems=("amp-graph",),
)
def graph_is_rewritten(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        states = {
            name: _state(seen, trial, f"{name} off")
            for name in _WAYS
            if (trial := seen.trial(name)) is not None
        }
        engaged, nothing, broken = (
            [name for name, state in states.items() if state == wanted]
            for wanted in ("engaged", "nothing", "failed")
        )
        if seen.run.device == "cpu":
            yield seen.not_applicable("no GPU, and the rewrite is for GPUs")
        elif not states:
            yield seen.unjudged(failed(seen, None))
        elif set(states.values()) == {"absent"}:
            reasons = dict.fromkeys(failed(seen, seen.trial(name)) for name in states)
            yield seen.not_applicable("; ".join(reasons))
        elif nothing and not engaged and _too_old(view, seen):
            yield seen.not_applicable(_too_old(view, seen))
        else:
            if engaged:
                amounts = [f"{_amount(seen.trial(name))} ({_WAYS[name]})" for name in engaged]
                yield Passed(f"{seen.title}: {'; '.join(amounts)}")
            if nothing:
                yield _nothing(seen, nothing)
            yield from (_failed(seen, name) for name in broken)
            for name, state in states.items():
                if state not in ("engaged", "nothing", "failed", "absent"):
                    yield seen.unjudged(f"{_WAYS[name]}: {state}")

    yield from each_run(view, "amp-graph", judge, absent="the target has no TensorFlow")


def _state(seen: Seen, trial: SystemTrial, off: str) -> str:
    """ "engaged", "nothing", "failed", "absent", or why nobody can tell."""
    control = seen.trial(off)
    if trial.outcome == "not-supported":
        return "absent"
    if not ok(control):
        why = failed(seen, control if ok(trial) else trial)
        return f"cannot tell: the step with the rewrite off did not run ({why})"
    if not ok(trial):
        return "failed"
    if _halves(control):
        return "cannot tell: half types are in its graph with the rewrite off, too"
    if _halves(trial):
        return "engaged"
    if not number(trial, "convolutions"):
        by_xla = "XLA compiled the step, and what it compiled shows no types"
        none = "the graph that ran has no convolution in it"
        return f"cannot tell: {by_xla if number(trial, 'xla_nodes') else none}"
    if trial.evidence.get("places") == ["CPU"]:
        return "its step ran on the CPU"
    return "nothing"


def _halves(trial: SystemTrial | None) -> float:
    return number(trial, "half_convolutions") + number(trial, "half_products")


def _amount(trial: SystemTrial | None) -> str:
    """ "5 of 5 convolutions and 3 of 3 products in float16"."""
    half = " and ".join(words(trial, "types")) or "half precision"
    parts = [
        f"{number(trial, f'half_{kind}'):.10g} of {number(trial, kind):.10g} {kind}"
        for kind in ("convolutions", "products")
    ]
    return f"{' and '.join(parts)} in {half}"


def _too_old(view: SnapshotView, seen: Seen) -> str:
    """Why no rewrite is to be expected on this GPU; "" where one is."""
    gpu = gpu_at(view, next(iter(seen.run.gpus), ""))
    own = (known(gpu.compute_capability) or "") if gpu is not None else ""
    capability = parse_version(own)
    if capability is None or capability >= _SUITABLE:
        return ""
    return f"the GPU has compute capability {own}, and the rewrite wants {_SUITABLE}"


def _asked(seen: Seen) -> dict[str, str]:
    """AMP's variables that are set to something true, with their values."""
    pairs = [one.partition("=") for one in words(seen.trial("variables"), "set")]
    return {name: value for name, _, value in pairs if name[:10] == "TF_ENABLE_" and is_true(value)}


def _nothing(seen: Seen, names: list[str]) -> Finding:
    variables = words(seen.trial("variables"), "set")
    switches = [one for one in variables if one.startswith(_SWITCHES)]
    because = f" {', '.join(switches)} is set, which changes what it takes." if switches else ""
    return seen.found(
        NOTHING,
        *map(seen.trial, names),
        more=seen.logged("auto_mixed_precision"),
        advice=_remedy(seen, [one.partition("=")[0] for one in switches]),
        ways=" and ".join(_WAYS[name] for name in names),
        convolutions=number(seen.trial(names[0]), "convolutions"),
        because=because,
    )


def _remedy(seen: Seen, switches: list[str]) -> Remedy:
    if switches:
        commands = [f"unset {name}" for name in switches]
        return Remedy("Leave it to the rewrite what it takes.", commands)
    version = parse_version(seen.version)
    if version is not None and version >= KERAS_HAS_IT:
        return Remedy(
            "Use Keras's policy, the supported way in this TensorFlow: "
            "tf.keras.mixed_precision.set_global_policy('mixed_float16')."
        )
    program = fill_in("SCRIPT", "your program")
    logged = "TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=auto_mixed_precision=2"
    return Remedy("Let the rewrite say why.", [f"{logged} python {program}"])


def _failed(seen: Seen, name: str) -> Verdict:
    trial, why = seen.trial(name), failed(seen, seen.trial(name))
    if "RuntimeError" in why and _asked(seen):
        forbidden = "by a variable already, which excludes wrapping the optimizer"
        return seen.not_applicable(f"AMP is asked for {forbidden}")
    if trial is None or trial.outcome != "error":
        return seen.unjudged(f"{_WAYS[name]}: {why}")
    return seen.found(STEP_FAILS, trial, advice=_remedy(seen, []), way=_WAYS[name], why=why)

"""What ran of AMP by graph rewrite, and which of AMP's variables are known and set: for its two checks."""

from __future__ import annotations

from typing import NamedTuple

from packaging.version import Version

from ...data.versions import parse_version
from ...facts.acceleration import SystemTrial
from ...findings.model import Unjudged
from ..environment.speed import is_true
from .common import Seen, number, text, words

SYSTEM = "amp-graph"
ABSENT = "the target has no TensorFlow"
ALL, REWRITE, SCALING = (
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
    "TF_ENABLE_AUTO_MIXED_PRECISION_LOSS_SCALING",
)
SUITABLE = Version("7.0")  # the first compute capability that the rewrite takes
# name: what it stands for, and the trial without it
WAYS = {
    "session": ("a wrapped optimizer", "session off"),
    "function": ("tf.function", "function off"),
}
UNTOLD = {
    "hidden": "cannot tell: XLA compiled the step, and what it compiled shows no types",
    "unseen": "cannot tell: the graph that ran has no convolution in it",
    "elsewhere": "its step ran on the CPU",
    "both": "cannot tell: half types are in its graph with the rewrite off, too",
    "alone": "cannot tell: the step with the rewrite off did not run",
}


class Way(NamedTuple):
    """A way to ask for the rewrite, and what came of it."""

    title: str
    trial: SystemTrial
    state: str  # "engaged", "nothing", "failed", "absent", or one of UNTOLD


def cannot_tell(seen: Seen, way: Way, words: str) -> Unjudged:
    why = f" ({way.trial.reason})" if way.trial.reason else ""
    return seen.unjudged(f"{way.title}: {words}{why}")


def way_of(seen: Seen, name: str, trial: SystemTrial | None = None) -> Way:
    title, off = WAYS[name]
    trial = trial or seen.trial(name)
    assert trial is not None
    return Way(title, trial, state_of(seen, trial, seen.trial(off)))


def state_of(seen: Seen, trial: SystemTrial, control: SystemTrial | None) -> str:
    if trial.outcome == "not-supported":
        return "absent"
    without = control is not None and control.outcome == "ok"
    if trial.outcome != "ok":
        return "failed" if without else "alone"
    if not without:
        return "alone"
    if number_half(control):
        return "both"
    if number_half(trial):
        return "engaged"
    if not number(trial, "convolutions"):
        return "hidden" if number(trial, "xla_nodes") else "unseen"
    if seen.run.device == "gpu" and trial.evidence.get("places") == ["CPU"]:
        return "elsewhere"
    return "nothing"


def number_half(trial: SystemTrial | None) -> float:
    return number(trial, "half_convolutions") + number(trial, "half_products")


def amount_of(trial: SystemTrial) -> str:
    """ "5 of 5 convolutions and 3 of 3 products in float16"."""
    half = " and ".join(words(trial, "types")) or "half precision"
    parts = [
        f"{number(trial, f'half_{kind}'):.10g} of {number(trial, kind):.10g} {kind}"
        for kind in ("convolutions", "products")
    ]
    return f"{' and '.join(parts)} in {half}"


def would_clash(seen: Seen, trial: SystemTrial | None) -> bool:
    """Whether a variable that this build heeds forbade wrapping the optimizer."""
    if trial is None or trial.outcome != "error" or "RuntimeError" not in trial.reason:
        return False
    return any(
        is_true(value) and name in words_known(seen) for name, value in asked_for(seen).items()
    )


def why_too_old(seen: Seen) -> str:
    """Why no rewrite is to be expected on this GPU; "" where one is."""
    own = text(seen.trial("variables"), "compute_capability")
    capability = parse_version(own)
    if capability is None or capability >= SUITABLE:
        return ""
    return f"the GPU has compute capability {own}, and the rewrite wants {SUITABLE}"


def words_set(seen: Seen) -> list[str]:
    return words(seen.trial("variables"), "set")


def asked_for(seen: Seen) -> dict[str, str]:
    """AMP's variables that are set, with their values."""
    pairs = [one.partition("=") for one in words_set(seen)]
    return {name: value for name, _, value in pairs if name in (ALL, REWRITE, SCALING)}


def words_known(seen: Seen) -> list[str]:
    return words(seen.trial("variables"), "known")

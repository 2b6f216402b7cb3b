"""The check on cuDNN's convolutions: in each framework, of each type, held against a reference."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.missing import CannotJudge
from ...facts.target import Framework
from ...facts.view import SnapshotView, facts_of
from ...findings.causes import Cause
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..framework.trials import TAKEN, lines_of, why_failed
from ..registry import check
from ..target import python
from .common import NO_FRAMEWORK, Seen, died, each_run, failed, number

_PASSES = "forward and both gradients"
_NEAR = ", stride 1"  # in a trial's name: its results need not be exact
_BITS = "24-bit"
_ABOUT = (
    "Convolutions in 2D and 3D, of FP32, TF32, FP16 and BF16 numbers as far as the GPU and the framework "
    "have them, forward and with the gradients of the input and of the filter, each compared with a "
    "reference. The numbers are small integers and the stride is 2, which leaves cuDNN no algorithm that "
    "rounds: every result is exact or wrong. With a stride of 1 results must lie next to the right integer; "
    "random 24-bit numbers in FP32 may be off by what any order of summing explains. A failure where results "
    "are wrong, where a convolution fails, with its cause, and where PyTorch runs without cuDNN. Which cuDNN "
    "fits which framework is another check's (LIB-005); the one that ran is named."
)

WRONG = Cause(
    "wrong-convolutions",
    "fail",
    headline="Convolutions in {title} are wrong{where}: {first}",
    sentence="{title} computes wrong convolutions on {device}: {names}; of the first, {count}{example}.",
    remedy="Run it on another GPU. If it is wrong on one alone, that GPU or its memory is broken; if it is"
    " wrong on all, take a newer cuDNN, or a newer build.",
    commands=["nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER", "dmesg | grep -i xid"],
)
FAILS = Cause(
    "convolutions-fail",
    "fail",
    headline="Convolutions fail in {title}{where}: {why}",
    sentence="{title} fails at convolutions{where} ({names}): {why}.",
)
WITHOUT_CUDNN = Cause(
    "without-cudnn",
    "fail",
    headline="{title} convolves without cuDNN",
    sentence="{title} runs convolutions on the GPU without cuDNN, by kernels of its own, which are slower.",
    remedy="Check whether this build has cuDNN, and whether something switches it off"
    " (torch.backends.cudnn.enabled).",
)
ROUNDS = Cause(
    "tf32-not-switched-off",
    "warn",
    headline="{title} rounds convolutions to TF32 with TF32 switched off",
    sentence="Convolutions in {title} round to TF32 though TF32 was switched off for them.",
)


@check(
    "ACC-011",
    title="cuDNN convolutions",
    causes=[WRONG, FAILS, WITHOUT_CUDNN, ROUNDS],
    about=_ABOUT,
    sources=(
        "NVIDIA's cuDNN API reference, tables of cudnnConvolutionForward and its backward passes",
        "Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1",
        "tensorflow#24828, #32548; pytorch#55381, #105941",
    ),
    follows=(*NO_FRAMEWORK, "FRM-008", "FRM-009", "FRM-010", "LIB-002", "LIB-005", "GPU-016"),
    systems=("cudnn",),
)
def convolutions(view: SnapshotView) -> Iterator[Verdict]:
    def judge(seen: Seen) -> Iterator[Verdict]:
        made = [one for one in seen.run.trials if not one.control and one.name != "cuDNN"]
        wrong = [one for one in made if _wrong(seen, one)]
        broken = [one for one in made if one.outcome in ("error", "crashed")]
        taken = [one for one in made if one.outcome == "out-of-memory" or TAKEN.search(one.reason)]
        broken = [one for one in broken if one not in taken]
        if wrong:
            yield _are_wrong(seen, wrong)
        if broken:
            yield _fails(view, seen, broken)
        if wrong or broken:
            return
        for one in taken[:1]:
            yield seen.unjudged(f"{one.name}: the GPU or its memory is taken")
        last = died(seen)
        if last is not None:
            yield seen.unjudged(f"{last.name}: {failed(seen, last)}")
        right = [one for one in made if one.outcome == "ok"]
        if right:
            yield from _are_right(view, seen, right)
        elif not taken and last is None:
            yield seen.unjudged(failed(seen, made[0] if made else None))

    yield from each_run(view, "cudnn", judge)


def _wrong(seen: Seen, trial: SystemTrial) -> bool:
    """Whether a convolution's results are none that a right one may have."""
    if trial.outcome != "ok":
        return False
    switched = trial.evidence.get("tf32") != "no switch"
    if number(trial, "no_numbers"):
        return True
    if _BITS in trial.name:
        return number(trial, "share_tf32" if not switched or _in_tf32(trial) else "share") > 1
    if _NEAR in trial.name:
        return number(trial, "far") > 0 and switched
    return number(trial, "differ") > 0


def _in_tf32(trial: SystemTrial) -> bool:
    """Whether TF32 explains results that FP32 does not."""
    return number(trial, "share") > 1 >= number(trial, "share_tf32")


def _are_wrong(seen: Seen, wrong: list[SystemTrial]) -> Finding:
    first, on_cpu = wrong[0], seen.run.device == "cpu"
    example = first.evidence.get("first")
    found = seen.found(
        WRONG,
        *(*wrong, seen.trial("cuDNN")),
        first=first.name,
        device="the CPU" if on_cpu else "the GPU",
        names=", ".join(one.name for one in wrong),
        count=f"{number(first, 'differ'):g} of {number(first, 'outputs'):g} results",
        example=f" ({example})" if example else "",
    )
    return msgspec.structs.replace(found, remedy=None) if on_cpu else found


def _fails(view: SnapshotView, seen: Seen, broken: list[SystemTrial]) -> Finding:
    why, remedy = _why(view, seen, broken[0])
    names = ", ".join(one.name for one in broken)
    log = seen.logged("cudnn")
    return seen.found(FAILS, *broken, more=log, advice=remedy, names=names, why=why)


def _why(view: SnapshotView, seen: Seen, first: SystemTrial) -> tuple[str, Remedy | None]:
    try:
        facts = _facts(view, seen)
    except CannotJudge:
        return first.reason or first.outcome, None
    words = [*seen.run.log, *lines_of(facts), first.reason]
    return why_failed(view, facts, first.reason, words)


def _facts(view: SnapshotView, seen: Seen) -> Framework:
    title = known(seen.run.framework_version) or seen.run.framework
    places = {
        "tensorflow": view.target.tensorflow,
        "torch": view.target.torch,
        "jax": view.target.jax,
    }
    return facts_of(places.get(seen.run.framework), title)


def _are_right(view: SnapshotView, seen: Seen, right: list[SystemTrial]) -> Iterator[Verdict]:
    names = ", ".join(one.name for one in right if _NEAR not in one.name and _BITS not in one.name)
    right_are = f"{names or right[0].name}, {_PASSES}, as the reference{seen.where}"
    if seen.run.device == "cpu":
        yield seen.not_applicable(right_are)
        return
    ran = next((one for one in right if "cudnn" in one.evidence), None)
    library = seen.trial("cuDNN")
    if ran is not None and not number(ran, "cudnn") and seen.run.framework == "torch":
        code = "import torch; c = torch.backends.cudnn; print(c.version(), c.enabled)"
        commands = [f"{python(view)} -c '{code}'"]
        yield seen.found(WITHOUT_CUDNN, ran, library, commands=commands)
    elif not number(ran, "cudnn"):
        yield seen.unjudged(f"{right_are}; whether cuDNN computed them cannot be told")
    elif any(_in_tf32(one) for one in right if _BITS in one.name and _switched(one)):
        yield seen.found(ROUNDS, *right)
    else:
        yield Passed(f"{seen.title}: {right_are}{_version(library)}")


def _switched(trial: SystemTrial) -> bool:
    return trial.evidence.get("tf32") == "off"


def _version(library: SystemTrial | None) -> str:
    if library is None or library.outcome != "ok" or not library.evidence.get("version"):
        return ""
    built = library.evidence.get("built_with")
    beside = f" (built with {built})" if built else ""
    return f"; cuDNN {library.evidence['version']}{beside}"

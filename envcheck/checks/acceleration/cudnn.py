"""The check on cuDNN's convolutions: in each framework, of each type, held against a reference."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.acceleration import SystemTrial
from ...facts.base import known
from ...facts.missing import CannotJudge
from ...facts.target import Framework
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ..framework.trials import TAKEN, said, why_failed
from ..registry import check
from ..target import python
from .common import NO_FRAMEWORK, Seen, died, each_run, failed, number

_PASSES = "forward and both gradients"
_NEAR = ", stride 1"  # in a trial's name: its results need not be exact
_BITS = "24-bit"
_ABOUT = (
    "Convolutions in 2D and 3D, of FP32, TF32, FP16 and BF16 numbers as far as the GPU and the framework "
    "have them, forward and with the gradients of the input and of the filter, each held against a "
    "reference. The numbers are small integers and the stride is 2, which leaves cuDNN no algorithm that "
    "rounds: every result is exact or wrong. With a stride of 1 results must lie next to the right integer; "
    "random 24-bit numbers in FP32 may be off by what any order of summing explains. A failure where results "
    "are wrong, where a convolution fails, with its cause, and where PyTorch runs without cuDNN. Which cuDNN "
    "fits which framework is another check's (LIB-005); the one that ran is named."
)


@check(
    "ACC-011",
    title="cuDNN convolutions",
    problem="convolutions fail or are wrong on the GPU",
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
            yield Unjudged(
                "could-not-run",
                f"{seen.title}, {one.name}: the GPU or its memory is taken",
                seen.subjects,
            )
        last = died(seen)
        if last is not None:
            yield Unjudged(
                "could-not-run", f"{_of(seen, last)}: {failed(seen, last)}", seen.subjects
            )
        right = [one for one in made if one.outcome == "ok"]
        if right:
            yield from _are_right(view, seen, right)
        elif not taken and last is None:
            yield _none(seen, made)

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
    first = wrong[0]
    example = first.evidence.get("first")
    where = "the CPU" if seen.run.device == "cpu" else "the GPU"
    count = f"{number(first, 'differ'):g} of {number(first, 'outputs'):g} results"
    again = Remedy(
        "Run it on another GPU. Where it is wrong on one alone, that GPU or its memory is broken; where it "
        "is wrong on all, take a newer cuDNN, or a newer build.",
        ["nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER", "dmesg | grep -i xid"],
    )
    return Finding(
        "fail",
        f"{seen.title} computes wrong convolutions on {where}: {', '.join(one.name for one in wrong)}; "
        f"of the first, {count}{f' ({example})' if example else ''}.",
        seen.subjects,
        seen.evidence(*wrong, seen.trial("cuDNN")),
        None if seen.run.device == "cpu" else again,
        headline=f"Convolutions in {seen.title} are wrong{seen.where}: {wrong[0].name}",
    )


def _fails(view: SnapshotView, seen: Seen, broken: list[SystemTrial]) -> Finding:
    why, remedy = _why(view, seen, broken[0])
    names = ", ".join(one.name for one in broken)
    return Finding(
        "fail",
        f"{seen.title} fails at convolutions{seen.where} ({names}): {why}.",
        seen.subjects,
        [*seen.evidence(*broken), *seen.logged("cudnn")],
        remedy,
        headline=f"Convolutions fail in {seen.title}{seen.where}: {why}",
    )


def _why(view: SnapshotView, seen: Seen, first: SystemTrial) -> tuple[str, Remedy | None]:
    try:
        facts = _facts(view, seen)
    except CannotJudge:
        return first.reason or first.outcome, None
    words = [*seen.run.log, *said(facts), first.reason]
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
    told = f"{seen.title}: {names or right[0].name}, {_PASSES}, as the reference{seen.where}"
    if seen.run.device == "cpu":
        yield Unjudged("skipped", f"not applicable: {told}", seen.subjects)
        return
    ran = next((one for one in right if "cudnn" in one.evidence), None)
    library = seen.trial("cuDNN")
    if ran is not None and not number(ran, "cudnn") and seen.run.framework == "torch":
        yield _without(view, seen, ran)
        return
    if not number(ran, "cudnn"):
        reason = f"{told}; whether cuDNN computed them cannot be told"
        yield Unjudged("could-not-run", reason, seen.subjects)
        return
    if any(_in_tf32(one) for one in right if _BITS in one.name and _switched(one)):
        yield Finding(
            "warn",
            f"Convolutions in {seen.title} round to TF32 though TF32 was switched off for them.",
            seen.subjects,
            seen.evidence(*right),
            headline=f"{seen.title} rounds convolutions to TF32 with TF32 switched off",
        )
        return
    yield Passed(f"{told}{_version(library)}")


def _switched(trial: SystemTrial) -> bool:
    return trial.evidence.get("tf32") == "off"


def _without(view: SnapshotView, seen: Seen, first: SystemTrial) -> Finding:
    return Finding(
        "fail",
        f"{seen.title} runs convolutions on the GPU without cuDNN, by kernels of its own, which are slower.",
        seen.subjects,
        seen.evidence(first, seen.trial("cuDNN")),
        Remedy(
            "See whether this build has cuDNN, and whether something switches it off "
            "(torch.backends.cudnn.enabled).",
            [
                f"{python(view)} -c 'import torch; c = torch.backends.cudnn; print(c.version(), c.enabled)'"
            ],
        ),
        headline=f"{seen.title} convolves without cuDNN",
    )


def _version(library: SystemTrial | None) -> str:
    if library is None or library.outcome != "ok" or not library.evidence.get("version"):
        return ""
    built = library.evidence.get("built_with")
    beside = f" (built with {built})" if built else ""
    return f"; cuDNN {library.evidence['version']}{beside}"


def _of(seen: Seen, trial: SystemTrial) -> str:
    return f"{seen.title}, {trial.name}"


def _none(seen: Seen, made: list[SystemTrial]) -> Unjudged:
    why = failed(seen, made[0] if made else None)
    return Unjudged("could-not-run", f"{seen.title}: {why}", seen.subjects)

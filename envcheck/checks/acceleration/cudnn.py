"""The check on cuDNN's convolutions: in each framework, of each type, held against a reference."""

from __future__ import annotations

from contextlib import suppress

from ...facts.acceleration import SystemTrial
from ..framework.trials import TAKEN, lines_of, why_failed
from ..reading import CannotJudge, SnapshotView, facts_of
from ..target import python
from ..verdicts import Finding, Passed, Remedy, Verdict, Verdicts, check, fail
from .common import NO_FRAMEWORK, Seen, died, each_run, failed, number, ok, text

WRONG = fail(
    "wrong-convolutions",
    "Convolutions in {title} are wrong: {first}",
    "{title} computes wrong convolutions: {names}; of the first, {differ:g} of {outputs:g} results"
    " ({example}).",
    "Run it on another GPU. If it is wrong on one alone, that GPU or its memory is broken; if it is wrong on"
    " all, take a newer cuDNN, or a newer build.",
    "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER",
    "dmesg | grep -i xid",
)
FAILS = fail(
    "convolutions-fail",
    "Convolutions fail in {title}: {why}",
    "{title} fails at convolutions ({names}): {why}.",
)
WITHOUT_CUDNN = fail(
    "without-cudnn",
    "{title} convolves without cuDNN",
    "{title} runs convolutions on the GPU without cuDNN, by kernels of its own, which are slower.",
    "Check whether this build has cuDNN, and whether something switches it off"
    " (torch.backends.cudnn.enabled).",
)


@check(
    "ACC-011",
    title="cuDNN convolutions",
    causes=[WRONG, FAILS, WITHOUT_CUDNN],
    about="Convolutions in 2D and 3D of FP32, TF32, FP16 and BF16, forward and with both gradients, of small"
    " integers, so that each result is exact or wrong. A failure where results are wrong, where a convolution"
    " fails, and where PyTorch runs without cuDNN.",
    sources=(
        "NVIDIA's cuDNN API reference, tables of cudnnConvolutionForward and its backward passes",
        "tensorflow#24828, #32548; pytorch#55381, #105941",
    ),
    follows=(*NO_FRAMEWORK, "FRM-008", "FRM-010", "LIB-002", "LIB-005", "GPU-016"),
    systems=("cudnn",),
)
def convolutions(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        made = [one for one in seen.run.trials if not one.control and one.name != "cuDNN"]
        wrong = [one for one in made if ok(one) and number(one, "differ") > 0]
        taken = [one for one in made if one.outcome == "out-of-memory" or TAKEN.search(one.reason)]
        broken = [one for one in made if one.outcome in ("error", "crashed") and one not in taken]
        right = [one for one in made if ok(one) and number(one, "outputs") > 0]
        if wrong:
            yield _wrong(seen, wrong)
        if broken:
            yield _fails(view, seen, broken)
        if wrong or broken:
            return
        for one in taken[:1]:
            yield seen.unjudged(f"{one.name}: the GPU or its memory is taken")
        last = died(seen)
        if last is not None:
            yield seen.unjudged(f"{last.name}: {failed(seen, last)}")
        if right:
            yield _right(view, seen, right)
        elif not taken and last is None:
            yield seen.unjudged(failed(seen, made[0] if made else None))

    yield from each_run(view, "cudnn", judge)


def _names(trials: list[SystemTrial]) -> str:
    return ", ".join(one.name for one in trials)


def _wrong(seen: Seen, wrong: list[SystemTrial]) -> Finding:
    return seen.found(
        WRONG,
        *(*wrong, seen.trial("cuDNN")),
        first=wrong[0].name,
        names=_names(wrong),
        differ=number(wrong[0], "differ"),
        outputs=number(wrong[0], "outputs"),
        example=text(wrong[0], "first") or "none was recorded",
    )


def _fails(view: SnapshotView, seen: Seen, broken: list[SystemTrial]) -> Finding:
    advice: Remedy | None = None
    first = broken[0].reason
    why = first or broken[0].outcome
    with suppress(CannotJudge):
        facts = facts_of(getattr(view.target, seen.run.framework), seen.title)
        why, advice = why_failed(view, facts, first, [*seen.run.log, *lines_of(facts), first])
    log = seen.logged("cudnn")
    return seen.found(FAILS, *broken, more=log, advice=advice, names=_names(broken), why=why)


def _right(view: SnapshotView, seen: Seen, right: list[SystemTrial]) -> Verdict:
    detail = f"{_names(right)}, forward and both gradients, as the reference"
    counted = next((one for one in right if "cudnn" in one.evidence), None)
    library = seen.trial("cuDNN")
    if number(counted, "cudnn"):
        version = text(library, "version")
        return Passed(f"{seen.title}: {detail}{version and f'; cuDNN {version}'}")
    if counted is None or seen.run.framework != "torch":
        return seen.unjudged(f"{detail}{seen.where}; whether cuDNN computed them is not known")
    code = "import torch; c = torch.backends.cudnn; print(c.version(), c.enabled)"
    commands = [f"{python(view)} -c '{code}'"]
    return seen.found(WITHOUT_CUDNN, counted, library, commands=commands)

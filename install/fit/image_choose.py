"""Chooses the container that will be installed, by the user's words or by what fits, and says why."""

from __future__ import annotations

from ...data.releases import month_key
from ...exit_codes import Cannot
from ...facts.snapshot import Snapshot
from ..catalogue import containers
from ..catalogue.containers import ImageStack
from ..request import Request
from . import image_words
from .explain_none import by_weight, nearest, sentences, why_none
from .gpu_rules import without
from .image_fit import judge
from .machine import machine_of
from .models import ImageCandidate, ImageChoice, ImageFit
from .overrides import named
from .reasons import Reasons

# Where two flavours fit alike: TensorFlow 2 has releases still, TensorFlow 1 ended with 23.03.
_LIVING = "tf2"


def choose(request: Request, snapshot: Snapshot) -> ImageChoice:
    """The flavour and the release for this request, or the image that it names.

    Raises Cannot where nothing fits or what was named does not, with what would; UsageError for a flavour,
    a stack or a release that does not exist, for an image's name that is none, and for words that exclude
    each other.
    """
    if request.image:
        return _own(request, snapshot)
    judged = [
        judge(stack, snapshot, allow_no_gpu=request.allow_no_gpu)
        for stack in image_words.stacks(request)
    ]
    if request.release:
        return _with_release(judged, request, snapshot)
    return _newest(judged, snapshot)


def _own(request: Request, snapshot: Snapshot) -> ImageChoice:
    """The image that was named: nothing is refused, and what is known of one of NVIDIA's is told."""
    reference = str(image_words.own(request))
    known = containers.by_reference(reference)
    if known is None:
        return ImageChoice(
            stack=containers.own(),
            reference=reference,
            release=None,
            reasons=[f"the image {reference} was named"],
            notes=[
                "What it needs of the driver and of the GPUs is not known.",
                *_without_gpu(snapshot),
            ],
        )
    stack, release = known
    judged = judge(stack, snapshot, allow_no_gpu=True)
    candidate = _find(judged, release.release)
    against = [f"{release.release} {refusal.sentence}." for refusal in candidate.refusals]
    return ImageChoice(
        stack=containers.own(),
        reference=reference,
        release=None,
        reasons=[f"the image {reference} was named"],
        notes=[*against, *candidate.notes],
        open=candidate.open,
    )


def _without_gpu(snapshot: Snapshot) -> list[str]:
    machine, reasons = machine_of(snapshot), Reasons()
    if machine.gpu_state not in ("there", "not-known"):
        without(machine, "", True, reasons)
    return reasons.notes


def _newest(judged: list[ImageFit], snapshot: Snapshot) -> ImageChoice:
    """Of the flavour whose newest release that fits is the newest."""
    fitting = [fit for fit in judged if fit.best is not None]
    if not fitting:
        why = {fit.stack.name: why_none(fit.candidates) for fit in judged}
        same = len(set(why.values())) == 1
        told = why[judged[0].stack.name] if same else "; ".join(f"{k}: {v}" for k, v in why.items())
        raise Cannot(
            f"no container of NVIDIA's fits this machine: {told}",
            hint=_remedies(judged[-1], None, snapshot),
        )
    taken = max(fitting, key=_rank)
    best = taken.best
    assert best is not None, "it fits"
    newer = taken.candidates[: taken.candidates.index(best)]
    reasons = [
        f"{best.release.release} is the newest release of {taken.stack.name}"
        + (" that fits this machine" if newer else "")
    ]
    for other in judged:
        if other is not taken:
            reasons.append(_passed_over(taken, other))
    return _choice(taken.stack, best, reasons, newer)


def _rank(judged: ImageFit) -> tuple[tuple[int, int], bool]:
    assert judged.best is not None, "it fits"
    return month_key(judged.best.release.release), judged.stack.flavour == _LIVING


def _passed_over(taken: ImageFit, other: ImageFit) -> str:
    """Why one flavour and not the other."""
    how = f"--flavour {other.stack.flavour} takes it"
    if other.best is None:
        return f"{other.stack.name} was skipped: {why_none(other.candidates)}"
    best, mine = other.best.release.release, taken.best
    if mine is not None and mine.release.release == best:
        return f"{other.stack.name} {best} fits as well, and TensorFlow 2 is still developed; {how}"
    return f"{other.stack.name} was skipped: its newest that fits is older, {best}; {how}"


def _with_release(judged: list[ImageFit], request: Request, snapshot: Snapshot) -> ImageChoice:
    """The release that was named, of the flavour that fits; of the living one where both do."""
    wanted = image_words.found(request)
    found = [
        (fit, named(candidate))
        for fit in judged
        for candidate in fit.candidates
        if candidate.release in wanted
    ]
    fit, candidate = max(found, key=lambda pair: (pair[1].fits, pair[0].stack.flavour == _LIVING))
    stack, release = fit.stack, candidate.release.release
    if candidate.refusals:
        raise Cannot(
            f"{stack.name} {release} cannot be installed here: it {sentences(candidate.refusals)}",
            hint=_remedies(fit, candidate, snapshot, request.allow_no_gpu),
        )
    reasons = [f"{release} of {stack.name} was named"]
    if len(found) > 1:
        other = next(one.stack.flavour for one, _ in found if one is not fit)
        reasons.append(
            f"no flavour was named, and TensorFlow {stack.flavour[-1]} was taken: --flavour {other} is"
            " the other one"
        )
    return _choice(stack, candidate, reasons, [])


def _choice(
    stack: ImageStack,
    candidate: ImageCandidate,
    reasons: list[str],
    newer: list[ImageCandidate],
) -> ImageChoice:
    return ImageChoice(
        stack=stack,
        reference=candidate.release.reference,
        release=candidate.release,
        reasons=reasons,
        newer_refused=newer,
        notes=candidate.notes,
        open=candidate.open,
    )


def _find(judged: ImageFit, release: str) -> ImageCandidate:
    return next(one for one in judged.candidates if one.release.release == release)


def _remedies(
    judged: ImageFit,
    refused: ImageCandidate | None,
    snapshot: Snapshot,
    allow_no_gpu: bool = False,
) -> str:
    """What would fit, else what to do about the reasons; `--allow-no-gpu` only where it is enough."""
    if judged.best is not None:
        return (
            f"the newest release that fits: envcheck install {judged.stack.name}"
            f" --release {judged.best.release.release}" + " --allow-no-gpu" * allow_no_gpu
        )
    shown = refused or nearest(judged.candidates)
    if shown is None:
        return ""
    allowed = judge(judged.stack, snapshot, allow_no_gpu=True)
    enough = any(named(one).fits for one in allowed.candidates if one.release == shown.release)
    hints = [
        refusal.hint
        for refusal in by_weight(shown)
        if refusal.hint and (refusal.kind != "gpu" or enough)
    ]
    return hints[0] if hints else "`envcheck releases` shows which wheels fit"

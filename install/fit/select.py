"""Chooses the newest release that fits, and says why; for both modes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import get_args

import msgspec

from ...exit_codes import Cannot, UsageError
from ...facts.snapshot import Snapshot
from ..catalogue import containers
from ..catalogue import load as catalogue
from ..catalogue.model import Release, Stack
from ..pythons.interpreter import Interpreter
from ..registry import reference
from ..registry.reference import Reference
from ..request import Request
from .disk_space import DiskSpace
from .fit import fit, fit_images
from .gpu_rules import judge_presence
from .machine import machine_of
from .models import (
    Choice,
    Fit,
    ImageCandidate,
    ImageChoice,
    JudgedRelease,
    R,
    RefusalKind,
    S,
    Selection,
    StackFit,
    sentences,
)

# Without a stack's name: the first of these that fits and whose index answers.
DEFAULTS = ("nvidia-tf1", "tensorflow")
_OF_TF1 = re.compile(r"(?s)\d\d\.\d\d?|1\..*|.*\+nv.*")  # "23.03", "1.15.5", "1.15.5+nv23.03"

_BY_WEIGHT = get_args(RefusalKind)

# What else could be installed where a stack cannot, a line each; the release says why it cannot.
_Others = Callable[[Fit[S, R], JudgedRelease[R]], list[str]]


def choose(
    request: Request,
    snapshot: Snapshot,
    interpreters: Sequence[Interpreter] | None,
    obtainable: Sequence[str],
    answers: Callable[[Stack], str],
    *,
    space: DiskSpace | None = None,
    load: Callable[[str], Stack] | None = None,
) -> Choice:
    """The stack of wheels and the release for this request.

    answers: "" where a stack's own indexes answer, else a sentence; called only where it decides. space: of
    the directory to install into. load: a bundle's stack in place of the catalogue's. Raises Cannot where
    nothing fits, with what would; UsageError for a name that does not exist.
    """

    def judge(name: str) -> StackFit:
        return fit(
            (load or catalogue.load)(name), snapshot, interpreters, obtainable, request, space
        )

    def decides(stack: Stack) -> str:
        # Nothing decides about the last one; and a bundle needs no index.
        return "" if stack is fits[-1].stack or request.offline else answers(stack)

    fits = [judge(name) for name in ([request.stack] if request.stack else DEFAULTS)]
    others = partial(_other_stacks, request, judge)
    if request.release:
        return _named(request, [_with_release(fits, request.release)], others)
    return _newest(request, fits, fits[-1], others, decides)


def choose_image(request: Request, snapshot: Snapshot) -> ImageChoice:
    """The container for this request, or the image that it names.

    One of NVIDIA's that is named by its reference is the release that it is. Raises Cannot where nothing fits
    or what was named does not, with what would; UsageError for a name that does not exist.
    """
    pinned = ""
    if request.image:
        named = reference.parse(request.image)
        release = containers.by_reference(str(named))
        if release is None:
            return _own_image(named, snapshot)
        request = msgspec.structs.replace(
            request, image="", flavour=release[0].flavour, release=release[1].release
        )
        pinned = str(named) if named.digest else ""
    fits = [
        fit_images(stack, snapshot, allow_no_gpu=request.allow_no_gpu)
        for stack in containers.among(request.flavour)
    ]
    if request.release:
        wanted = containers.find([judged.stack for judged in fits], request.release)
        found = [(one, each) for one in fits for each in one.candidates if each.release in wanted]
        choice = _named(request, found, lambda judged, refused: [])
    else:
        choice = _newest(request, fits, fits[0], lambda judged, refused: [])
    if not pinned:
        return choice
    release_there = msgspec.structs.replace(choice.candidate.release, reference=pinned)
    candidate = msgspec.structs.replace(choice.candidate, release=release_there)
    return msgspec.structs.replace(choice, candidate=candidate)


def meant_for(stack: Stack, request: Request) -> Request:
    """The request without the indexes of stacks that envcheck did not choose."""
    if request.stack:
        return request
    others = {index.name for name in DEFAULTS for index in catalogue.load(name).indexes}
    others -= {index.name for index in stack.indexes}
    kept = [index for index in request.indexes if index.partition("=")[0] not in others]
    return msgspec.structs.replace(request, indexes=kept)


def _newest(
    request: Request,
    fits: Sequence[Fit[S, R]],
    hinted: Fit[S, R],
    others: _Others[S, R],
    silence: Callable[[S], str] = lambda stack: "",
) -> Selection[S, R]:
    """Of the first stack that fits the newest release.

    hinted: of which stack a refusal says what to do. silence: why one cannot be had, "" where it can.
    """
    against: dict[str, str] = {}
    for judged in fits:
        best, name = judged.best, judged.stack.name
        against[name] = judged.why_none() if best is None else silence(judged.stack)
        if best is None or against[name]:
            continue
        newer = judged.candidates[: judged.candidates.index(best)]
        newest = f"{best.release.release} is the newest release of {name}"
        skipped: list[str] = [f"{one} was skipped: {why}" for one, why in against.items() if why]
        return Selection(
            stack=judged.stack,
            candidate=best,
            reasons=[*skipped, f"{newest} that fits this machine" if newer else newest],
            newer_refused=newer,
        )
    names = [judged.stack.name for judged in fits]
    if len(names) == 1:
        problem = f"no release of {names[0]} fits this machine: {against[names[0]]}"
    else:
        same = len(set(against.values())) == 1
        each = against[names[0]] if same else "; ".join(f"{k}: {why}" for k, why in against.items())
        problem = f"neither {' nor '.join(names)} fits this machine: {each}"
    raise Cannot(problem, hint=_hint(request, hinted, hinted.nearest, others))


def _named(
    request: Request,
    found: Sequence[tuple[Fit[S, R], JudgedRelease[R]]],
    others: _Others[S, R],
) -> Selection[S, R]:
    """The release that its user named: of several the first that fits."""
    judged, candidate = next((one for one in found if one[1].named().fits), found[0])
    taken = candidate.named()
    if not taken.fits:
        raise Cannot(
            f"{judged.stack.name} {candidate.release.release} cannot be installed here: it"
            f" {sentences(taken.refusals)}",
            hint=_hint(request, judged, taken, others),
        )
    reason = f"{candidate.release.release} of {judged.stack.name} was named"
    return Selection(stack=judged.stack, candidate=taken, reasons=[reason])


def _hint(
    request: Request, judged: Fit[S, R], refused: JudgedRelease[R] | None, others: _Others[S, R]
) -> str:
    """What would fit, else what to do about the reasons."""
    if judged.best is not None:
        wanted = _command(request, request.stack or judged.stack.name)
        return f"the newest release that fits: {wanted} --release {judged.best.release.release}"
    if refused is None:
        return ""
    # `--allow-no-gpu` only where it would be enough.
    only_gpu = {refusal.kind for refusal in refused.named().refusals} == {"gpu"}
    remedies = [
        refusal.hint
        for refusal in sorted(refused.refusals, key=lambda one: _BY_WEIGHT.index(one.kind))
        if refusal.hint and (refusal.kind != "gpu" or only_gpu)
    ]
    lines = others(judged, refused) + remedies[:1]
    return "\n".join(lines or ["`envcheck releases` shows which wheels fit"])


def _command(request: Request, stack: str) -> str:
    """Which installs that stack, under the request's conditions."""
    words = ["envcheck", "install", stack]
    words += ["--python", request.python] if request.python else []
    words += ["--allow-no-gpu"] if request.allow_no_gpu else []
    return shlex.join(words)


def _other_stacks(
    request: Request,
    judge: Callable[[str], StackFit],
    judged: StackFit,
    refused: JudgedRelease[Release],
) -> list[str]:
    """Other stacks that fit; none without a GPU where one with it does."""
    fits = [judge(name) for name in judged.stack.otherwise]
    fitting = [fit.stack for fit in fits if fit.best is not None]
    with_gpu = [stack for stack in fitting if stack.gpu]
    has_gpu = not any(refusal.kind == "gpu" for refusal in refused.refusals)
    idle = judged.stack.gpu and has_gpu and not with_gpu
    how = "fits this machine, and leaves its GPU unused" if idle else "fits this machine"
    return [f"{_command(request, stack.name)} {how}" for stack in with_gpu or fitting]


def _with_release(
    fits: Sequence[StackFit], release: str
) -> tuple[StackFit, JudgedRelease[Release]]:
    """The first that has it. Raises UsageError where none has."""
    errors = []
    for judged in fits:
        try:
            wanted = catalogue.find(judged.stack, release)
        except UsageError as error:
            errors.append(error)
        else:
            return judged, next(one for one in judged.candidates if one.release == wanted)
    raise errors[0 if _OF_TF1.fullmatch(release) else -1]


def _own_image(named: Reference, snapshot: Snapshot) -> ImageChoice:
    """An image that is in no table."""
    image, machine = str(named), machine_of(snapshot)
    candidate = ImageCandidate(release=containers.ImageRelease(release=named.tag, reference=image))
    candidate.note("What it needs of the driver and of the GPUs is not known.")
    if machine.gpu_state != "not-known":
        judge_presence(candidate, machine, "", allow_no_gpu=True)
    reasons = [f"the image {image} was named"]
    return ImageChoice(stack=containers.own(), candidate=candidate, reasons=reasons)

"""Chooses what will be installed, by the user's words or by what fits, and says why; for both modes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Generic

import msgspec

from ...data.releases import month_key
from ...exit_codes import Cannot, UsageError
from ...facts.snapshot import Snapshot
from ..catalogue import containers
from ..catalogue import load as catalogue
from ..catalogue.containers import ImageRelease, ImageStack
from ..catalogue.model import Release, Stack
from ..pythons.interpreter import Interpreter
from ..registry import reference
from ..request import Request
from .disk_space import DiskSpace
from .explain_none import by_weight, named, nearest, sentences, why_none
from .fit import fit, fit_images
from .gpu_rules import without
from .machine import machine_of
from .models import Choice, Fit, ImageChoice, ImageFit, JudgedRelease, R, Reasons, S, Selection

# Without a stack's name: the first of these that fits and whose index answers.
DEFAULTS = ("nvidia-tf1", "tensorflow")
# Where two flavours fit alike: TensorFlow 2 has releases still, TensorFlow 1 ended with 23.03.
_LIVING = "tf2"

_OF_TF1 = re.compile(r"(?s)\d\d\.\d\d?|1\..*|.*\+nv.*")  # "23.03", "1.15.5", "1.15.5+nv23.03"

Answers = Callable[[Stack], str]


def choose(
    request: Request,
    snapshot: Snapshot,
    interpreters: Sequence[Interpreter] | None,
    obtainable: Sequence[str],
    answers: Answers,
    *,
    space: DiskSpace | None = None,
    load: Callable[[str], Stack] | None = None,
) -> Choice:
    """The stack of wheels and the release for this request.

    answers: "" where a stack's own indexes answer, else the sentence that says what does not; asked only
    where it decides. space: of the directory to install into. load: the catalogue's, by default.
    Raises Cannot where nothing fits, with what would; UsageError for a name that does not exist.
    """

    def judge(name: str, allow_no_gpu: bool) -> Fit[Stack, Release]:
        stack = (load or catalogue.load)(name)
        return fit(stack, snapshot, interpreters, obtainable, request, space, allow_no_gpu)

    return _Wheels(request, judge, answers).select()


def choose_image(request: Request, snapshot: Snapshot) -> ImageChoice:
    """The container for this request, or the image that it names.

    Raises Cannot where nothing fits or what was named does not, with what would; UsageError for a flavour,
    a stack or a release that does not exist, for an image's name that is none, and for words that exclude
    each other.
    """
    if request.image:
        return _own_image(str(image_of(request)), snapshot)
    stacks = containers.among(request.stack, request.flavour)

    def judge(name: str, allow_no_gpu: bool) -> ImageFit:
        stack = next(stack for stack in stacks if stack.name == name)
        return fit_images(stack, snapshot, allow_no_gpu=allow_no_gpu)

    return _Containers(request, judge, [stack.name for stack in stacks]).select()


def image_of(request: Request) -> reference.Reference:
    """The image that the request names. Raises UsageError for what is none, and for another one beside it."""
    others = {
        "--release": request.release,
        "--flavour": request.flavour,
        "--stack": request.stack,
    }
    for option, value in others.items():
        if value:
            raise UsageError(f"--image names one image, and {option} another one: use one of them")
    return reference.parse(request.image)


class _Selector(Generic[S, R]):
    """Chooses among stacks; judges each once. What differs between the modes is below."""

    def __init__(
        self, request: Request, judge: Callable[[str, bool], Fit[S, R]], names: Sequence[str]
    ) -> None:
        self._request = request
        self._judge = judge
        self._names = names  # that the request leaves
        self._fits: dict[str, Fit[S, R]] = {}

    def select(self) -> Selection[S, R]:
        if self._request.release:
            return self._named(self._request.release)
        if len(self._names) == 1:
            return self._newest(self._fit(self._names[0]))
        return self._best()

    def _fit(self, name: str) -> Fit[S, R]:
        if name not in self._fits:
            self._fits[name] = self._judge(name, self._request.allow_no_gpu)
        return self._fits[name]

    def _best(self) -> Selection[S, R]:
        """The first of the stacks, in the mode's order, that fits and that can be had."""
        against: dict[str, str] = {}
        for judged in self._in_order():
            name = judged.stack.name
            if judged.best is None:
                against[name] = why_none(judged.candidates)
            elif silence := self._silence(judged.stack):
                against[name] = silence
            else:
                passed_over = [f"{one} was skipped: {why}" for one, why in against.items()]
                return self._newest(judged, passed_over)
        told = [f"{name}: {why}" for name, why in against.items()]
        if len({*against.values()}) == 1:
            told = list(against.values())[:1]
        raise Cannot(
            f"neither {' nor '.join(against)} fits this machine: {'; '.join(told)}",
            hint=self._hint(self._fit(self._names[-1])),
        )

    def _newest(self, judged: Fit[S, R], passed_over: Sequence[str] = ()) -> Selection[S, R]:
        best, name = judged.best, judged.stack.name
        if best is None:
            raise Cannot(
                f"no release of {name} fits this machine: {why_none(judged.candidates)}",
                hint=self._hint(judged),
            )
        newer = judged.candidates[: judged.candidates.index(best)]
        newest = f"{best.release.release} is the newest release of {name}"
        return Selection(
            stack=judged.stack,
            candidate=best,
            reasons=[
                *passed_over,
                newest + (" that fits this machine" if newer else ""),
                *self._beside(judged),
            ],
            newer_refused=newer,
        )

    def _named(self, release: str) -> Selection[S, R]:
        """The release that was named, of the first stack where it fits, else of the first that has it."""
        found = [(judged, named(one)) for judged, one in self._with_release(release)]
        judged, candidate = max(found, key=lambda pair: pair[1].fits)
        name, release = judged.stack.name, candidate.release.release
        if candidate.refusals:
            raise Cannot(
                f"{name} {release} cannot be installed here: it {sentences(candidate.refusals)}",
                hint=self._hint(judged, candidate),
            )
        others = [other.stack for other, _ in found if other is not judged]
        return Selection(
            stack=judged.stack,
            candidate=candidate,
            reasons=[f"{release} of {name} was named", *self._not_named(others)],
        )

    def _hint(self, judged: Fit[S, R], refused: JudgedRelease[R] | None = None) -> str:
        """What would fit, else what to do about the reasons."""
        best = judged.best
        if best is not None:
            wanted = self._command(self._request.stack or judged.stack.name)
            return f"the newest release that fits: {wanted} --release {best.release.release}"
        shown = refused or nearest(judged.candidates)
        hints = [] if shown is None else self._remedies(judged, shown)
        return "\n".join(self._offers(judged, shown, hints[:1]))

    def _command(self, stack: str) -> str:
        """Which installs that stack, under the request's conditions: what fits was judged under them."""
        words = ["envcheck", "install", stack]
        words += ["--python", self._request.python] if self._request.python else []
        words += ["--allow-no-gpu"] if self._request.allow_no_gpu else []
        return shlex.join(words)

    def _remedies(self, judged: Fit[S, R], refused: JudgedRelease[R]) -> list[str]:
        """What to do about the reasons; `--allow-no-gpu` only where it would be enough."""
        stack = judged.stack.name  # of a stack's own file the request has the path
        asked = next((one for one, fit in self._fits.items() if fit.stack.name == stack), stack)
        allowed = self._judge(asked, True)
        enough = any(
            one.release == refused.release and named(one).fits for one in allowed.candidates
        )
        return [
            refusal.hint
            for refusal in by_weight(refused)
            if refusal.hint and (refusal.kind != "gpu" or enough)
        ]

    def _in_order(self) -> Iterable[Fit[S, R]]:
        """Of the stacks that were not named, the preferred ones first."""
        raise NotImplementedError

    def _with_release(self, release: str) -> list[tuple[Fit[S, R], JudgedRelease[R]]]:
        """The stacks that have it, the preferred ones first. Raises UsageError where none has."""
        raise NotImplementedError

    def _silence(self, stack: S) -> str:
        """Why a stack that fits cannot be had; "" where it can."""
        return ""

    def _beside(self, taken: Fit[S, R]) -> list[str]:
        """What to say of the stacks that were judged beside the one that is taken."""
        return []

    def _not_named(self, others: Sequence[S]) -> list[str]:
        """What to say where other stacks have a release of the name as well."""
        return []

    def _offers(
        self, judged: Fit[S, R], shown: JudgedRelease[R] | None, remedies: list[str]
    ) -> list[str]:
        """What else could be installed, and the remedies."""
        return remedies


class _Wheels(_Selector[Stack, Release]):
    def __init__(
        self, request: Request, judge: Callable[[str, bool], Fit[Stack, Release]], answers: Answers
    ) -> None:
        super().__init__(request, judge, [request.stack] if request.stack else DEFAULTS)
        self._answers = answers

    def _in_order(self) -> Iterable[Fit[Stack, Release]]:
        return (self._fit(name) for name in self._names)

    def _silence(self, stack: Stack) -> str:
        # Nothing decides about the last one; and a bundle needs no index.
        decides = stack.name != self._names[-1] and not self._request.offline
        return self._answers(stack) if decides else ""

    def _with_release(
        self, release: str
    ) -> list[tuple[Fit[Stack, Release], JudgedRelease[Release]]]:
        errors = {}
        for name in self._names:
            judged = self._fit(name)
            try:
                wanted = catalogue.find(judged.stack, release)
            except UsageError as error:
                errors[name] = error
            else:
                return [(judged, next(o for o in judged.candidates if o.release == wanted))]
        raise errors[self._names[0] if _OF_TF1.fullmatch(release) else self._names[-1]]

    def _offers(
        self,
        judged: Fit[Stack, Release],
        shown: JudgedRelease[Release] | None,
        remedies: list[str],
    ) -> list[str]:
        """Other stacks that fit; none without a GPU where one with it does."""
        fits = [self._fit(name) for name in judged.stack.otherwise]
        fitting = [fit.stack for fit in fits if fit.best is not None]
        with_gpu = [stack for stack in fitting if stack.gpu]
        against = shown.refusals if shown is not None else []
        idle = judged.stack.gpu and not any(refusal.kind == "gpu" for refusal in against)
        idle = idle and not with_gpu
        how = "fits this machine, and leaves its GPU unused" if idle else "fits this machine"
        return [f"{self._command(s.name)} {how}" for s in with_gpu or fitting] + remedies


class _Containers(_Selector[ImageStack, ImageRelease]):
    """The flavour whose newest release that fits is the newest; of two alike, the living one."""

    def _all(self) -> list[ImageFit]:
        judged = [self._fit(name) for name in self._names]
        return sorted(judged, key=lambda one: one.stack.flavour != _LIVING)

    def _in_order(self) -> Iterable[ImageFit]:
        return sorted(self._all(), key=_newest_month, reverse=True)

    def _with_release(self, release: str) -> list[tuple[ImageFit, JudgedRelease[ImageRelease]]]:
        wanted = containers.find([judged.stack for judged in self._all()], release)
        return [
            (judged, candidate)
            for judged in self._all()
            for candidate in judged.candidates
            if candidate.release in wanted
        ]

    def _beside(self, taken: ImageFit) -> list[str]:
        return [_passed_over(taken, other) for other in self._all() if other is not taken]

    def _not_named(self, others: Sequence[ImageStack]) -> list[str]:
        return [
            f"no flavour was named: --flavour {other.flavour} is the other one" for other in others
        ]

    def _offers(
        self,
        judged: ImageFit,
        shown: JudgedRelease[ImageRelease] | None,
        remedies: list[str],
    ) -> list[str]:
        return remedies or ["`envcheck releases` shows which wheels fit"]


def _newest_month(judged: ImageFit) -> tuple[int, int]:
    return (0, 0) if judged.best is None else month_key(judged.best.release.release)


def _passed_over(taken: ImageFit, other: ImageFit) -> str:
    """Why one flavour and not the other."""
    how = f"--flavour {other.stack.flavour} takes it"
    if other.best is None:
        return f"{other.stack.name} was skipped: {why_none(other.candidates)}"
    best, mine = other.best.release.release, taken.best
    if mine is not None and mine.release.release == best:
        return f"{other.stack.name} {best} fits as well, and TensorFlow 2 is still developed; {how}"
    return f"{other.stack.name} was skipped: its newest that fits is older, {best}; {how}"


def _own_image(image: str, snapshot: Snapshot) -> ImageChoice:
    """The image that was named: nothing is refused, and what is known of one of NVIDIA's is told."""
    tag = reference.parse(image).tag
    known = containers.by_reference(image)
    if known is None:
        machine, reasons = machine_of(snapshot), Reasons()
        reasons.note("What it needs of the driver and of the GPUs is not known.")
        if machine.gpu_state not in ("there", "not-known"):
            without(machine, "", True, reasons)
        candidate = reasons.about(containers.unlisted(image, tag))
    else:
        stack, release = known
        judged = fit_images(stack, snapshot, allow_no_gpu=True)
        found = next(one for one in judged.candidates if one.release == release)
        against = [f"{release.release} {refusal.sentence}." for refusal in found.refusals]
        candidate = msgspec.structs.replace(
            found,
            release=msgspec.structs.replace(release, release=tag, reference=image),
            refusals=[],
            notes=[*against, *found.notes],
        )
    return ImageChoice(
        stack=containers.own(),
        candidate=candidate,
        reasons=[f"the image {image} was named"],
    )

"""Chooses what will be installed, by the user's words or by what fits, and says why."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

import msgspec

from ...exit_codes import Cannot, UsageError
from ...facts.snapshot import Snapshot
from ..catalogue import load as catalogue
from ..catalogue.model import Stack
from ..pythons.interpreter import Interpreter
from ..request import Request
from .disk_space import DiskSpace
from .explain_none import by_weight, nearest, sentences, why_none
from .fit import fit
from .models import Candidate, Choice, Judged, StackFit
from .overrides import named

# Without a stack's name: the first of these that fits and whose index answers.
DEFAULTS = ("nvidia-tf1", "tensorflow")

_OF_TF1 = re.compile(r"(?s)\d\d\.\d\d?|1\..*|.*\+nv.*")  # "23.03", "1.15.5", "1.15.5+nv23.03"

Answers = Callable[[Stack], str]


def choose(
    request: Request,
    snapshot: Snapshot,
    interpreters: Sequence[Interpreter] | None,
    obtainable: Sequence[str],
    answers: Answers,
    *,
    room: DiskSpace | None = None,
    load: Callable[[str], Stack] | None = None,
) -> Choice:
    """The stack and the release for this request.

    answers: "" where a stack's own indexes answer, else the sentence that says what does not; asked only
    where it decides. room: of the directory to install into. load: the catalogue's, by default.
    Raises Cannot where nothing fits, with what would; UsageError for a name that does not exist.
    """
    return _Chooser(request, snapshot, interpreters, obtainable, answers, room, load).choose()


class _Chooser:
    """Holds what judging a stack needs, which it does once for each."""

    def __init__(
        self,
        request: Request,
        snapshot: Snapshot,
        interpreters: Sequence[Interpreter] | None,
        obtainable: Sequence[str],
        answers: Answers,
        room: DiskSpace | None,
        load: Callable[[str], Stack] | None,
    ) -> None:
        self._load = load or catalogue.load
        self._request = request
        self._machine = (snapshot, interpreters, obtainable)
        self._answers = answers
        self._room = room
        self._fits: dict[str, StackFit] = {}

    def choose(self) -> Choice:
        if self._request.stack:
            judged = self._fit(self._request.stack)
            if self._request.release:
                return self._named(judged, self._candidate(judged, self._request.release))
            return self._newest(judged, [])
        if self._request.release:
            return self._named(*self._with_release(self._request.release))
        return self._default()

    def _fit(self, stack: str) -> StackFit:
        if stack not in self._fits:
            self._fits[stack] = fit(
                self._load(stack), *self._machine, self._request, room=self._room
            )
        return self._fits[stack]

    def _default(self) -> Choice:
        """nvidia-tf1 where the machine fits it and its index answers, else tensorflow."""
        against: dict[str, str] = {}
        for name in DEFAULTS:
            judged = self._fit(name)
            if judged.best is None:
                against[name] = why_none(judged.candidates)
                continue
            # Nothing decides about the last one; and a bundle needs no index.
            decides = name != DEFAULTS[-1] and not self._request.offline
            silence = self._answers(judged.stack) if decides else ""
            if not silence:
                passed_over = [f"{name} was skipped: {why}" for name, why in against.items()]
                return self._newest(judged, passed_over)
            against[name] = silence
        told = [f"{name}: {why}" for name, why in against.items()]
        if len({*against.values()}) == 1:
            told = list(against.values())[:1]
        raise Cannot(
            f"neither {' nor '.join(against)} fits this machine: {'; '.join(told)}",
            hint=self._hint(self._fit(DEFAULTS[-1])),
        )

    def _newest(self, judged: StackFit, reasons: list[str]) -> Choice:
        best = judged.best
        if best is None:
            raise Cannot(
                f"no release of {judged.stack.name} fits this machine: {why_none(judged.candidates)}",
                hint=self._hint(judged),
            )
        newer = judged.candidates[: judged.candidates.index(best)]
        return Choice(
            stack=judged.stack,
            candidate=best,
            reasons=[
                *reasons,
                f"{best.release.release} is the newest release of {judged.stack.name}"
                + (" that fits this machine" if newer else ""),
            ],
            newer_refused=newer,
        )

    def _candidate(self, judged: StackFit, release: str) -> Candidate:
        wanted = catalogue.find(judged.stack, release)
        return next(one for one in judged.candidates if one.release == wanted)

    def _with_release(self, release: str) -> tuple[StackFit, Candidate]:
        """The first stack that has a release of this name."""
        errors = {}
        for name in DEFAULTS:
            judged = self._fit(name)
            try:
                return judged, self._candidate(judged, release)
            except UsageError as error:
                errors[name] = error
        raise errors[DEFAULTS[0] if _OF_TF1.fullmatch(release) else DEFAULTS[-1]]

    def _named(self, judged: StackFit, candidate: Candidate) -> Choice:
        candidate = named(candidate)
        stack, release = judged.stack.name, candidate.release.release
        if candidate.refusals:
            raise Cannot(
                f"{stack} {release} cannot be installed here: it {sentences(candidate.refusals)}",
                hint=self._hint(judged, candidate),
            )
        return Choice(
            stack=judged.stack,
            candidate=candidate,
            reasons=[f"{release} of {stack} was named"],
        )

    def _hint(self, judged: StackFit, refused: Candidate | None = None) -> str:
        """What would fit, else what to do about the reasons."""
        best = judged.best
        if best is not None:
            wanted = self._command(self._request.stack or judged.stack.name)
            return f"the newest release that fits: {wanted} --release {best.release.release}"
        shown = refused or nearest(judged.candidates)
        hints = [] if shown is None else self._remedies(judged, shown)
        told = [
            f"{self._command(name)} {how}" for name, how in self._offers(judged, shown)
        ] + hints[:1]
        return "\n".join(told)

    def _command(self, stack: str) -> str:
        """Which installs that stack, under the request's conditions: what fits was judged under them."""
        words = ["envcheck", "install", stack]
        words += ["--python", self._request.python] if self._request.python else []
        words += ["--allow-no-gpu"] if self._request.allow_no_gpu else []
        return shlex.join(words)

    def _offers(self, judged: StackFit, shown: Judged | None) -> list[tuple[str, str]]:
        """Other stacks that fit, and what to say of them; none without a GPU where one with it does."""
        fits = [self._fit(name) for name in judged.stack.otherwise]
        fitting = [fit.stack for fit in fits if fit.best is not None]
        with_gpu = [stack for stack in fitting if stack.gpu]
        against = shown.refusals if shown is not None else []
        idle = judged.stack.gpu and not any(refusal.kind == "gpu" for refusal in against)
        idle = idle and not with_gpu
        how = "fits this machine, and leaves its GPU unused" if idle else "fits this machine"
        return [(stack.name, how) for stack in with_gpu or fitting]

    def _remedies(self, judged: StackFit, refused: Judged) -> list[str]:
        """What to do about the reasons; `--allow-no-gpu` only where it would be enough."""
        asked = msgspec.structs.replace(self._request, allow_no_gpu=True)
        allowed = fit(judged.stack, *self._machine, asked, room=self._room)
        enough = any(
            one.release == refused.release and named(one).fits for one in allowed.candidates
        )
        return [
            refusal.hint
            for refusal in by_weight(refused)
            if refusal.hint and (refusal.kind != "gpu" or enough)
        ]

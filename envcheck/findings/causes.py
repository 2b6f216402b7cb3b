"""Causes: what can be wrong, each declared once with its words, its remedy and its source.

A check declares its causes beside it (`DROPPED = fail("gpu-dropped", …)`) and yields what it found of them
(`DROPPED.found(about_device(device), evidence, address=device.address)`). Reports make the words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import Formatter
from typing import Any, Literal

import msgspec

from ..facts.evidence import Evidence
from .remedy import Remedy
from .subjects import Subject, joined

Level = Literal["fail", "warn"]
Param = str | int | float | None

_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# A plug-in's templates are filled in here: no attributes, no items, no padding to a million blanks.
_FIELD = re.compile(r"[a-z_]{1,40}")
_FORMAT = re.compile(r",?(\.\d)?[a-z%]?")


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that can be wrong. headline, sentence and remedy are templates of str.format.

    key: its name for programs, unique among the causes of a check. headline: a predicate that follows a
    device ("is throttled by heat"), or a phrase that stands alone. remedy: "" where only the finding can say
    it. commands: those that are the same on every machine. source: if the check's sources do not say it.
    follows: the only checks whose failure can have this effect, of those that its check follows; None: all.
    cases: parameters that make it another problem in a fleet ("xid"); others do not ("seen" of 8 GPUs).
    """

    key: str
    severity: Level
    headline: str
    sentence: str
    remedy: str = ""
    commands: Sequence[str] = ()
    source: str = ""
    cases: Sequence[str] = ()
    follows: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise ValueError(f"{self.key!r} is not a cause's key such as gpu-dropped")
        for template in (self.headline, self.sentence, self.remedy):
            for _, name, form, conversion in Formatter().parse(template):
                plain = name is None or (_FIELD.fullmatch(name) and _FORMAT.fullmatch(form or ""))
                if not plain or conversion:
                    raise ValueError(f"{self.key}: {{{name}}} is not a parameter such as {{gpus}}")

    def parameters(self) -> set[str]:
        """The names of the parameters that its templates ask for."""
        return {
            name
            for template in (self.headline, self.sentence, self.remedy)
            for _, name, _, _ in Formatter().parse(template)
            if name
        }

    def variant(self, key: str, **changes: Any) -> Cause:
        """The same with another key, and what else differs, such as the severity."""
        return msgspec.structs.replace(self, key=key, **changes)

    def found(
        self,
        subjects: Sequence[Subject] = (),
        evidence: Sequence[Evidence] = (),
        *,
        commands: Sequence[str] | None = None,
        advice: Remedy | None = None,
        **params: Param,
    ) -> Finding:
        """This cause, found on the subjects; params are the values of the templates' parameters, and more.

        commands: those for this machine. advice: a remedy that only the check can make. Raises TypeError
        where a parameter is missing.
        """
        if missing := self.parameters() - params.keys():
            raise TypeError(f"the cause {self.key} lacks {', '.join(sorted(missing))}")
        if advice is None and self.remedy:
            advice = Remedy(
                self.remedy.format(**params), list(self.commands if commands is None else commands)
            )
        return Finding(self, params, list(subjects), list(evidence), advice)


def fail(
    key: str, headline: str, sentence: str, remedy: str = "", *commands: str, **more: Any
) -> Cause:
    return Cause(key, "fail", headline, sentence, remedy, commands, **more)


def warn(key: str, headline: str, sentence: str, *rest: str, **more: Any) -> Cause:
    return fail(key, headline, sentence, *rest, **more).variant(key, severity="warn")


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cause that was found, with the values of its parameters.

    subjects: what it is about; none for the whole machine or target. remedy: as it is on this machine.
    degrades: with it a machine works, and is less than it should be (states.py).
    """

    cause: Cause
    params: dict[str, Param] = {}
    subjects: list[Subject] = []
    evidence: list[Evidence] = []
    remedy: Remedy | None = None
    degrades: bool = False

    def __post_init__(self) -> None:
        try:
            _ = self.headline, self.message
        except (LookupError, ValueError, TypeError) as error:
            raise ValueError(
                f"the cause {self.cause.key} cannot be put into words: {error!r}"
            ) from None

    @property
    def level(self) -> Level:
        return self.cause.severity

    @property
    def headline(self) -> str:
        return self.cause.headline.format(**self.params)

    @property
    def message(self) -> str:
        """One sentence: what is wrong, and what it does to the user."""
        return self.cause.sentence.format(**self.params)

    @property
    def subject(self) -> str:
        return joined(self.subjects)

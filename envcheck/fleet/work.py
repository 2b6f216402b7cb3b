"""What is said between envcheck and its processes that judge machines: work, and what came of it."""

from __future__ import annotations

from typing import Any

import msgspec

from .. import safe_text
from ..attributes.model import Attribute, Measurement
from ..facts.profile import ProductTables, Profile, Tables, Wanted
from .folder import Member
from .model import JudgedMachine

READY = b"ready"
LONGEST = 1 << 19  # bytes of what is kept of a machine: with sixteen GPUs it has a third of that


_Tables = dict[str, list[dict[str, tuple[Any, int]]]]  # as JSON has a profile's


class ToJudge(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that answered, and its Snapshot's file."""

    member: Member
    file: str


class JudgeTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a process reads on its standard input."""

    work: list[ToJudge]
    pages: str | None = None
    where: str = ""  # of the profile; "" for none
    tables: _Tables = {}
    products: list[tuple[tuple[Any, int], _Tables]] = []

    def profile(self) -> Profile | None:
        if not self.where:
            return None
        products = [ProductTables(Wanted(*name), _wanted(own)) for name, own in self.products]
        return Profile(self.where, _wanted(self.tables), tuple(products))


def _wanted(tables: _Tables) -> Tables:
    return {
        name: [{key: Wanted(*told) for key, told in one.items()} for one in these]
        for name, these in tables.items()
    }


class JudgedLine(msgspec.Struct, array_like=True):
    """A line: one machine. Attributes and rates are mostly the same on all machines, and are told once.

    attributes, figures: those that this process tells for the first time (figures without their values).
    has, rates: the numbers of those that this machine has; with value and spread. trouble: what keeps the
    pages from being written.
    """

    machine: JudgedMachine
    attributes: list[Attribute] = []
    has: list[int] = []
    figures: list[Measurement] = []
    rates: list[tuple[int, float, float | None]] = []
    trouble: str = ""


class Packing:
    """The side of the process that judges."""

    def __init__(self) -> None:
        self._attributes: dict[Attribute, int] = {}
        self._figures: dict[tuple[object, ...], int] = {}

    def pack(self, machine: JudgedMachine) -> JudgedLine:
        bare = msgspec.structs.replace(machine, attributes=[], rates=[])
        answer = JudgedLine(bare)
        for attribute in machine.attributes:
            if attribute not in self._attributes:
                self._attributes[attribute] = len(self._attributes)
                answer.attributes.append(attribute)
            answer.has.append(self._attributes[attribute])
        for rate in machine.rates:
            figure = rate.key, rate.words, rate.unit, rate.device, rate.lower_is_better, rate.under
            if figure not in self._figures:
                self._figures[figure] = len(self._figures)
                answer.figures.append(msgspec.structs.replace(rate, value=0.0, spread=None))
            answer.rates.append((self._figures[figure], rate.value, rate.spread))
        return answer


class Unpacking:
    """The other side. known: what all processes have told, so that the same is kept once."""

    def __init__(self, known: dict[Attribute, Attribute]) -> None:
        self._known = known
        self._attributes: list[Attribute] = []
        self._figures: list[Measurement] = []
        self._decoder = msgspec.json.Decoder(JudgedLine)

    def unpack(self, line: bytes) -> tuple[JudgedMachine, str]:
        answer = self._decoder.decode(line)
        self._attributes += [self._known.setdefault(one, one) for one in answer.attributes]
        self._figures += answer.figures
        rates = [self._rate(*told) for told in answer.rates]
        attributes = [self._attributes[number] for number in answer.has]
        machine = msgspec.structs.replace(answer.machine, attributes=attributes, rates=rates)
        return machine, answer.trouble

    def _rate(self, number: int, value: float, spread: float | None) -> Measurement:
        figure = self._figures[number]
        return Measurement(
            key=figure.key,
            words=figure.words,
            value=value,
            unit=figure.unit,
            device=figure.device,
            spread=spread,
            lower_is_better=figure.lower_is_better,
            under=figure.under,
        )


def unanswered(member: Member) -> JudgedMachine:
    return JudgedMachine(
        name=member.name,
        state="unanswered",
        answer=member.outcome,
        reason=safe_text.one_line(member.reason),
        groups=member.groups,
    )


def unreadable(member: Member, reason: str) -> JudgedMachine:
    return JudgedMachine(
        name=member.name,
        state="unanswered",
        answer="unreadable",
        reason=safe_text.one_line(reason),
        groups=member.groups,
    )

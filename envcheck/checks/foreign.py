"""The checks of plug-ins: asked in processes of their own (`plugins.apart`), and believed where they fit."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from .. import safe_text
from ..facts import snapshot as snapshots
from ..facts.missing import CannotJudge
from ..facts.profile import Profile
from ..facts.view import SnapshotView
from ..findings.model import Finding, Passed, Unjudged, Verdict, unjudged
from . import registry
from .registry import Check, CheckText, Described

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ..plugins.apart import PluginAnswer, PluginTask
    from ..plugins.inside import Job

_MOST = 10_000  # verdicts of one check


class _Judging(msgspec.Struct, frozen=True):
    snapshot: msgspec.Raw
    profile: Profile | None


class _CheckVerdicts(msgspec.Struct, frozen=True):
    """What a check yielded, and what ended it: "" where it came to its end."""

    findings: list[Finding]
    gaps: list[Unjudged]
    passed: list[Passed]
    ended_by: str


def judge(view: SnapshotView, checks: Iterable[Check]) -> dict[str, list[Verdict]]:
    """{a check's code: what it says}, for checks of plug-ins; a process for each plug-in."""
    by_plugin: dict[EntryPoint, list[str]] = {}
    for check in checks:
        by_plugin.setdefault(check.plugin, []).append(check.code)
    if not by_plugin:
        return {}
    from ..plugins import apart  # here: most machines have no plug-in

    snapshot = msgspec.Raw(snapshots.dump(view.snapshot))
    data = msgspec.json.encode(_Judging(snapshot, view.profile))
    job = f"{__name__}:judging"
    answers = apart.ask([apart.task(one, job, codes, data) for one, codes in by_plugin.items()])
    return {
        code: _believed(entry, answer)
        for (entry, codes), of_plugin in zip(by_plugin.items(), answers, strict=True)
        for code, answer in zip(codes, of_plugin, strict=True)
    }


def _believed(entry: EntryPoint, answer: PluginAnswer) -> list[Verdict]:
    verdicts: list[Verdict] = []
    reason = answer.reason
    if not reason:
        try:
            found = msgspec.json.decode(answer.value, type=_CheckVerdicts)
            verdicts += [*found.findings, *found.gaps, *found.passed]
            reason = found.ended_by
        except msgspec.ValidationError as error:
            reason = f"it yielded what is no verdict: {error}"
    if reason:
        from .. import plugins

        named = plugins.in_words(entry)
        verdicts.append(Unjudged("could-not-run", f"the check of {named} failed: {reason}"))
    return verdicts


def judging(asked: PluginTask) -> Job:
    data = msgspec.json.decode(asked.data, type=_Judging)
    view = SnapshotView(snapshots.load(bytes(data.snapshot)), data.profile)
    checks: dict[str, Check] = {}

    def by_check(code: str) -> _CheckVerdicts:
        if not checks:
            checks.update(_imported(asked))
        verdicts: list[Verdict] = []
        ended_by = ""
        try:
            take(checks[code], view, verdicts)
        except BaseException as error:  # noqa: BLE001 - SystemExit, too: it is a stranger's code
            ended_by = safe_text.of_error(error)
        return _sorted(verdicts, ended_by)

    return by_check


def take(check: Check, view: SnapshotView, verdicts: list[Verdict]) -> None:
    """Append what a check yields. Raises TypeError where that is no verdict, and what the check raises."""
    try:
        for verdict in check.judge(view):
            if not isinstance(verdict, Finding | Passed | Unjudged):
                raise TypeError(f"it yielded {type(verdict).__name__}, which is no verdict")
            verdicts.append(verdict)
            if len(verdicts) > _MOST:
                raise OverflowError(f"it yielded more than {_MOST} verdicts")
    except CannotJudge as why:
        verdicts.append(unjudged(why))


def _sorted(verdicts: Iterable[Verdict], ended_by: str) -> _CheckVerdicts:
    every = list(verdicts)
    return _CheckVerdicts(
        [one for one in every if isinstance(one, Finding)],
        [one for one in every if isinstance(one, Unjudged)],
        [one for one in every if isinstance(one, Passed)],
        ended_by,
    )


def describe(asked: PluginTask) -> Job:
    def described(_item: str) -> Described:
        checks = _imported(asked).values()
        areas = registry.registered()[0]
        fields = CheckText.__struct_fields__
        return Described(
            [areas[name] for name in dict.fromkeys(check.area for check in checks)],
            [CheckText(**{name: getattr(one, name) for name in fields}) for one in checks],
        )

    return described


def _imported(asked: PluginTask) -> dict[str, Check]:
    """The plug-in's checks; those of envcheck that its module imports are none of its own."""
    from ..plugins.inside import entry_of

    named = entry_of(asked)
    if not isinstance(named, ModuleType):
        named()
    own = f"{registry.__name__.partition('.')[0]}."
    return {
        code: check
        for code, check in registry.registered()[1].items()
        if not check.judge.__module__.startswith(own)
    }

"""Runs every check on a Snapshot: each registered check yields a result, whatever happens to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from .. import safe_text
from ..facts.missing import CannotJudge
from ..facts.profile import Profile
from ..facts.snapshot import Snapshot
from ..facts.view import SnapshotView, view_with
from ..findings import states
from ..findings.causes import Cause
from ..findings.model import CheckResult, Diagnosis, Finding, Passed, Unjudged, Verdict, unjudged
from . import foreign, purpose
from .holders import with_holders
from .installing import with_pip
from .registry import Area, Check, areas, checks_without
from .system_commands import adapted

# Of any check that crashes, beside its own causes.
CRASHED = Cause(
    "check-crashed",
    "warn",
    headline="envcheck's own check {code} crashed",
    sentence="envcheck's own check {code} crashed on this snapshot.",
    remedy="Please report it, with the snapshot.",
    commands=["envcheck collect --output snapshot.json"],
)
_LEFT_OUT: list[Verdict] = [Unjudged("skipped", "left out by --only or --skip")]


def diagnose(
    snapshot: Snapshot,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    checks: Iterable[Check] | None = None,
    profile: Profile | None = None,
) -> Diagnosis:
    """Judge a Snapshot. ``only`` and ``skip`` hold codes or areas; what they leave out is skipped.

    What is chosen gets the result that it gets among all checks. Where the check that explains it is left
    out, it stands for itself.
    """
    view = view_with(snapshot, profile)
    every = tuple(checks_for(view) if checks is None else checks)
    by_code = {check.code: check for check in every}
    chosen = {check.code for check in every if is_chosen(check, only, skip)}
    results = _results(every, chosen, view)
    needless = _needless(every, by_code, chosen, view)
    return Diagnosis(
        [
            needless.get(result.code, result) if result.code in chosen else result
            for result in _consequences(results, by_code)
        ]
    )


def checks_for(view: SnapshotView) -> tuple[Check, ...]:
    """Every check; those that cannot say anything of this Snapshot without their modules."""
    unneeded = (name for name, area in areas().items() if _unneeded(area, view))
    return checks_without(frozenset(unneeded))


def _unneeded(area: Area, view: SnapshotView) -> Unjudged | None:
    """Why all checks of an area are skipped; None where one may apply."""
    if area.of_target:
        try:
            _ = view.target
        except CannotJudge as why:
            return unjudged(why)
    if area.section and not view.has(area.section):
        return Unjudged("skipped", area.without)
    return None


def _results(
    every: Collection[Check], codes: Collection[str], view: SnapshotView
) -> list[CheckResult]:
    """The result of every check; those without one of these codes are left out."""
    unneeded = {name: why for name, area in areas().items() if (why := _unneeded(area, view))}
    given: dict[str, list[Verdict]] = {
        check.code: [unneeded[check.area]] if check.code in codes else _LEFT_OUT
        for check in every
        if check.code not in codes or check.area in unneeded
    }
    asked = [check for check in every if check.plugin is not None and check.code not in given]
    given |= foreign.judge(view, asked)
    results = (
        _result(check, given[check.code]) if check.code in given else _judged(check, view)
        for check in every
    )
    return [_for_this_machine(one, view) if one.findings else one for one in results]


def _needless(
    every: Collection[Check], by_code: dict[str, Check], chosen: Collection[str], view: SnapshotView
) -> dict[str, CheckResult]:
    """Where nothing in the target would use a GPU, a machine without one is not at fault.

    {code: result} of the check that finds none, and of those that it explains, chosen or not.
    """
    if purpose.NO_GPU not in chosen and purpose.NO_GPU not in with_causes(chosen, by_code):
        return {}
    (missing,) = _results([by_code[purpose.NO_GPU]], [purpose.NO_GPU], view)
    cpu_builds = purpose.cpu_builds(view) if missing.outcome == "fail" else []
    if not cpu_builds:
        return {}
    reason = f"the target needs no GPU ({', '.join(cpu_builds)})"
    results = _results(every, with_causes(chosen, by_code), view)
    blank: dict[str, Any] = {"outcome": "skipped", "reason": reason, "consequence_of": ""}
    blank |= {"findings": [], "unjudged": [Unjudged("skipped", reason)]}
    return {
        result.code: replace(result, **blank)
        for result in _consequences(results, by_code)
        if purpose.NO_GPU in (result.code, result.consequence_of)
    }


def is_chosen(check: Check, only: Collection[str], skip: Collection[str]) -> bool:
    names = {check.code, check.area}
    return (not only or not names.isdisjoint(only)) and names.isdisjoint(skip)


def with_causes(codes: Collection[str], checks: Mapping[str, Check]) -> set[str]:
    """These checks, and all whose failure may explain theirs."""
    found: set[str] = set()
    waiting = list(codes)
    while waiting:
        code = waiting.pop()
        if code in checks and code not in found:
            found.add(code)
            waiting += checks[code].follows
    return found


def _judged(check: Check, view: SnapshotView) -> CheckResult:
    verdicts: list[Verdict] = []

    def judge() -> CheckResult:
        foreign.take(check, view, verdicts)
        return _result(check, verdicts or [Unjudged("skipped", "there was nothing to judge")])

    try:
        return view.equal(check.judge, judge)
    except Exception as error:  # noqa: BLE001 - a check that crashes is itself a finding
        reason = f"the check crashed: {safe_text.of_error(error)}"
        verdicts += [Unjudged("could-not-run", reason), CRASHED.found(code=check.code)]
        return _result(check, verdicts)


def _for_this_machine(result: CheckResult, view: SnapshotView) -> CheckResult:
    held = [with_holders(view, one) for one in result.findings]
    findings = [
        one
        if one.remedy is None
        else replace(one, remedy=adapted(view, with_pip(view, one.remedy)))
        for one in held
    ]
    return replace(result, findings=findings)


def _result(check: Check, verdicts: list[Verdict]) -> CheckResult:
    findings = [_with_state(check, v) for v in verdicts if isinstance(v, Finding)]
    gaps = [v for v in verdicts if isinstance(v, Unjudged)]
    passed = [v for v in verdicts if isinstance(v, Passed)]
    blocked = [gap for gap in gaps if gap.outcome == "could-not-run"]
    if any(finding.level == "fail" for finding in findings):
        outcome = "fail"
    elif blocked:
        outcome = "could-not-run"
    elif findings:
        outcome = "warn"
    elif gaps and not passed:
        outcome = "skipped"
    else:
        outcome = "pass"
    reasons = list(dict.fromkeys(gap.reason for gap in (blocked or gaps)))
    return CheckResult(
        code=check.code,
        area=check.area,
        title=check.title,
        outcome=outcome,  # type: ignore[arg-type]  # mypy widens the literals of the branches
        reason="; ".join(reasons) if outcome in ("skipped", "could-not-run") else "",
        detail="; ".join(p.detail for p in passed) if outcome == "pass" else "",
        note="; ".join(p.detail for p in passed if p.note) if outcome == "pass" else "",
        findings=findings,
        unjudged=gaps,
    )


def _with_state(check: Check, finding: Finding) -> Finding:
    less = states.degrades(check.code, finding.cause.key)
    return finding if less == finding.degrades else replace(finding, degrades=less)


def _consequences(results: list[CheckResult], checks: dict[str, Check]) -> list[CheckResult]:
    """Where the check that a result follows from has found something, the result is its consequence."""
    by_code = {result.code: result for result in results}
    explained: list[CheckResult] = []
    for result in results:
        if root := _root(result, by_code, checks):
            what = result.findings[0].message if result.findings else result.reason
            reason = f"skipped because of {root}: {what}"
            result = replace(result, outcome="skipped", reason=reason, consequence_of=root)
        explained.append(result)
    return explained


def _root(
    result: CheckResult, by_code: dict[str, CheckResult], checks: dict[str, Check]
) -> str | None:
    """The code at the end of the chain of causes above a result; None where nothing explains it."""
    if result.outcome in ("pass", "skipped"):
        return None
    seen = {result.code}
    root = None
    while True:
        follows = [
            checks[result.code].follows if one.cause.follows is None else one.cause.follows
            for one in result.findings
        ]
        causes = (
            by_code[code]
            for code in checks[result.code].follows
            if code in by_code and all(code in own for own in follows)
        )
        cause = next((c for c in causes if c.code not in seen and _explains(c, result)), None)
        if cause is None:
            return root
        seen.add(cause.code)
        root, result = cause.code, cause


def _explains(cause: CheckResult, effect: CheckResult) -> bool:
    """A failure explains whatever follows from it, a warning explains warnings.

    One device's trouble explains that device's alone: a lost GPU is no reason for another one's errors, nor
    for what is wrong with a package.
    """
    if cause.outcome == "fail":
        if effect.outcome not in ("fail", "warn", "could-not-run"):
            return False
    elif (cause.outcome, effect.outcome) != ("warn", "warn"):
        return False
    at_cause, at_effect = _devices(cause), _devices(effect)
    if at_cause and not at_effect and _is_about_software(effect):
        return False
    return not at_cause or not at_effect or at_effect <= at_cause


def _is_about_software(result: CheckResult) -> bool:
    kinds = {one.kind for finding in result.findings for one in finding.subjects}
    return bool(kinds & {"package", "library", "variable", "engine", "kernel"})


def _devices(result: CheckResult) -> set[str]:
    """The PCI addresses of the GPUs that a result is about; none where a part of it is about the whole
    machine, or about an NVSwitch, which joins all of them."""
    about = [finding.subjects for finding in result.findings]
    about += [gap.subjects for gap in result.unjudged if gap.outcome == "could-not-run"]
    found = [
        {one.address for one in subjects if one.address and one.kind != "nvswitch"}
        for subjects in about
    ]
    return set().union(*found) if all(found) else set()

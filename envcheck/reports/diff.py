"""What changed between two Snapshots, for people: what explains the verdict first."""

from __future__ import annotations

from typing import Any

from ..attributes.difference import ChangedFact, ChangedRate
from ..attributes.named import NAMED
from ..attributes.registry import SECTIONS
from .diff_model import DiffReport, TurnedCheck
from .page import Page
from .plain import WORDS, devices_named, number_of, together

_MOST = 12  # entries of a list, without --verbose


def render(
    report: DiffReport,
    *,
    names: tuple[str, str],
    verbose: bool = False,
    **style: Any,
) -> str:
    """names: of the two Snapshots, as the user gave them."""
    page = Page(**style)
    most = 10**6 if verbose else _MOST
    _head(page, report, names)
    deciding = [one for one in report.turned if one.decides]
    others = [one for one in report.turned if not one.decides]
    _checks(page, "What explains it", deciding)
    _checks(page, "What else turned" if deciding else "What turned", others)
    for worse, word in ((True, "Slower"), (False, "Faster")):
        rates = [one for one in report.rates if one.worse is worse]
        _rates(page, f"{word}, beyond the spread", rates, most)
    _facts(page, report.facts, most)
    return page.text()


def _head(page: Page, report: DiffReport, names: tuple[str, str]) -> None:
    if report.other_machine:
        page.paragraph((f"These are different machines: {report.other_machine}.", "warn"))
    then, now = str(report.before.status), str(report.after.status)
    turn = f": {then} → {now}"
    if report.target_of_one:
        text = "Only one of the two has a target: checks that judged in one alone do not count."
        page.paragraph((text, "warn"))
        turn, now = "", "by the checks that judged in both"
    if report.verdict != "same":
        style = "fail" if report.verdict == "worse" else "pass"
        page.paragraph((f"The verdict became {report.verdict}{turn}.", style))
    elif report.worse:
        page.paragraph((f"The verdict is the same ({now}), and something became worse.", "warn"))
    elif report.changed:
        page.paragraph((f"The verdict is the same ({now}); nothing became worse.", "heading"))
    else:
        page.paragraph(("Nothing that matters changed.", "pass"), (f"Verdict: {now}.", ""))
    page.blank()
    for name, side in zip(names, (report.before, report.after), strict=True):
        simulated = f"simulated ({side.simulated}), " if side.simulated else ""
        text = f"{simulated}{side.collected_at}, {side.summary}"
        page.entry(name, text, min(30, max(map(len, names)) + 1))
    facts = number_of(report.facts_compared, "fact")
    rates = number_of(report.rates_compared, "rate")
    only = len(report.only) + len(report.judged_in_one)
    rest = "; --format json lists what only one of the two has" if only else ""
    page.paragraph((f"Compared: {facts}, {rates}{rest}.", "quiet"), indent=2)


def _heading(page: Page, text: str) -> None:
    page.blank()
    page.paragraph((text, "heading"))


def _checks(page: Page, heading: str, checks: list[TurnedCheck]) -> None:
    if checks:
        _heading(page, heading)
    for one in checks:
        same = one.before == one.after
        was = "about others than before" if same else f"was {_word(one.before)}"
        after = WORDS[one.after] if one.after != "skipped" else "NOT CHECKED"
        page.hanging(
            (f"{after} {one.code}", one.after), (one.title, "heading"), (f"({was})", "quiet")
        )
        bad = one.worse or one.after in ("fail", "warn", "could-not-run")
        for message in one.messages[:3] if bad else ():
            page.paragraph((message, ""), indent=4)
        if one.subjects and same:
            page.paragraph(("; ".join(one.subjects[:6]), ""), indent=4)


def _word(outcome: str) -> str:
    return {"skipped": "not checked", "pass": "ok"}.get(outcome, outcome.replace("-", " "))


def _rates(page: Page, heading: str, rates: list[ChangedRate], most: int) -> None:
    groups = together(((one.key, one.under, one.under_before), one) for one in rates)
    if groups:
        _heading(page, heading)
    for group in list(groups.values())[:most]:
        _rate(page, group)
    _more(page, len(groups) - most)


def _rate(page: Page, group: list[ChangedRate]) -> None:
    """The same rate of several devices: that of the one that changed most."""
    first = max(group, key=lambda one: abs(one.change))
    where = devices_named(one.device for one in group if one.device)
    page.paragraph(
        (f"{first.words}{', ' + where if where else ''}:", ""),
        (f"{first.before:.4g} → {first.after:.4g} {first.unit}", "code"),
        (f"({first.change:+.1%}{' at most' if len(group) > 1 else ''};", ""),
        (f"beyond {first.bound:.0%}: {first.bound_by})", "quiet"),
        indent=2,
        hanging=4,
    )
    if first.under_before:
        text = f"under {first.under_before}, and now under {first.under or 'nothing'}"
        page.paragraph((text, "quiet"), indent=4)


def _facts(page: Page, facts: list[ChangedFact], most: int) -> None:
    sections = together((fact.key.partition(".")[0], fact) for fact in facts)
    if sections:
        _heading(page, "Facts that changed")
    for section, changed in sections.items():
        page.paragraph((_title(section), "code"), indent=2)
        for fact in sorted(changed, key=lambda one: (one.change, one.words))[:most]:
            where = devices_named(fact.devices)
            value = {"added": f"new: {fact.after}", "removed": f"gone: {fact.before}"}.get(
                fact.change, f"{fact.before} → {fact.after}"
            )
            words = fact.words + (f", {where}" if where else "")
            page.paragraph((f"{words}: {value}", ""), indent=4, hanging=6)
        _more(page, len(changed) - most)


def _title(section: str) -> str:
    found = SECTIONS.get(section) or NAMED.get(section)
    return found.comment.partition(":")[0].rstrip(".") if found is not None else section


def _more(page: Page, number: int) -> None:
    if number > 0:
        page.paragraph((f"and {number} more (--verbose)", "quiet"), indent=4)

"""What changed between two Snapshots, for people: what explains the verdict first."""

from __future__ import annotations

from collections.abc import Iterable

from ..attributes.difference import ChangedFact, ChangedRate, OneSided
from ..attributes.named import NAMED
from ..attributes.registry import SECTIONS
from .diff_model import DiffReport, DiffSide, TurnedCheck
from .page import Page
from .plain import WORDS, number_of, ranges

_MOST = 12  # entries of a list, without --verbose
_STATUS = {
    "healthy": "healthy",
    "problems": "problems were found",
    "could-not-look": "envcheck could not look everywhere",
}
_CHANGES = {"changed": "→", "added": "new:", "removed": "gone:"}
_RATES = {
    "rates: kernels": "rates of the micro-kernels",
    "rates: memory": "rates of the GPUs' memory",
    "rates: links": "rates between host and GPU",
    "rates: peers": "rates between GPUs",
    "rates: nccl": "NCCL's bandwidth",
    "rates: bench": "rows of the bench",
    "rates: soak": "rates of a soak",
}


def render(
    report: DiffReport,
    *,
    names: tuple[str, str],
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
    verbose: bool = False,
) -> str:
    """names: of the two Snapshots, as the user gave them."""
    page = Page(width=width, colour=colour, utf8=utf8)
    most = 10**6 if verbose else _MOST
    _head(page, report, names)
    _turned(page, report.turned)
    _rates(page, report.rates, most)
    _facts(page, report.facts, most)
    _only(page, report, names)
    return page.text()


def _head(page: Page, report: DiffReport, names: tuple[str, str]) -> None:
    if report.other_machine:
        page.paragraph((f"These are different machines: {report.other_machine}.", "warn"))
    then, now = _STATUS[report.before.status], _STATUS[report.after.status]
    turn = f": {then} → {now}"
    if report.target_of_one:
        page.paragraph(
            ("Only one of the two has a target: what judged in one alone does not count.", "warn")
        )
        turn, now = "", "by what judged in both"
    if report.verdict == "worse":
        page.paragraph((f"The verdict became worse{turn}.", "fail"))
    elif report.verdict == "better":
        page.paragraph((f"The verdict became better{turn}.", "pass"))
    elif report.worse:
        page.paragraph((f"The verdict is the same ({now}), and something became worse.", "warn"))
    elif report.changed:
        page.paragraph((f"The verdict is the same ({now}); nothing became worse.", "heading"))
    else:
        page.paragraph(("Nothing that matters changed.", "pass"), (f"Verdict: {now}.", ""))
    page.blank()
    for name, side in zip(names, (report.before, report.after), strict=True):
        page.entry(name, _side(side), min(30, max(map(len, names)) + 1))
    compared = (
        f"{number_of(report.facts_compared, 'fact')}, {number_of(report.rates_compared, 'rate')}"
    )
    page.paragraph((f"Compared: {compared}.", "quiet"), indent=2)


def _side(side: DiffSide) -> str:
    simulated = f"simulated ({side.simulated}), " if side.simulated else ""
    return f"{simulated}{side.collected_at}, {side.summary}"


def _heading(page: Page, text: str) -> None:
    page.blank()
    page.paragraph((text, "heading"))


def _turned(page: Page, turned: list[TurnedCheck]) -> None:
    deciding = [one for one in turned if one.decides]
    if deciding:
        _heading(page, "What explains it")
        for one in deciding:
            _check(page, one)
    others = [one for one in turned if not one.decides]
    if others:
        _heading(page, "What else turned" if deciding else "What turned")
        for one in others:
            _check(page, one)


def _check(page: Page, one: TurnedCheck) -> None:
    same = one.before == one.after
    was = "about others than before" if same else f"was {_word(one.before)}"
    page.hanging(
        (f"{WORDS[one.after] if one.after != 'skipped' else 'NOT JUDGED'} {one.code}", one.after),
        (one.title, "heading"),
        (f"({was})", "quiet"),
    )
    if one.worse or one.after in ("fail", "warn", "could-not-run"):
        for message in one.messages[:3]:
            page.paragraph((message, ""), indent=4)
    if one.subjects and same:
        page.paragraph(("; ".join(one.subjects[:6]), ""), indent=4)
    for fact in one.because:
        told = _arrow(fact.before, fact.after) if fact.before and fact.after else ""
        told = told or (f"was {fact.before}" if fact.before else f"changed: {fact.after}")
        page.paragraph((f"{fact.fact}:", "quiet"), (told, ""), indent=4, hanging=6)


def _word(outcome: str) -> str:
    return {"skipped": "not judged", "pass": "ok"}.get(outcome, outcome.replace("-", " "))


def _arrow(before: str, after: str) -> str:
    return f"{before} → {after}"


def _rates(page: Page, rates: list[ChangedRate], most: int) -> None:
    for worse, heading in (
        (True, "Slower, beyond the spread"),
        (False, "Faster, beyond the spread"),
    ):
        alike: dict[tuple[str, str, str], list[ChangedRate]] = {}
        for one in rates:
            if one.worse is worse:
                alike.setdefault((one.key, one.under, one.under_before), []).append(one)
        if alike:
            _heading(page, heading)
        for these in list(alike.values())[:most]:
            _rate(page, these)
        _more(page, len(alike) - most)


def _rate(page: Page, these: list[ChangedRate]) -> None:
    """The same figure of several devices: that of the one that changed most."""
    first = max(these, key=lambda one: abs(one.change))
    where = devices([one.device for one in these if one.device])
    page.paragraph(
        (f"{first.words}{', ' + where if where else ''}:", ""),
        (f"{first.before:.4g} → {first.after:.4g} {first.unit}", "code"),
        (f"({first.change:+.1%}{' at most' if len(these) > 1 else ''};", ""),
        (f"beyond {first.bound:.0%}: {first.bound_by})", "quiet"),
        indent=2,
        hanging=4,
    )
    if first.under_before:
        page.paragraph(
            (
                f"under {first.under_before or 'nothing'}, and now under {first.under or 'nothing'}",
                "quiet",
            ),
            indent=4,
        )


def _facts(page: Page, facts: list[ChangedFact], most: int) -> None:
    groups: dict[str, list[ChangedFact]] = {}
    for fact in facts:
        groups.setdefault(fact.key.partition(".")[0], []).append(fact)
    if groups:
        _heading(page, "Facts that changed")
    for section, these in groups.items():
        page.paragraph((_title(section), "code"), indent=2)
        for fact in sorted(these, key=lambda one: (one.change, one.words))[:most]:
            where = devices(fact.devices)
            value = {"added": fact.after, "removed": fact.before}.get(
                fact.change, _arrow(fact.before, fact.after)
            )
            sign = "" if fact.change == "changed" else _CHANGES[fact.change] + " "
            words = fact.words + (f", {where}" if where else "")
            page.paragraph((f"{words}: {sign}{value}", ""), indent=4, hanging=6)
        _more(page, len(these) - most)


def _title(section: str) -> str:
    found = SECTIONS.get(section) or NAMED.get(section)
    return found.comment.partition(":")[0].rstrip(".") if found is not None else section


def devices(names: Iterable[str]) -> str:
    """ "GPU 0–7", "mlx5_0, mlx5_1"."""
    names = list(dict.fromkeys(names))
    numbers = [name.removeprefix("GPU ") for name in names]
    if names and all(f"GPU {number}" in names and number.isdecimal() for number in numbers):
        return f"GPU {ranges(sorted(map(int, numbers)))}"
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more


def _more(page: Page, left: int) -> None:
    if left > 0:
        page.paragraph((f"and {left} more (--verbose)", "quiet"), indent=4)


def _only(page: Page, report: DiffReport, names: tuple[str, str]) -> None:
    if not report.only and not report.judged_in_one:
        return
    _heading(page, "In one of the two only")
    for name, side in zip(names, ("before", "after"), strict=True):
        told = [_counted(one) for one in report.only if one.told_in == side]
        if told:
            page.paragraph((f"{name}:", "code"), (", ".join(told), ""), indent=2, hanging=4)
    if report.judged_in_one:
        codes = ", ".join(report.judged_in_one[:_MOST])
        more = len(report.judged_in_one) - _MOST
        page.paragraph(
            ("checks that judged in one:", "quiet"),
            (codes + (f" and {more} more" if more > 0 else ""), "quiet"),
            indent=2,
            hanging=4,
        )


def _counted(one: OneSided) -> str:
    title = _RATES.get(one.words) or _title(one.words)
    if title[1:2].islower():
        title = title[:1].lower() + title[1:]
    return f"{title} ({one.count})"

"""What is wrong, with its evidence and what to do; and what could not be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...facts.snapshot import Snapshot
from ...findings.model import CheckResult
from .. import html_page as html
from ..headlines import gpu_indices, phrase
from ..html_page import PageSection
from ..model import Report
from ..plain import (
    EVIDENCE_CHARACTERS,
    WORDS,
    Group,
    code_ranges,
    gaps,
    grouped,
    roots,
    unmentioned,
    worst_first,
)
from ..plots.svg import text

_EVIDENCE = 12  # of one problem that is told
_PROBLEMS = 60


def problems(report: Report, snapshot: Snapshot) -> Iterator[PageSection]:
    """The section; none where nothing was found and everything could be looked at."""
    ends = roots(report.results)
    following: dict[str, list[str]] = {}
    for code, root in ends.items():
        following.setdefault(root, []).append(code)
    parts: list[str] = []
    ids: dict[str, int] = {}
    found = worst_first(report.results)
    gpus = gpu_indices(snapshot) if found else {}
    for result in found[:_PROBLEMS]:
        for group in grouped(result.findings):
            ids[result.code] = ids.get(result.code, 0) + 1
            title = _title(result, group, gpus)
            parts.append(_problem(result.code, title, group, following, ids))
        unseen = [f"could not look: {gap}" for gap in gaps(result)]
        parts.append(html.listed(("", "", one) for one in unseen))
    if (left := len(found) - _PROBLEMS) > 0:
        parts.append(html.paragraph(f"and {left} more, in --format json"))
    parts += _could_not_run(report)
    if any(parts) and report.root:
        parts.append(html.paragraph(report.root, "quiet"))
    if any(parts):
        failed = any(group.level == "fail" for one in found for group in grouped(one.findings))
        title = "Problems" if failed else "Warnings" if found else "Not looked at"
        yield PageSection("problems", title, parts, str(sum(ids.values())) if ids else "")


def _title(result: CheckResult, group: Group, gpus: dict[str, int | None]) -> str:
    """What is wrong in a phrase, with the devices that it is about."""
    headline = next((f.headline for f in result.findings if f.message == group.message), "")
    words = phrase(headline, group.subjects, gpus) if headline else result.title
    return words[:1].upper() + words[1:]


def _problem(
    code: str, title: str, group: Group, following: Mapping[str, list[str]], ids: Mapping[str, int]
) -> str:
    id_ = f"problem-{code}" + (f"-{ids[code]}" if ids[code] > 1 else "")
    lines = [
        f'<article class="problem" id="{text(id_)}">',
        f"<h3>{html.state(group.level, WORDS[group.level])} {text(title)}"
        f'<span class="code">{text(code)}</span></h3>',
        f"<p>{text(group.message)}</p>",
    ]
    told = [f"<li>{text(where)}</li>" for where in unmentioned(group)]
    for one in group.evidence[:_EVIDENCE]:
        value = one.value
        if len(value) > EVIDENCE_CHARACTERS:
            value = value[:EVIDENCE_CHARACTERS] + " …"
        source = f' <span class="from">({text(one.source)})</span>' if one.source else ""
        told.append(f"<li><code>{text(one.fact)}</code> = {text(value)}{source}</li>")
    if (left := len(group.evidence) - _EVIDENCE) > 0:
        told.append(f"<li>and {left} more</li>")
    if told:
        lines.append(f'<ul class="evidence">{"".join(told)}</ul>')
    if codes := following.get(code) if ids[code] == 1 else None:
        lines.append(f'<p class="quiet">Follows from it: {text(code_ranges(codes))}</p>')
    if group.remedy is not None:
        lines.append(f'<p class="todo"><b>To do:</b> {text(group.remedy.text)}</p>')
        if group.remedy.commands:
            lines.append(html.command(*group.remedy.commands))
    lines.append("</article>")
    return "\n".join(lines)


def _could_not_run(report: Report) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for result in report.results:
        if result.outcome == "could-not-run" and not result.findings and not result.consequence_of:
            reasons.setdefault(result.reason, []).append(result.code)
    for reason, codes in reasons.items():
        word = html.state("could-not-run", WORDS["could-not-run"])
        yield (
            f'<article class="problem"><h3>{word}<span class="code">{text(code_ranges(codes))}</span></h3>'
            f"<p>{text(reason)}</p></article>"
        )

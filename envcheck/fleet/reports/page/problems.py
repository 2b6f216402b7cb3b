"""Machines with the same problem, with the same silence, or with the same place and fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....reports import html_page
from ....reports.headlines import phrase
from ....reports.plots.svg import text
from ...model import JudgedMachine, ProblemGroup, SharedFault, Unanswered
from .. import words
from .looks import link, machines

_NAMED = 12  # machines that are named one by one, with links


def groups(found: Sequence[ProblemGroup], by_name: Mapping[str, JudgedMachine]) -> list[str]:
    return [_group(one, by_name) for one in found]


def _group(one: ProblemGroup, by_name: Mapping[str, JudgedMachine]) -> str:
    kind = "fail" if one.level == "fail" else "warn"
    count = machines(len(one.machines))
    parts = [
        f'<h3>{html_page.mark(kind)}<span class="many {kind}">{count}</span> '
        f"{text(words.problem(one))} {code(one.code)}</h3>",
        f'<p class="quiet">{text(one.title)}{_level(one)}</p>',
        _names(one.machines, by_name),
        _hosts(one.hosts, one.limit) if len(one.machines) > 1 else "",
        html_page.paragraph(one.message) if one.message and one.message != one.headline else "",
        f"<p><strong>Remedy:</strong> {text(one.remedy)}</p>" if one.remedy else "",
        _of_one(one),
        html_page.command(*one.commands) if one.commands else "",
        _show(one.code, len(one.machines)),
    ]
    return f'<article class="group {kind}">{"".join(parts)}</article>'


def _level(one: ProblemGroup) -> str:
    return "" if one.level == "fail" else " (a warning)"


def code(name: str) -> str:
    return f'<span class="code">{text(name)}</span>' if name else ""


def _of_one(one: ProblemGroup) -> str:
    if not one.of_one:
        return ""
    return f'<p class="quiet">As it is on {text(one.of_one)}; each machine\'s page has its own.</p>'


def _names(names: Sequence[str], by_name: Mapping[str, JudgedMachine]) -> str:
    """Each machine with a link, where there are few: the table has the others."""
    if len(names) > _NAMED or not any(name in by_name and by_name[name].page for name in names):
        return ""
    return f"<p>{', '.join(link(by_name.get(name), name) for name in names)}</p>"


def _hosts(hosts: str, limit: str) -> str:
    """To paste: folded, and as Ansible takes it where that is another word."""
    told = f'<div class="hosts">{html_page.command(hosts)}</div>'
    if not limit or limit == hosts:
        return told
    return told + html_page.details("for Ansible’s --limit", html_page.command(limit))


def _show(found: str, count: int) -> str:
    """Without the script the link leads to the table, with it the table shows these alone."""
    if count < 2 or not found:
        return ""
    return f'<p><a href="#machines" data-find="{text(found)}">Show them in the table</a></p>'


def shared(found: Sequence[SharedFault]) -> str:
    items = []
    for one in found:
        place = f"{one.kind} {one.name}"
        also = "".join(f", {text(kind)} {text(name)}" for kind, name in one.also)
        elsewhere = f"{one.elsewhere:,}" if one.elsewhere else "none"
        items.append(
            [
                (
                    text(place) + (f'<br><span class="quiet">as{also[1:]}</span>' if also else ""),
                    "",
                ),
                (f"{text(phrase(one.words, [], {}))} {code(one.code)}", ""),
                (f"{len(one.machines):,} of {one.of:,}", "right"),
                (elsewhere, "right"),
                (f'<code class="hosts">{text(one.hosts)}</code>', ""),
            ]
        )
    columns = [("Place", ""), ("Fault", "wraps"), ("Here", "right"), ("Elsewhere", "right")]
    return html_page.markup_table([*columns, ("Machines", "wraps")], items)


def unanswered(found: Sequence[Unanswered]) -> list[str]:
    told = []
    for number, one in enumerate(found):
        outcome = words.OUTCOMES[one.outcome]
        told.append(
            f'<article class="group skipped" id="silent-{number}"><h3>{html_page.mark("skipped")}'
            f'<span class="many">{machines(len(one.machines))}</span> {text(outcome)}</h3>'
            + html_page.paragraph(one.reason)
            + _hosts(one.hosts, one.limit)
            + "</article>"
        )
    return told


def silent_places(found: Sequence[Unanswered]) -> dict[str, str]:
    """By the name of a machine without a page, where it is spoken of."""
    return {name: f"#silent-{place}" for place, one in enumerate(found) for name in one.machines}

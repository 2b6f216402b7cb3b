"""A fleet's result as sections, for text and pages: problems, outliers, who did not answer, shared faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...findings.model import Outcome
from ...reports.headlines import phrase
from ...reports.plain import WORDS, Column, together
from ...reports.sections import Advice, Block, Heading, Note, ReportSection, Span, Table
from .. import hosts
from ..model import FleetOutlier, FleetResult, JudgedMachine, ProblemGroup
from ..network.sections import measured
from . import words

GROUPS = ROWS = 20  # of each list, unless -v asks for all
_NAMES = 60  # characters of a list of names

# A machine's state in a word, and its style; worst first.
STATES: dict[str, tuple[str, Outcome]] = {
    "broken": ("BROKEN", "fail"),
    "degraded": ("DEGRADED", "warn"),
    "silent": ("SILENT", "could-not-run"),
    "warned": ("WARN", "warn"),
    "healthy": ("OK", "pass"),
}


def sections(
    result: FleetResult, *, verbose: bool, pages: Mapping[str, str] | None = None
) -> list[ReportSection]:
    """verbose: every name, and a row for each machine. pages: {machine: the address of its page}, of a page,
    which has a table of problems and places of its own."""
    same = "have the same GPUs (by UUID) or the very same Snapshot: keep one of them"
    copies = [(names, same) for names in result.copies]
    unanswered = [(o.machines, words.silence(o.outcome, o.reason)) for o in result.unanswered]
    answered = [one for one in result.machines if one.answer == "answered"]
    reasons = together((one.reason, one.name) for one in answered if one.reason)
    blind = [(names, why) for why, names in reasons.items()]
    found = [
        ("problems", "Problems", _problems(result, verbose) if pages is None else []),
        ("outliers", "Outliers", _outliers(result, verbose)),
        ("copies", "One machine under several names", _table(copies, verbose)),
        ("unanswered", "Without a Snapshot", _table(unanswered, verbose)),
        ("blind", "Not everything could be checked", _table(blind, verbose)),
        ("shared", "In one place", _shared(result, verbose) if pages is None else []),
        ("network", "The network between machines", _network(result, verbose)),
        ("changes", "What changed", _changes(result)),
        ("machines", "Machines", _machines(result, pages) if verbose else []),
    ]
    made = [(name, title, [*blocks]) for name, title, blocks in found]
    return [ReportSection(name, title, "", blocks) for name, title, blocks in made if blocks]


def headline(group: ProblemGroup) -> list[Span]:
    text = f"{words.machines(len(group.machines))}: {words.problem(group)}"
    text += words.since(group.first_seen)
    return [(WORDS[group.level], group.level), (group.code, "code"), (text, "")]


def _problems(result: FleetResult, verbose: bool) -> Iterator[Block]:
    shown = result.groups if verbose else result.groups[:GROUPS]
    for group in shown:
        yield Heading(headline(group))
        yield Note([(names_of(group.machines, verbose), "code")], 1)
        if group.message:
            about = f"On {group.of_one}: " if group.of_one else ""
            yield Note([(about + group.message, "")], 1)
        if group.remedy or group.commands:
            yield Advice(group.remedy, group.commands)
    if more := result.groups[len(shown) :]:
        codes = ", ".join(dict.fromkeys(group.code for group in more))
        yield Note([(f"and {len(more)} more problems (-v shows them): {codes}", "")])


def _outliers(result: FleetResult, verbose: bool) -> Iterator[Block]:
    """By product. The same on several machines is one row; what a problem explains comes last."""
    found: list[tuple[FleetOutlier, str]] = [
        *((one, words.attribute_outlier(one)) for one in result.attribute_outliers),
        *((one, words.rate_outlier(one, 99 if verbose else 2)) for one in result.rate_outliers),
    ]
    products = [one.product for one, _ in found] + [split.product for split in result.splits]
    found.sort(key=lambda row: bool(row[0].because))
    for product in dict.fromkeys(products):
        yield Heading(
            [("Outliers of", "heading"), (product or "machines of no known kind", "heading")]
        )
        rows = together((text, one.machine) for one, text in found if one.product == product)
        yield from _table([(names, text) for text, names in rows.items()], verbose)
        for split in result.splits:
            if split.product == product:
                yield Note([(words.split(split), "")], 1)
                for camp in split.camps[1 : None if verbose else 2]:
                    yield Note([(names_of(camp.machines, verbose), "code")], 2)


def _shared(result: FleetResult, verbose: bool) -> Iterator[Block]:
    shown = result.shared if verbose else result.shared[:ROWS]
    for fault in shown:
        yield Note([(words.shared(fault), "")], 1)
        yield Note([(names_of(fault.machines, verbose), "code")], 2)
    if more := len(result.shared) - len(shown):
        yield Note([(f"and {more} more (-v shows them)", "")], 1)


def _network(result: FleetResult, verbose: bool) -> Iterator[Block]:
    found = result.network
    if found is not None:
        yield Note([(found.verdict, found.outcome), (words.minute(found.tested_at), "quiet")])
        yield from measured(found, worst=verbose)


def _changes(result: FleetResult) -> Iterator[Block]:
    """What changed since the directory that --since named."""
    for change in result.since or ():
        problems = f": {'; '.join(change.problems)}" if change.problems else ""
        yield Note([(f"{change.machine} {change.kind}{problems}", "")], 1)
    if result.since == []:
        yield Note([("Nothing changed.", "")], 1)


def _machines(result: FleetResult, pages: Mapping[str, str] | None) -> Iterator[Block]:
    """All machines, the worst first; on paper a page has them folded by their states."""
    products = {machine.product for machine in result.machines if machine.product}
    columns = [Column("Machine"), Column("State"), Column("What", wraps=True)]
    columns += [Column("Product", rank=1)] if len(products) > 1 else []
    rows = []
    natural = sorted(result.machines, key=lambda one: hosts.natural_key(one.name))
    machines = sorted(natural, key=lambda one: [*STATES].index(state_of(one)))
    states = together((state_of(one), one.name) for one in machines)
    for state, names in states.items() if pages is not None else ():
        yield Note([STATES[state], (f"{len(names):,}:", ""), (hosts.folded(names), "code")], 2)
    for machine in machines:
        link = f"href:{page}" if pages and (page := pages.get(machine.name)) else "code"
        row: list[Span] = [(machine.name, link), STATES[state_of(machine)], (about(machine), "")]
        rows.append([*row, (machine.product, "")][: len(columns)])
    yield Table(columns, rows)


def state_of(machine: JudgedMachine) -> str:
    """A key of STATES."""
    warned = machine.state == "healthy" and machine.problems
    return "warned" if warned else machine.state


def about(machine: JudgedMachine) -> str:
    """The reason, or the problems; "" for a healthy machine without warnings."""
    parts = [machine.reason] if machine.reason else []
    if machine.answer != "answered":
        parts = [words.silence(machine.answer, machine.reason)]
    parts += dict.fromkeys(
        f"{one.code} {phrase(one.headline or one.title, [], {})}"
        for one in sorted(machine.problems, key=lambda one: (one.level != "fail", not one.degrades))
    )
    return "; ".join([*parts, *machine.less])


def _table(rows: Sequence[tuple[list[str], str]], verbose: bool) -> Iterator[Block]:
    """Machines, and what there is to say of them."""
    shown = rows if verbose else rows[:ROWS]
    if shown:
        cells = [[(names_of(names, verbose), "code"), (text, "")] for names, text in shown]
        yield Table([Column(wraps=True), Column(wraps=True)], cells)
    if more := len(rows) - len(shown):
        yield Note([(f"and {more} more (-v shows them)", "")], 1)


def names_of(names: Sequence[str], verbose: bool = False) -> str:
    """Folded: "gpu[01-16,20]"; "gpu[01-16] and 12 more" where that is long, unless ``verbose``."""
    folded = hosts.folded(names)
    if verbose or len(folded) <= _NAMES:
        return folded
    fitting = [count for count in range(1, 33) if len(hosts.folded(names[:count])) <= _NAMES - 14]
    if not fitting:
        return words.machines(len(names)) if len(names) > 1 else f"{folded[:_NAMES]}…"
    more = len(names) - fitting[-1]
    return hosts.folded(names[: fitting[-1]]) + (f" and {more} more" if more else "")

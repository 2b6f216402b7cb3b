"""A fleet's result for people: how many are healthy; groups of the same problem; the outliers; who did not
answer; what the machines of one place share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ... import safe_text
from ...findings.model import Outcome
from ...reports.page import Column, Page, Span, unchanged
from .. import hosts
from ..model import AttributeOutlier, FleetResult, JudgedMachine, ProblemGroup, RateOutlier, State
from . import words

# What is shown of each list, unless -v asks for all.
GROUPS = 20
ROWS = 20
LIMIT_LINES = 3  # of a list for --limit
SHORT_NAME = 40

# A machine's state in a word, and its style.
_STATES: dict[State, tuple[str, Outcome]] = {
    "healthy": ("OK", "pass"),
    "problems": ("FAIL", "fail"),
    "could-not-look": ("BLIND", "could-not-run"),
    "unanswered": ("SILENT", "could-not-run"),
}


def render(
    result: FleetResult,
    *,
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
    verbose: bool = False,
    next_steps: Sequence[tuple[str, str]] = (),
    in_place: Callable[[str], str] = unchanged,
) -> str:
    """verbose: every name, and a line for each machine. next_steps: (what for, command) at the end, for the
    reader's own machine, where ``in_place`` makes it work.
    """
    page = Page(width=width, colour=colour, utf8=utf8, in_place=in_place)
    page.away = True
    _verdict(page, result)
    _products(page, result, verbose)
    _groups(page, result, verbose)
    _odd(page, result, verbose)
    _silent(page, result, verbose)
    _shared(page, result, verbose)
    _changes(page, result)
    if verbose:
        _machines(page, result)
    if page.tokens:
        page.blank()
        told = "Snapshots collected with --no-redact have the values themselves."
        page.paragraph((f"{page.about_tokens()} {told}", ""), hanging=2)
    for what_for, command in next_steps:
        page.blank()
        page.paragraph((what_for, ""))
        page.command(command, here=True)
    return page.text()


def _changes(page: Page, result: FleetResult) -> None:
    """What changed since the directory that --since named: a line for each machine."""
    if result.since is None:
        return
    page.blank()
    page.paragraph(("What changed:" if result.since else "Nothing changed.", "heading"))
    for change in result.since:
        problems = f": {'; '.join(change.problems)}" if change.problems else ""
        page.paragraph((f"{change.machine} {change.kind}{problems}", ""), indent=2, hanging=4)


def brief(result: FleetResult, *, width: int = 80, colour: bool = False, utf8: bool = True) -> str:
    """The verdict, and a line for each group of problems."""
    page = Page(width=width, colour=colour, utf8=utf8)
    _verdict(page, result)
    for group in result.groups:
        _headline(page, group)
    return page.text()


def _verdict(page: Page, result: FleetResult) -> None:
    if made_up := words.simulated(result):
        page.paragraph(("Simulated, not real:", "heading"), (made_up, ""), hanging=2)
    outcome = _worst(result)
    sign = f"{page.sign(outcome)} " if page.utf8 else ""
    page.paragraph((sign + words.verdict(result), outcome), hanging=2)


def _worst(result: FleetResult) -> Outcome:
    counts = result.counts
    if counts.problems:
        return "fail"
    if counts.unanswered or counts.could_not_look:
        return "could-not-run"
    return "warn" if result.groups or words.outliers(result) else "pass"


def _products(page: Page, result: FleetResult, verbose: bool) -> None:
    """How many there are of each, and from when the facts are."""
    products = Counter(one.product for one in result.machines if one.state != "unanswered")
    told = [
        f"{number} with {product or 'GPUs that nobody could tell'}"
        for product, number in products.most_common(None if verbose else 4)
    ]
    if len(products) > len(told):
        told.append(f"{len(products) - len(told)} more kinds")
    if told:
        page.paragraph(("Machines:", "heading"), ("; ".join(told), ""), hanging=2)
    when = sorted(one.collected_at for one in result.machines if one.collected_at)
    if verbose and when:
        span = when[0] if when[0] == when[-1] else f"{when[0]} to {when[-1]}"
        page.paragraph((f"{result.envcheck}, facts of {span}", "quiet"), hanging=2)


def _groups(page: Page, result: FleetResult, verbose: bool) -> None:
    shown = result.groups if verbose else result.groups[:GROUPS]
    for group in shown:
        page.blank()
        _headline(page, group)
        _hosts(page, group.machines, group.hosts, verbose)
        _limit(page, group.limit, group.machines, verbose)
        about = f"On {_name(page, group.of_one)}: " if group.of_one else ""
        if group.message:
            page.paragraph((about + group.message, ""), indent=2, hanging=4)
        if group.remedy or group.commands:
            to_do = f"To do on {_name(page, group.of_one)}:" if group.of_one else "To do:"
            page.paragraph((to_do, "heading"), (group.remedy, ""), indent=2, hanging=4)
            for command in group.commands:
                page.command(command)
    if left := result.groups[len(shown) :]:
        codes = ", ".join(dict.fromkeys(group.code for group in left))
        page.blank()
        page.paragraph((f"and {len(left)} more problems (-v shows them): {codes}", ""), hanging=2)


def _headline(page: Page, group: ProblemGroup) -> None:
    told = f"{words.machines(len(group.machines))}: {words.problem(group)}"
    page.paragraph(
        (page.word(group.level), group.level), (group.code, "code"), (told, ""), hanging=2
    )


def _odd(page: Page, result: FleetResult, verbose: bool) -> None:
    """By product: what differs, and what is slower. The same on several machines is told once."""
    products: dict[str, dict[str, list[str]]] = {}
    outliers: list[tuple[AttributeOutlier | RateOutlier, str]] = [
        *((one, words.attribute_outlier(one)) for one in result.attribute_outliers),
        *((one, words.rate_outlier(one, 99 if verbose else 2)) for one in result.rate_outliers),
    ]
    for one, told in sorted(outliers, key=lambda pair: bool(pair[0].because)):
        products.setdefault(one.product, {}).setdefault(told, []).append(one.machine)
    for found in result.splits:
        products.setdefault(found.product, {})
    for product, rows in products.items():
        page.blank()
        page.paragraph(
            ("Outliers of", "heading"), (product or "machines of no known kind", "heading")
        )
        _rows(page, [(names, told) for told, names in rows.items()], verbose)
        for found in result.splits:
            if found.product == product:
                page.paragraph((words.split(found), ""), indent=2, hanging=4)
                for camp in found.camps[1 : None if verbose else 2]:
                    _hosts(page, camp.machines, camp.hosts, verbose, indent=4)


def _silent(page: Page, result: FleetResult, verbose: bool) -> None:
    if result.unanswered:
        page.blank()
        told = words.machines(result.counts.unanswered)
        told += f" without a Snapshot: {', '.join(words.without_snapshot(result))}"
        page.paragraph((told, "heading"))
        rows = [(one.machines, words.silence(one.outcome, one.reason)) for one in result.unanswered]
        _rows(page, rows, verbose)
        names = [name for one in result.unanswered for name in one.machines]
        limits = [one.limit for one in result.unanswered]
        _limit(page, ",".join(limits) if all(limits) else "", names, verbose)
    blind: dict[str, list[str]] = {}
    for machine in result.machines:
        if machine.state == "could-not-look":
            blind.setdefault(machine.reason or machine.verdict, []).append(machine.name)
    if blind:
        page.blank()
        told = f"{words.machines(result.counts.could_not_look)} could not be looked at"
        page.paragraph((told, "heading"))
        _rows(page, [(names, why) for why, names in blind.items()], verbose)


def _shared(page: Page, result: FleetResult, verbose: bool) -> None:
    shown = result.shared if verbose else result.shared[:ROWS]
    if shown:
        page.blank()
        page.paragraph(("In one place", "heading"))
    for fault in shown:
        page.paragraph((words.shared(fault), ""), indent=2, hanging=4)
        _hosts(page, fault.machines, fault.hosts, verbose, indent=4)
    if left := len(result.shared) - len(shown):
        page.paragraph((f"and {left} more (-v shows them)", ""), indent=2)


def _machines(page: Page, result: FleetResult) -> None:
    page.blank()
    names = [_name(page, one.name) for one in result.machines]
    widths = (
        max(map(len, [*names, "machine"])),
        max(len(word) for word, _ in _STATES.values()),
    )
    rest = max(page.columns - sum(widths) - len(widths), 20)
    columns = (Column("machine", widths[0]), Column(width=widths[1]), Column("verdict", rest))
    rows = [_machine(one, name) for one, name in zip(result.machines, names, strict=True)]
    page.table(columns, rows)


def _machine(machine: JudgedMachine, name: str) -> Iterable[Span]:
    word, style = _STATES[machine.state]
    if machine.state == "healthy" and machine.problems:
        word, style = "WARN", "warn"
    silent = machine.state == "unanswered"
    told = words.silence(machine.answer, machine.reason) if silent else machine.verdict
    return [(name, "code"), (word, style), (told, "")]


def _rows(page: Page, rows: Sequence[tuple[list[str], str]], verbose: bool) -> None:
    """Machines, and what is said of them."""
    shown = rows if verbose else rows[:ROWS]
    keys = [_folded(page, names, "", page.width // 3) for names, _ in shown]
    cells = min(max((len(key) for key in keys), default=0), page.width // 3) + 2
    for key, (_, told) in zip(keys, shown, strict=True):
        page.entry(key, told, cells)
    if verbose:
        for names, _ in shown:
            if len(names) > 1:
                _hosts(page, names, "", verbose, indent=4)
    if left := len(rows) - len(shown):
        page.paragraph((f"and {left} more (-v shows them)", ""), indent=2)


def _hosts(page: Page, names: Sequence[str], folded: str, verbose: bool, indent: int = 2) -> None:
    """A list of names on a line of its own, to be copied: as much of it as fits, or all of it."""
    told = folded or hosts.folded(names)
    if not verbose:
        told = _folded(page, names, folded, page.width - indent)
    page.line((" " * indent, ""), (page.clean(told), "code"))


def _folded(page: Page, names: Sequence[str], folded: str, cells: int) -> str:
    """The names, folded, in that many cells; "gpu[01-16] and 12 more" where they do not fit."""
    told = page.clean(folded or hosts.folded(names))
    if page.fits(told, cells):
        return told
    if len(names) == 1:
        return page.cut(told, cells)
    least, most = 0, min(len(names) - 1, 2 * cells)
    while least < most:
        middle = (least + most + 1) // 2
        if page.fits(_and_more(page, names, middle), cells):
            least = middle
        else:
            most = middle - 1
    return _and_more(page, names, least) if least else words.machines(len(names))


def _and_more(page: Page, names: Sequence[str], number: int) -> str:
    return f"{page.clean(hosts.folded(names[:number]))} and {len(names) - number} more"


def _limit(page: Page, limit: str, names: Sequence[str], verbose: bool) -> None:
    """For Ansible's --limit, which reads no ranges."""
    line = f"--limit {limit}"
    if limit and len(names) > 1 and (verbose or len(line) <= LIMIT_LINES * page.width):
        page.preformatted(safe_text.escaped(line))


def _name(page: Page, name: str) -> str:
    return page.cut(page.clean(name), SHORT_NAME)

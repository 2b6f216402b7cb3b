"""The report as Markdown: one block to paste into a ticket.

What a Snapshot says cannot end a fence, nor become HTML, a link or a mention: a word with a character that
Markdown takes for its own stands in a code span. Names and paths stay redacted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .. import safe_text
from ..facts.snapshot import Snapshot
from .acceleration import states
from .areas import statuses
from .machine import facts
from .model import Report, verdict
from .plain import SIGNS, code_ranges, evidence_text
from .sections import ReportedProblem, problems
from .tensorcore_rows import proven

_OWN = re.compile(r"[`*\[\]<>|~\\@#&!{}$^]|\b_|_\b|//|www\.", re.IGNORECASE)
_STOPS = ",.;:"
_TICKS = re.compile("`+")


def render(report: Report, snapshot: Snapshot) -> str:
    """GitHub's and GitLab's Markdown, a newline at its end."""
    found = verdict(report, snapshot)
    lines = [f"Simulated, not real: {prose(report.simulated)}", ""] if report.simulated else []
    lines += [f"**{SIGNS[found.sign]} {prose(found.text())}**", ""]
    lines += ["| | |", "|---|---|"]
    lines += [f"| {key} | {_cell(value)} |" for key, value in _facts(report, snapshot)]
    for problem in problems(report.results):
        lines += _problem(problem)
    if report.tensor_cores:
        lines += ["", f"**Tensor Cores**: {prose(proven(report.tensor_cores))}"]
    if systems := [f"{', '.join(titles)} {word}" for word, titles in states(report).items()]:
        lines += ["", f"**Acceleration**: {prose('; '.join(systems))}"]
    lines.append("")
    for outcome, text, names in statuses(report, snapshot):
        lines.append(f"- {SIGNS[outcome]} {', '.join(names)}{': ' if text else ''}{prose(text)}")
    return "\n".join(lines) + "\n"


def prose(text: str) -> str:
    """Text as Markdown that shows it, and does nothing else."""
    return " ".join(map(_word, safe_text.one_line(text).split(" ")))


def _word(word: str) -> str:
    if not _OWN.search(word):
        return word
    core = word.rstrip(_STOPS)
    return code(core) + word[len(core) :]


def code(text: str) -> str:
    """A code span that shows the text."""
    ticks = "`" * (max(map(len, _TICKS.findall(text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _cell(text: str) -> str:
    """The same in a table's cell, where a bar has to be escaped in code, too."""
    return prose(text).replace("|", "\\|")


def fence(commands: Iterable[str]) -> list[str]:
    """A fenced block of shell commands, which nothing in them can end."""
    text = "\n".join(safe_text.lines(one) for one in commands)
    ticks = "`" * max(3, max(map(len, _TICKS.findall(text)), default=0) + 1)
    return ["", f"{ticks}sh", text, ticks]


def _facts(report: Report, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    machine, target = report.machine, report.target
    about = ", ".join(filter(None, (machine.hostname, machine.summary)))
    yield "machine", about or "nothing is known of it"
    for key in ("kernel", "container"):
        if value := getattr(machine, key):
            yield key, value
    if target is not None:
        yield "target", target.summary
        environment = facts(snapshot.target.environment) if snapshot.target is not None else None
        for name, value in environment.variables.items() if environment is not None else ():
            yield "variable", f"{name}={value}"
    yield "envcheck", f"{report.envcheck}, facts of {machine.collected_at}"


def _problem(one: ReportedProblem) -> Iterator[str]:
    unable = "could not run: " if one.outcome == "could-not-run" else ""
    yield ""
    yield f"**{SIGNS[one.outcome]} {one.code}** {unable}{prose(one.message)}"
    yield ""
    for where in one.where:
        yield f"- {prose(where)}"
    for evidence in one.evidence:
        yield f"- {code(safe_text.one_line(evidence_text(evidence)))}"
    if one.follows:
        yield f"- consequences: {code_ranges(result.code for result in one.follows)}"
    for gap in one.gaps:
        yield f"- could not look: {prose(gap)}"
    if one.remedy is not None:
        yield f"- To do: {prose(one.remedy.text)}"
        if one.remedy.commands:
            yield from fence(one.remedy.commands)

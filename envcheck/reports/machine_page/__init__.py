"""A machine's report as one HTML page that needs no network.

A file a part: problems, devices (with topology and picture), tensor_cores, measured, checks, facts_tree.
"""

from __future__ import annotations

from ...facts.snapshot import Snapshot
from .. import html_page, html_script
from ..model import Report, verdict
from ..verdict import OverallVerdict
from . import measured
from .checks import checks
from .devices import machine
from .facts_tree import facts_tree
from .page_style import STYLE
from .problems import problems
from .tensor_cores import tensor_cores
from .topology import topology


def render(report: Report, snapshot: Snapshot, *, name: str = "", back: str = "") -> str:
    """The page. name: what the machine is called, where somebody calls it anything. back: a link to the
    page of its fleet, beside this one."""
    found = verdict(report, snapshot)
    title = name or _hostname(report) or "This machine"
    sections = [
        *problems(report, snapshot),
        machine(snapshot, topology(snapshot, report.results)),
        *tensor_cores(report),
        *measured.systems(report),
        *measured.bench(snapshot),
        *measured.soak(snapshot, report),
        checks(report, snapshot),
        facts_tree(snapshot),
    ]
    return html_page.whole(
        f"{_word(found)}: {title}, envcheck",
        map(html_page.section, sections),
        head=_head(report, found, title, back),
        contents=html_page.contents(sections),
        foot=html_page.paragraph(
            f"envcheck {report.envcheck}; envcheck explain CODE tells of a check"
        ),
        script=html_script.SCRIPT,
        css=STYLE,
        kind=found.sign,
        generator=html_page.OF_A_FLEET if back else "envcheck",
    )


def _hostname(report: Report) -> str:
    """Not the mark that stands for a name in what is redacted."""
    name = report.machine.hostname or ""
    return "" if name.startswith("<") else name


def _word(found: OverallVerdict) -> str:
    word = found.lead or "; ".join(found.items)
    return word[:1].upper() + word[1:]


def _head(report: Report, found: OverallVerdict, title: str, back: str) -> str:
    machine, target = report.machine, report.target
    told = html_page.facts(
        [
            ("Collected", machine.collected_at.replace("T", " ").replace("Z", " UTC")),
            ("Kernel", machine.kernel or ""),
            ("Container", machine.container or ""),
            ("Target", target.summary if target is not None else ""),
        ]
    )
    return (
        html_page.masthead(
            "machine report",
            title,
            found.sign,
            _word(found),
            found.items if found.lead else [],
            about=machine.summary or "nothing is known of it",
            back=(back, "All machines") if back else ("", ""),
            simulated=report.simulated,
        )
        + told
    )

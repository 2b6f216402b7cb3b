"""A roll-out for people: its plan, a machine's line, and the end."""

from __future__ import annotations

from typing import Any

from ...install.progress import size
from ...reports.page import KEY, Page
from ...reports.plain import together
from .. import hosts
from ..reports.words import machines
from .model import MachineEnd, PlannedRollout, RolloutResult

_RESULTS = {
    "installed": "installed, and verified by its doctor",
    "already": "installed and verified already",
    "back": "went back",
    "removed": "is removed",
    "nothing": "stays as it is",
    "failed": "failed",
    "unreachable": "cannot be reached",
    "timed-out": "gave no answer in time",
    "not-begun": "was not begun",
    "left-out": "is left out",
}
_FAILED = {3: "refused", 5: "failed, and is as it was", 6: "failed, and is not as it was"}
_STYLES = {**dict.fromkeys(("installed", "already", "back", "removed"), "pass"), "nothing": "warn"}


def sentence(end: MachineEnd) -> str:
    """What became of a machine, after its name."""
    words = _RESULTS[end.result]
    if end.result == "failed":
        words = _FAILED.get(end.exit_code, words)
    if end.result == "back" and end.version:
        words += f" to {end.version}"
    return f"{words}: {end.reason}" if end.reason else words


def left_out(plan: PlannedRollout) -> list[MachineEnd]:
    return [
        MachineEnd(name=name, result="left-out", exit_code=one.exit_code, reason=one.reason)
        for one in plan.left_out
        for name in one.machines
    ]


def render_plan(plan: PlannedRollout, **style: Any) -> str:
    page = Page(**style)
    page.paragraph((f"{machines(len(plan.machines))} get something:", "heading"))
    for group in plan.groups:
        what = f"{group.stack} {group.release}, Python {group.python}"
        page.blank()
        page.paragraph((f"{machines(len(group.machines))}: ", ""), (what, "heading"))
        page.entry("hosts", group.hosts, KEY)
        if group.files:
            page.entry("packages", f"{group.files} files, {size(group.size)} a machine", KEY)
        page.entries("note", group.notes, KEY)
    for one in plan.left_out:
        page.blank()
        page.paragraph((f"{machines(len(one.machines))} left out: ", "warn"), (one.reason, ""))
        page.entry("hosts", one.hosts, KEY)
        page.entries("to do", one.hint.splitlines()[:1], KEY)
    if plan.waves:
        page.blank()
        words = " + ".join(map(str, plan.waves[:8])) + (" + …" if len(plan.waves) > 8 else "")
        page.entry("waves", f"{words} machines", KEY)
        page.entry("stops", f"when more than {plan.max_fail} failed", KEY)
    return page.text()


def render_result(result: RolloutResult, **style: Any) -> str:
    page = Page(**style)
    done = [end for end in result.machines if _STYLES.get(end.result) == "pass"]
    words = f"{len(done)} of {machines(len(result.machines))} done"
    if all(end.result == "nothing" for end in result.machines):
        words = f"There was nothing to do on {machines(len(result.machines))}"
    page.paragraph((words, "heading"))
    if result.stopped:
        page.paragraph((f"Stopped: {result.stopped}.", "fail"))
    found = together(((end.result, sentence(end)), end) for end in result.machines)
    for (kind, words), ends in found.items():
        page.blank()
        page.paragraph((f"{machines(len(ends))}: ", ""), (words, _STYLES.get(kind, "fail")))
        page.entry("hosts", hosts.folded(end.name for end in ends), KEY)
        verdicts = dict.fromkeys(end.verdict for end in ends if end.verdict)
        page.entries("doctor", list(verdicts)[:4], KEY)
        codes = dict.fromkeys(code for end in ends for code in end.unproven)
        page.entries("unproven", [f"{', '.join(codes)}: for want of a GPU"] if codes else [], KEY)
    if result.logs:
        page.blank()
        page.entry("logs", result.logs, KEY)
    return page.text()

"""How a run ends: skips grouped by reason, and one line that says what was left out and how to run it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from _pytest.terminal import TerminalReporter

LINES = 8
_SKIPPED = "Skipped: "
# What differs between skips of one kind: names in quotes, versions, paths.
_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|/\S+|\d+(?:\.\d+)*")


def write(reporter: TerminalReporter, left_out: dict[str, int]) -> None:
    lines = skip_lines(reason_of(report.longrepr) for report in reporter.stats.get("skipped", []))
    if lines:
        reporter.section("skipped, by reason", sep="-")
        for line in lines:
            reporter.write_line(line)
    if left_out:
        reporter.write_line(left_out_line(left_out))


def reason_of(longrepr: object) -> str:
    """pytest's record of a skip is (file, line, "Skipped: reason")."""
    reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return str(reason).removeprefix(_SKIPPED).split("\n")[0]


def skip_lines(reasons: Iterable[str]) -> list[str]:
    """At most LINES lines, most tests first: "12 × there is no podman on this machine"."""
    kinds: dict[str, list[str]] = {}
    for reason in reasons:
        kinds.setdefault(_DETAIL.sub("…", reason), []).append(reason)
    most = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    lines = []
    for _kind, reasons in most[: LINES if len(most) <= LINES else LINES - 1]:
        variants = len(set(reasons))
        more = f" (and {variants - 1} more like it)" if variants > 1 else ""
        lines.append(f"{len(reasons):5} × {reasons[0]}{more}")
    if len(most) > LINES:
        rest = most[LINES - 1 :]
        tests = sum(len(reasons) for _kind, reasons in rest)
        lines.append(f"{tests:5} × {len(rest)} other reasons (all of them: -rs)")
    return lines


def left_out_line(left_out: dict[str, int]) -> str:
    """left_out: how many tests, by mark."""
    text = ", ".join(f"{number} {mark}" for mark, number in left_out.items())
    first = " or ".join([*left_out][:2])
    return f'left out by their marks: {text} (to run some: sh setup.sh test -m "{first}")'

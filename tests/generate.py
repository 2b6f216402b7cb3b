"""Keeps what is generated (demos, pictures, the page of codes) the program's own. To write it anew:

.venv/bin/python tests/generate.py
"""

from __future__ import annotations

from pathlib import Path

import demos
import pictures

from envcheck.checks.registry import all_checks, areas

CODES = Path(__file__).resolve().parents[1] / "docs" / "codes.md"

INTRODUCTION = """\
<!-- made by tests/generate.py -->
# Codes

`envcheck explain CODE` says what a check means, how it is judged, and where the knowledge comes from.
The titles say what holds when it passes.
"""


def codes() -> str:
    """The page of codes: a table for each area."""
    lines = [INTRODUCTION]
    for area in areas().values():
        lines += [
            f"## {area.title}",
            "",
            f"For `--only` and `--skip`: `{area.name}`",
            "",
            "| code | title |",
            "|---|---|",
            *(
                f"| {check.code} | {check.title} |"
                for check in all_checks()
                if check.area == area.name
            ),
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    demos.write()
    pictures.write()
    CODES.write_text(codes())

"""Keeps README's tables the program's own. To write them anew:

.venv/bin/python tests/readme.py
"""

from __future__ import annotations

import re
from pathlib import Path

from envcheck.checks.registry import AREAS, all_checks

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- codes: tests/readme.py -->", "<!-- /codes -->"


def codes() -> str:
    """The checks as tables, an area each, folded away."""
    lines = []
    for area, name in AREAS.items():
        checks = [check for check in all_checks() if check.area == area]
        first, last = checks[0].code, checks[-1].code
        lines += [
            f"<details><summary><b>{name}</b> (<code>{area}</code>): {first} to {last}</summary>",
            "",
            "| code | what is well when it passes |",
            "|---|---|",
            *(f"| {check.code} | {check.title} |" for check in checks),
            "",
            "</details>",
        ]
    return "\n".join(lines)


def renewed(text: str) -> str:
    """README's text with the tables as they have to be."""
    pattern = re.escape(BEGIN) + r".*?" + re.escape(END)
    table = f"{BEGIN}\n{codes()}\n{END}"
    return re.sub(pattern, lambda match: table, text, flags=re.DOTALL)


if __name__ == "__main__":
    README.write_text(renewed(README.read_text()))

"""Keeps what is generated (the demos, README's tables and reports) the program's own. To write it anew:

.venv/bin/python tests/generate.py
"""

from __future__ import annotations

import re
from pathlib import Path

import demos

from envcheck.checks.engine import diagnose
from envcheck.checks.registry import AREAS, all_checks
from envcheck.reports import tensorcores, terminal
from envcheck.reports.model import build
from envcheck.reports.page import Page
from envcheck.snapshot import load

README = Path(__file__).resolve().parents[1] / "README.md"
MARKS = ("codes", "simulated", "tensor-cores")


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


def simulated() -> str:
    """What `envcheck demo heat` prints, in a pipe."""
    snapshot = load(demos.build("heat"))
    return f"```text\n{terminal.render(build(snapshot, diagnose(snapshot)), snapshot)}```"


def tensor_cores() -> str:
    """The table of the healthy demo."""
    snapshot = load(demos.build("healthy"))
    page = Page()
    tensorcores.section(page, build(snapshot, diagnose(snapshot)), snapshot)
    return f"```text\n{page.text().strip()}\n```"


def marked(name: str) -> tuple[str, str]:
    return f"<!-- {name}: tests/generate.py -->", f"<!-- /{name} -->"


def renewed(text: str) -> str:
    """README's text with the generated parts as they have to be."""
    parts = {"codes": codes(), "simulated": simulated(), "tensor-cores": tensor_cores()}
    for name in MARKS:
        begin, end = marked(name)
        pattern = re.escape(begin) + r".*?" + re.escape(end)
        new = f"{begin}\n{parts[name]}\n{end}"
        text = re.sub(pattern, lambda match, new=new: new, text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    demos.write()
    README.write_text(renewed(README.read_text()))

"""Keeps what is generated (demos, pictures, codes, rooms, sections) the program's own. To write it anew:

.venv/bin/python tests/generate.py
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import demos
import pictures
import sections_read

from envcheck.checks.registry import CheckText, all_checks, areas
from envcheck.fleet.network.causes import CHECK

REPOSITORY = Path(__file__).resolve().parents[1]
CODES = REPOSITORY / "docs" / "codes.md"
CONTRIBUTING = REPOSITORY / "CONTRIBUTING.md"
_BEGIN, _END = "<!-- rooms: made by tests/generate.py -->\n```\n", "```\n<!-- end of rooms -->"

INTRODUCTION = """\
<!-- made by tests/generate.py -->
# Codes

`envcheck explain CODE` says what a check means, how it is judged, and where the knowledge comes from.
The titles say what holds when it passes; causes are the keys that JSON, JUnit and metrics have.
"""


def codes() -> str:
    """The page of codes: a table for each area."""
    lines = [INTRODUCTION]
    for area in areas().values():
        about = f"For `--only` and `--skip`: `{area.name}`"
        lines += _table(area.title, about, [one for one in all_checks() if one.area == area.name])
    about = "Of `envcheck fleet network`, and of `envcheck fleet report` where its result is there."
    return "\n".join(lines + _table("Between machines", about, [CHECK]))


def _table(title: str, about: str, checks: Sequence[CheckText]) -> list[str]:
    rows = [
        f"| {check.code} | {check.title} | {', '.join(one.key for one in check.causes)} |"
        for check in checks
    ]
    return [f"## {title}", "", about, "", "| code | title | causes |", "|---|---|---|", *rows, ""]


def rooms() -> str:
    """CONTRIBUTING with a line for each room: its name, and what its docstring begins with."""
    lines: list[str] = []
    for folder in ("envcheck", "envcheck/collector", "install"):
        lines.append(f"{folder}/")
        packages = {p.parent: p for p in (REPOSITORY / folder).glob("*/__init__.py")}
        files = {} if "/" in folder else {p: p for p in (REPOSITORY / folder).glob("[!_]*.py")}
        for path, source in sorted((packages | files).items()):
            if not path.is_symlink() and path.name != "collector":
                output = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
                name = f"{path.name}/" if path in packages else path.name
                lines.append(f"  {name:<17} {output.partition(chr(10))[0]}")
    head, _, rest = CONTRIBUTING.read_text(encoding="utf-8").partition(_BEGIN)
    return "".join([head, _BEGIN, "\n".join(lines), "\n", _END, rest.partition(_END)[2]])


if __name__ == "__main__":
    CONTRIBUTING.write_text(rooms())
    demos.write()
    pictures.write()
    CODES.write_text(codes())
    sections_read.FILE.write_text(sections_read.table())

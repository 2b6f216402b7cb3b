"""What users read is in plain English: none of these words, which this project once had as a dialect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
WORDS = re.compile(
    r"\b(told|heard|alike|nobody|odd ones?|as (?:it|they) should be|all is well|are well|"
    r"look again|see to|anew|for ever|where (?:there )?is none|as it stands)\b",
    re.IGNORECASE,
)
PAGES = [
    *REPOSITORY.glob("*.md"),
    *(REPOSITORY / "docs").glob("*.md"),
    *(REPOSITORY / "envcheck" / "reports" / "templates").rglob("*.html"),
    *(REPOSITORY / "envcheck" / "checks").rglob("*.toml"),
]
EXCEPT = {("envcheck/collector/redact.py", "nobody")}  # the name of a user


def sources() -> list[Path]:
    return [
        path
        for folder in ("envcheck", "install")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))  # follows no link
    ]


def shown(path: Path) -> Iterator[tuple[int, str]]:
    """The sentences in a module's strings, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    for node in strings:
        if isinstance(node.value, str) and " " in node.value and id(node) not in docstrings:
            yield node.lineno, node.value


def refused(path: Path, lines: Iterable[tuple[int, str]]) -> list[str]:
    name = path.relative_to(REPOSITORY).as_posix()
    return [
        f"{name}:{number}: {match[0]!r} in {text.strip()[:80]!r}"
        for number, text in lines
        for match in WORDS.finditer(text)
        if (name, match[0].lower()) not in EXCEPT
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages(path: Path) -> None:
    found = refused(path, enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    assert not found, "\n".join(found)


def test_messages() -> None:
    found = [line for path in sources() for line in refused(path, shown(path))]
    assert not found, "\n".join(found)


def test_a_word_is_found() -> None:
    lines = [(1, "as it should be"), (2, "a threshold"), (3, "The GPUs are Alike.")]
    assert len(refused(REPOSITORY / "README.md", lines)) == 2

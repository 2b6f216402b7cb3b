"""Where a TOML document's keys and values stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

import pytest
import tomli

from envcheck.install import catalogue
from envcheck.install.catalogue.positions import Path, Position, Positions

STACKS = sorted(File(catalogue.__file__).parent.glob("**/*.toml"))

ODD = r"""# a comment with [brackets] and "quotes
title = "a # no comment" # but this is
'quoted "key"' = 'it'
site."a.b".c = 1

list = [ # comment
  "one", 'two',
  ["three"], { x = "four", y = { z = 5 } },  # more
]
text = '''
[not.a.table]
also = "not a key"
'''
more = QQQ
[[neither]] \QQQ = "x" "QQQ
when = 1979-05-27 07:32:00

[table]
a.b = true
[[rows]]
name = "first"
[rows.inner]
deep = "d1"
[[rows.more]]
n = 1
[[rows.more]]
n = 2
  [[ rows ]]
  name = "second"
  [ rows . "inner" ]
  deep = "d2"
""".replace("QQQ", '"' * 3)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))
    else:
        yield path, value


def rest(text: str, position: Position) -> str:
    return text.splitlines(keepends=True)[position.line - 1][position.column - 1 :]


@pytest.mark.parametrize("file", STACKS, ids=lambda file: file.stem)
def test_every_value_of_our_own_files_is_found(file: File) -> None:
    text = file.read_text(encoding="utf-8")
    positions = Positions(text)
    found = list(leaves(tomli.loads(text)))
    assert len(found) > 10
    for path, value in found:
        here = rest(text, positions.of(path))
        quoted = f"'{value}'" if '"' in str(value) else f'"{value}"'
        assert here.startswith(quoted if isinstance(value, str) else str(value).lower()), path
        if isinstance(path[-1], str):
            assert rest(text, positions.of(path, key=True)).startswith(path[-1]), path


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        (("title",), '"a # no comment"'),
        (('quoted "key"',), "'it'"),
        (("site", "a.b", "c"), "1"),
        (("list", 1), "'two'"),
        (("list", 2, 0), '"three"'),
        (("list", 3, "x"), '"four"'),
        (("list", 3, "y", "z"), "5 }"),
        (("when",), "1979-05-27 07:32:00"),
        (("table", "a", "b"), "true"),
        (("rows", 0), "[[rows]]"),
        (("rows", 0, "inner"), "[rows.inner]"),
        (("rows", 0, "inner", "deep"), '"d1"'),
        (("rows", 0, "more", 1, "n"), "2"),
        (("rows", 1, "name"), '"second"'),
        (("rows", 1, "inner", "deep"), '"d2"'),
    ],
)
def test_an_odd_document(path: Path, begins: str) -> None:
    at: Any = tomli.loads(ODD)
    for part in path:
        at = at[part]  # the path is there
    assert rest(ODD, Positions(ODD).of(path)).startswith(begins)


def test_keys_are_found_too_and_what_is_missing_stands_in_its_table() -> None:
    positions = Positions(ODD)
    assert rest(ODD, positions.of(("rows", 1, "name"), key=True)).startswith("name =")
    assert rest(ODD, positions.of(("list", 3, "y"), key=True)).startswith("y = {")
    assert positions.of(("rows", 1, "nowhere")) == positions.of(("rows", 1))
    assert rest(ODD, positions.of(("rows", 1))).startswith("[[ rows ]]")
    assert positions.of(("nowhere",)) == Position(1, 1)


def test_line_ends_of_windows_count_as_one() -> None:
    text = 'a = "x"\r\n\r\nb = [\r\n  1,\r\n  "y",\r\n]\r\n'
    assert Positions(text).of(("b", 1)) == Position(5, 3)

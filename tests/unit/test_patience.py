"""Tests wait for a state, and give up long after the busiest machine would have reached it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted({*TESTS.glob("functional/*.py"), *TESTS.glob("unit/*.py"), *TESTS.glob("gpu/*.py")})
# Of one attempt among many, after which the next one follows.
ATTEMPTS = {"create_connection", "urlopen", "open", "get"}
CLOCKS = {"monotonic", "perf_counter", "time"}
# Below, something is asserted to be still under way, or is made to time out; above, it is patience.
SHORT, LONG = 2.0, 600.0


def name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def hurried(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, what) of limits that load can break."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name(node) not in ATTEMPTS:
            values = [word.value for word in node.keywords if word.arg == "timeout"]
            values += node.args[1:2] if name(node) == "wait_for" else []
            numbers = [one.value for one in values if isinstance(one, ast.Constant)]
            for number in numbers:
                if isinstance(number, int | float) and SHORT <= number < LONG:
                    yield node.lineno, f"a limit of {number:g} s"
        elif isinstance(node, ast.Assert):
            clocks = [
                n for n in ast.walk(node.test) if isinstance(n, ast.Call) and name(n) in CLOCKS
            ]
            differences = [n for n in ast.walk(node.test) if isinstance(n, ast.BinOp)]
            if clocks and any(isinstance(n.op, ast.Sub) for n in differences):
                yield node.lineno, "a time is asserted"


def test_no_limit_is_one_that_load_can_break() -> None:
    found = [
        f"{path.name}:{line}: {what}"
        for path in FILES
        for line, what in hurried(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "processes.PATIENCE is the limit; processes.stretched() makes a deadline"

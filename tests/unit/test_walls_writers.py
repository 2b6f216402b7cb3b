"""Who writes to a terminal: what others wrote passes one of these on its way there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from test_walls import CORE, PACKAGE

WRITERS = {
    "cli/files.py",
    "cli/messages.py",
    "__main__.py",  # words of its own alone
    "install/pythons/probe_script.py",  # its answer, which envcheck reads
    "fleet/workers.py",  # its answers, which envcheck reads
    "install/start/container.py",  # through safe_text, in the container
}


def writes(tree: ast.AST) -> Iterator[int]:
    """The lines that print, or write to a standard stream."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        standard = called.startswith(("sys.stdout.", "sys.stderr.", "sys.__std"))
        descriptor = called == "os.write" and ast.unparse(node.args[0]) in ("1", "2")
        if called == "print" or descriptor or (standard and "write" in called):
            yield node.lineno


def test_the_writers_alone_write() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in CORE
        for line in writes(ast.parse(path.read_text("utf-8")))
    }
    assert {one.partition(":")[0] for one in found} == WRITERS, sorted(found)


def test_the_main_module_prints_words_of_its_own() -> None:
    tree = ast.parse(Path(PACKAGE / "__main__.py").read_text("utf-8"))
    printed = {
        ast.unparse(n.args[0])
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and ast.unparse(n.func) == "print"
    }
    assert printed == {"'envcheck: interrupted'", "f'envcheck {__version__}'"}

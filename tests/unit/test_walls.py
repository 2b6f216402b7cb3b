"""The walls of the house: what may import what, who may start a process, and who writes to a terminal."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from envcheck.checks.registry import all_checks

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "envcheck"
COLLECTOR = sorted((PACKAGE / "collector").rglob("*.py"))
INSTALL = sorted((PACKAGE / "install").rglob("*.py"))  # a link, which the next line does not follow
CORE = sorted(
    {*(p for p in PACKAGE.rglob("*.py") if PACKAGE / "collector" not in p.parents), *INSTALL}
)
CHECKS = sorted((PACKAGE / "checks").rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Absolute names of everything that a file imports, anywhere in it."""

    def names() -> Iterator[str]:
        package = ("envcheck", *path.relative_to(PACKAGE).parent.parts)
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                yield from (name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else ()
                module = ".".join([*base, *([node.module] if node.module else [])])
                yield from (f"{module}.{name.name}" for name in node.names)

    return frozenset(names())


def tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def test_the_collector_imports_the_standard_library_and_itself() -> None:
    # pynvml comes along; the second is Python 3.14's, and asked for softly
    allowed = {*sys.stdlib_module_names, "pynvml", "compression"}
    for path in COLLECTOR:
        if path.stem.replace("framework_", "") in ("tensorflow", "torch", "jax"):
            continue  # frameworks are what these are there to import
        foreign = {n for n in imports(path) if not inside(n, "envcheck.collector")}
        foreign = {n for n in foreign if n.partition(".")[0] not in allowed}
        assert not foreign, f"{path.name} imports {foreign}"


def test_the_collector_is_python_3_6() -> None:
    for path in COLLECTOR:
        ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=(3, 6))


# The doors in the wall: process.py, the pipe for what goes on for days, the bootstrap of the collector,
# and the version.
DOORS = {
    PACKAGE / "collection.py": {
        "envcheck.collector.worker.messages",
        "envcheck.collector.worker.pipes",
        "envcheck.collector.runtime.process",
        "envcheck.collector.worker.PACKAGE",
    },
    PACKAGE / "cli" / "kernels.py": {"envcheck.collector.options"},
    PACKAGE / "__init__.py": {"envcheck.collector.version.VERSION"},
    PACKAGE / "install" / "processes.py": {"envcheck.collector.runtime.process"},
    PACKAGE / "plugins" / "apart.py": {"envcheck.collector.runtime.process"},
    # the process that a plug-in's code runs in
    PACKAGE / "plugins" / "inside.py": {
        "envcheck.collector.worker.forked",
        "envcheck.collector.runtime.orphans",
    },
}


def test_core_reaches_the_collector_through_its_doors_only() -> None:
    for path in CORE:
        reached = {name for name in imports(path) if inside(name, "envcheck.collector")}
        assert reached <= DOORS.get(path, set()), f"{path.relative_to(PACKAGE)} imports {reached}"


def test_core_touches_neither_proc_nor_sys_nor_the_loader() -> None:
    for path in CORE:
        assert "ctypes" not in tops(path), path
        strings = {
            node.args[0].value
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
            if getattr(node.func, "id", getattr(node.func, "attr", "")) in ("open", "Path")
        }
        assert not [s for s in strings if str(s).startswith(("/proc", "/sys", "/dev"))], path


def test_one_module_starts_processes() -> None:
    for path in [*CORE, *COLLECTOR]:
        if path == PACKAGE / "collector" / "runtime" / "process.py":
            continue
        assert not {"subprocess", "multiprocessing", "pty"} & tops(path), path
        text = path.read_text(encoding="utf-8")
        assert not [
            w for w in ("os.system(", "os.popen(", "os.spawn", "posix_spawn") if w in text
        ], path


# `envcheck run` becomes the command: its process is not started, and nobody waits for it.
BECOMES = PACKAGE / "install" / "start" / "exec.py"


def test_one_module_becomes_another_program() -> None:
    found = {
        path
        for path in [*CORE, *COLLECTOR]
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr.startswith("exec")
        if isinstance(node.value, ast.Name) and node.value.id == "os"
    }
    assert found == {BECOMES}


def test_a_check_reads_no_file_and_no_clock() -> None:
    forbidden = {"os", "io", "pathlib", "time", "datetime", "socket", "shutil", "tempfile", "glob"}
    for path in CHECKS:
        assert not tops(path) & forbidden, path
        called = {
            node.func.id
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert "open" not in called, path


def test_install_is_never_imported_under_its_second_name() -> None:
    import envcheck.install.transaction.roots

    assert "install" not in sys.modules
    assert Path(envcheck.install.transaction.roots.__file__).name == "roots.py"
    assert not [path for path in CORE if "install" in tops(path)]


def test_starting_the_command_line_imports_nothing_heavy() -> None:
    """rich, msgspec and the checks are imported by the commands that need them."""
    for path in (
        PACKAGE / "cli" / "main.py",
        PACKAGE / "cli" / "files.py",
        PACKAGE / "__main__.py",
    ):
        at_the_top = {
            getattr(node, "module", None) or node.names[0].name
            for node in parsed(path).body
            if isinstance(node, (ast.Import, ast.ImportFrom))
        }
        assert not at_the_top & {"rich", "msgspec", "rich_argparse", "shtab", "packaging"}, path


def test_every_module_of_the_checks_registers_a_check_or_is_imported_by_one() -> None:
    """A file of checks that the registry does not reach would vanish in silence."""
    names = {
        ".".join(("envcheck", *path.relative_to(PACKAGE).with_suffix("").parts)): path
        for path in CHECKS
        if path.name != "__init__.py"
    }
    registered = {check.judge.__module__ for check in all_checks()}
    everywhere = frozenset().union(*(imports(path) for path in CORE))
    for name in names:
        used = any(inside(found, name) for found in everywhere)
        assert name in registered or used, f"{name} has no check, and nothing imports it"


def test_no_class_name_stands_for_two_things() -> None:
    # the collector cannot import core's types, and fills some of the same names
    for side in (COLLECTOR, CORE):
        found = [
            (node.name, path.name)
            for path in side
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.ClassDef)
        ]
        names = [name for name, _ in found if name != "ActionModule"]  # Ansible wants it called so
        assert [pair for pair in found if names.count(pair[0]) > 1] == []


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
        f"{path.relative_to(PACKAGE)}:{line}" for path in CORE for line in writes(parsed(path))
    }
    assert {one.partition(":")[0] for one in found} == WRITERS, sorted(found)


def test_the_main_module_prints_words_of_its_own() -> None:
    tree = parsed(PACKAGE / "__main__.py")
    printed = {
        ast.unparse(n.args[0])
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and ast.unparse(n.func) == "print"
    }
    assert printed == {"'envcheck: interrupted'", "f'envcheck {__version__}'"}

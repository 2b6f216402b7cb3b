"""The walls of the house: what may import what, and who may start a process."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "envcheck"
COLLECTOR = sorted((PACKAGE / "collector").rglob("*.py"))
CORE = sorted(p for p in PACKAGE.rglob("*.py") if PACKAGE / "collector" not in p.parents)


def imports(path: Path) -> Iterator[str]:
    """Absolute names of everything that a file imports, anywhere in it."""
    package = ("envcheck", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{name.name}" for name in node.names)


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("path", COLLECTOR, ids=lambda p: p.name)
def test_the_collector_imports_the_standard_library_and_itself(path: Path) -> None:
    for name in imports(path):
        top = name.partition(".")[0]
        allowed = (
            inside(name, "envcheck.collector")
            or top in sys.stdlib_module_names
            # frameworks are what target probes are there to import
            or (path.parent.name == "probes" and path.name.startswith("framework_"))
            or top in ("pynvml", "compression")  # the second: Python 3.14's, and asked for softly
        )
        assert allowed, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", COLLECTOR, ids=lambda p: p.name)
def test_the_collector_is_python_3_6(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 6))


# The doors in the wall: process.py, the bootstrap that starts the collector, and the version.
DOORS = {
    "collection.py": {"envcheck.collector.process", "envcheck.collector.child.BOOTSTRAP"},
    "__init__.py": {"envcheck.collector.version.VERSION"},
}


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_core_reaches_the_collector_through_its_doors_only(path: Path) -> None:
    doors = DOORS.get(path.name, set())
    reached = {name for name in imports(path) if inside(name, "envcheck.collector")}
    assert reached <= doors, f"{path.name} imports {reached - doors}"


@pytest.mark.parametrize("path", [*CORE, *COLLECTOR], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_one_module_starts_processes(path: Path) -> None:
    if path == PACKAGE / "collector" / "process.py":
        return
    text = path.read_text()
    assert not {"subprocess", "multiprocessing", "pty"} & {
        n.partition(".")[0] for n in imports(path)
    }
    assert not any(
        word in text for word in ("os.system(", "os.popen(", "os.spawn", "os.posix_spawn")
    )


CHECKS = sorted((PACKAGE / "checks").glob("*.py"))


@pytest.mark.parametrize("path", CHECKS, ids=lambda p: p.name)
def test_a_check_reads_no_file_and_no_clock(path: Path) -> None:
    tops = {name.partition(".")[0] for name in imports(path)}
    assert not tops & {
        "os",
        "io",
        "pathlib",
        "time",
        "datetime",
        "socket",
        "shutil",
        "tempfile",
        "glob",
    }
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert "open" not in called


def test_install_is_never_imported_under_its_second_name() -> None:
    import envcheck.install.last

    assert "install" not in sys.modules
    assert Path(envcheck.install.last.__file__).name == "last.py"
    for path in [*CORE, *REPOSITORY.glob("tests/**/*.py")]:
        tops = {name.partition(".")[0] for name in imports(path)} if path in CORE else set()
        assert "install" not in tops


def test_importing_the_command_line_imports_nothing_heavy() -> None:
    """rich, msgspec and the checks are imported by the commands that need them."""
    names = set(imports(PACKAGE / "cli" / "main.py")) | set(imports(PACKAGE / "__main__.py"))
    top_level = {
        name
        for node in ast.parse((PACKAGE / "cli" / "main.py").read_text()).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in [getattr(node, "module", None) or node.names[0].name]
    }
    assert names
    assert not top_level & {"rich", "msgspec", "rich_argparse", "shtab", "packaging"}

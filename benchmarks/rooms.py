"""The rooms of the house as the code draws them: levels of imports, pairs, circles, lines.

    .venv/bin/python benchmarks/rooms.py [--files -- install --mode wheel ...]

A room is a package in envcheck/ or install/, or a file that stands there alone. Every import counts: at
the top of a file, inside a function, and under TYPE_CHECKING, since who reads a type has to go there too.
The collector is left out: its own wall keeps it apart. --files runs an envcheck command and counts the
files of envcheck that its process has loaded.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PLACES = (("envcheck", REPOSITORY / "envcheck"), ("envcheck.install", REPOSITORY / "install"))

Arrows = dict[str, set[str]]

COUNT = """\
import atexit, os, sys
from envcheck.__main__ import main

def count(started=os.getpid()):
    files = {getattr(m, "__file__", None) for n, m in sys.modules.items() if n.startswith("envcheck")}
    if os.getpid() == started:
        print(f"\\n{len(files - {None})} files of envcheck were loaded", file=sys.stderr)

atexit.register(count)
sys.exit(main())
"""


def modules() -> dict[str, Path]:
    """Every module outside the collector, by its dotted name."""
    found = {}
    for package, folder in PLACES:
        for path in folder.rglob("*.py"):  # does not follow the link envcheck/install
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join([package, *(part for part in parts if part != "__init__")])
            if not name.startswith(("envcheck.collector", "envcheck.install.install")):
                found[name] = path
    return found


def module_arrows(files: Mapping[str, Path]) -> Arrows:
    """Which modules each module imports."""
    return {name: set(_imported(name, path, files)) - {name} for name, path in files.items()}


def _imported(name: str, path: Path, files: Mapping[str, Path]) -> Iterable[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            for alias in node.names:
                named = f"{base}.{alias.name}"
                yield from (
                    module for module in ((named if named in files else base),) if module in files
                )


def room(module: str) -> str:
    """`envcheck.install.wheels.lock` → `install/wheels`; `envcheck.snapshot` → `snapshot`."""
    parts = module.removeprefix("envcheck").strip(".").split(".")
    if parts[0] == "install":
        return "/".join(parts[:2])
    return parts[0] or "envcheck"


def room_arrows(arrows: Arrows) -> Arrows:
    """Which rooms each room imports."""
    rooms: Arrows = {}
    for module, imported in arrows.items():
        rooms.setdefault(room(module), set()).update(room(name) for name in imported)
    return {name: imported - {name} for name, imported in rooms.items()}


def pairs(arrows: Arrows) -> set[tuple[str, str]]:
    """Those that import each other."""
    return {(a, b) for a, below in arrows.items() for b in below if a < b and a in arrows[b]}


def circles(arrows: Arrows) -> list[set[str]]:
    """Largest groups in which each reaches each (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        open_.append(name)
        for below in sorted(arrows[name]):
            if below not in order:
                visit(below)
            if below in open_:
                lowest[name] = min(lowest[name], lowest[below])
        if lowest[name] == order[name]:
            at = open_.index(name)
            if len(open_) - at > 1:
                found.append(set(open_[at:]))
            del open_[at:]

    for name in sorted(arrows):
        if name not in order:
            visit(name)
    return found


def levels(arrows: Arrows) -> list[str]:
    """A longest chain of imports, from the top down; a circle counts as one."""
    one = {name: name for name in arrows}
    for circle in circles(arrows):
        one |= dict.fromkeys(circle, min(circle))
    joined: Arrows = {}
    for name, below in arrows.items():
        joined.setdefault(one[name], set()).update(one[b] for b in below if one[b] != one[name])
    chains: dict[str, list[str]] = {}
    try:
        for name in TopologicalSorter(joined).static_order():
            chains[name] = [name, *max((chains[b] for b in joined[name]), key=len, default=[])]
    except CycleError as error:  # circles() has missed one
        raise AssertionError(error.args[1]) from error
    return max(chains.values(), key=len)


def _report() -> None:
    files = modules()
    arrows = module_arrows(files)
    rooms = room_arrows(arrows)
    lines: dict[str, list[int]] = {}
    for name, path in files.items():
        lines.setdefault(room(name), []).append(len(path.read_text(encoding="utf-8").splitlines()))
    chain = levels(arrows)
    print(
        f"{len(chain)} levels of imports: {' > '.join(n.removeprefix('envcheck.') for n in chain)}"
    )
    print(
        f"{len(pairs(rooms))} pairs of rooms: {', '.join(' <> '.join(p) for p in sorted(pairs(rooms)))}"
    )
    for what, drawn in (("rooms", rooms), ("modules", arrows)):
        print(f"{len(circles(drawn))} circles of {what}:")
        for circle in circles(drawn):
            print("   ", ", ".join(sorted(circle)))
    for name, sizes in sorted(lines.items()):
        print(f"{sum(sizes):7,} lines {len(sizes):4} files  {name}")
    installer = [
        size for name, sizes in lines.items() if name.startswith("install") for size in sizes
    ]
    print(f"{sum(installer):7,} lines {len(installer):4} files  install in all")
    print(f"{sum(map(sum, lines.values())):7,} lines {len(files):4} files  all but the collector")


def _main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--files", action="store_true", help="run a command, count the files loaded"
    )
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    if options.files:
        return subprocess.run(
            [sys.executable, "-c", COUNT, *options.command], check=False
        ).returncode
    _report()
    return 0


if __name__ == "__main__":
    sys.exit(_main())

"""What the plan of an environment says beyond every plan: Python, installer, packages."""

from __future__ import annotations

from collections.abc import Iterator

from ...reports.page import KEY, Page
from ..plan.models import PlannedPackage, WheelPlan
from .amounts import size

_LARGEST = 5  # packages that a short plan names
_HASH = 8  # characters of a sha256 that tell two files apart
_WIDEST_NAME = 34
_WIDEST_VERSION = 18
_SIZE = 10
_REST = 2 + 6 + _HASH  # of the index's number and the hash
_NARROW_VERSION = 12


def entries(plan: WheelPlan, *, verbose: bool) -> Iterator[tuple[str, str]]:
    """("python", "3.11.7 (/usr/bin/python3.11)"), and so on."""
    here = f"{plan.python} ({plan.interpreter})"
    yield (
        "python",
        here if plan.interpreter else f"{plan.python}, which uv downloads first",
    )
    if verbose or not plan.installer.startswith("uv"):
        yield "with", plan.installer
    for number, (name, how) in enumerate(sorted(plan.provided.items())):
        if verbose:
            yield "" if number else "provided", f"{name}: {how}"


def largest(plan: WheelPlan) -> Iterator[str]:
    """The largest packages, one a line, and how many more there are."""
    shown = plan.packages[:_LARGEST]
    for package in shown:
        about = ", to build with" if package.building else ""
        yield f"{package.name} {package.version} ({_size(package)}{about})"
    if more := len(plan.packages) - len(shown):
        rest = sum(package.size or 0 for package in plan.packages[_LARGEST:])
        yield f"and {more} more, {size(rest)} (-v lists them)"


def packages(page: Page, plan: WheelPlan) -> None:
    """A table that fits, whatever names and versions there are; indexes by number below it.

    A terminal too narrow for it gets names, versions and sizes alone.
    """
    indexes = {
        index: str(n) for n, index in enumerate(dict.fromkeys(p.index for p in plan.packages), 1)
    }
    names = ["name", *(package.name for package in plan.packages)]
    versions = ["version", *(package.version for package in plan.packages)]
    name = min(_WIDEST_NAME, max(map(len, names)) + 2)
    version = min(_WIDEST_VERSION, max(map(len, versions)) + 2)
    narrow = page.columns < 2 + name + version + _SIZE + _REST
    if narrow:
        version = min(version, _NARROW_VERSION)
        name = max(_NARROW_VERSION, min(name, page.columns - 2 - version - _SIZE))

    def row(*cells: str) -> str:
        told, what, how_much = (
            page.cell(cells[0], name - 2),
            page.cell(cells[1], version - 2),
            page.cell(cells[2], _SIZE, right=True),
        )
        rest = "" if narrow else f"  {page.cell(cells[3], 6)}{cells[4]}"
        return f"  {told}  {what}  {how_much}{rest}"

    page.line((f"Packages ({len(plan.packages)}, largest first)", "heading"))
    page.line((row("name", "version", "size", "index", "sha256"), "quiet"))
    for package in plan.packages:
        told = row(
            package.name,
            package.version,
            _size(package),
            indexes[package.index],
            package.sha256[:_HASH] + _mark(package),
        )
        page.line((told, ""))
    for index, number in indexes.items():
        page.entry(f"index {number}", index, KEY)


def unknown_sizes(plan: WheelPlan) -> str:
    """ " (2 files' sizes are not known)"; "" where all are."""
    if not plan.sizes_unknown:
        return ""
    files = (
        "1 file's size is" if plan.sizes_unknown == 1 else f"{plan.sizes_unknown} files' sizes are"
    )
    return f" ({files} not known)"


def _mark(package: PlannedPackage) -> str:
    marks = ["in store"] * package.in_store + ["to build with"] * package.building
    return f"  {', '.join(marks)}" if marks else ""


def _size(package: PlannedPackage) -> str:
    return "not known" if package.size is None else size(package.size)

"""What the plan of an environment says beyond every plan: Python, installer, packages."""

from __future__ import annotations

from collections.abc import Iterator

from ...reports.page import KEY, Column, Page
from ..plan.models import PlannedPackage, WheelPlan
from .amounts import size

_LARGEST = 5  # packages that a short plan names
_HASH = 8  # characters of a sha256 that tell two files apart
_WIDE = 72  # cells, for an index and a hash beside name, version and size


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
    """The largest first; indexes by number below them. A narrow page has names, versions and sizes alone."""
    indexes = {
        index: str(n) for n, index in enumerate(dict.fromkeys(p.index for p in plan.packages), 1)
    }
    columns = [Column("name"), Column("version"), Column("size", right=True)]
    if page.columns >= _WIDE:
        columns += [Column("index"), Column("sha256")]
    rows = [
        (
            package.name,
            package.version,
            _size(package),
            indexes[package.index],
            package.sha256[:_HASH] + _mark(package),
        )
        for package in plan.packages
    ]
    page.line((f"Packages ({len(plan.packages)}, largest first)", "heading"))
    cells = [[(text, "") for text in row[: len(columns)]] for row in rows]
    page.table(columns, cells, indent=2, gap=2, headings="quiet")
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

"""The plan of an installation, for people: what, where and why, what it costs, and its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...reports.page import KEY, Column, Page
from ...reports.plain import number_of
from ..plan.models import AnyPlan, DiskNeed, ImagePlan, PlannedPackage, WheelPlan
from ..progress import duration
from ..pythons.interpreter import listed as words
from . import steps
from .amounts import size

_MIB = 1024 * 1024
_REASONS = 2  # that a short plan names
_LARGEST = 5  # packages that it names
_HASH = 8  # characters of a sha256 that tell two files apart
_WIDE = 72  # cells, for an index and a hash beside name, version and size


def render(plan: AnyPlan, *, alone: bool = True, verbose: bool = False, **style: Any) -> str:
    """The plan as text; style: of the Page.

    Short, it leaves a question below it on a screen of 24 lines. verbose: with every package, the index and
    hash of its file, and each step in a sentence. alone: nothing will be done (`--plan`), and the text ends
    with how to have it done.
    """
    page = Page(**style)
    page.paragraph((f"Plan: {plan.called}", "heading"), hanging=2)
    page.entry("what", plan.title, KEY)
    page.entries("why", plan.reasons if verbose else _first(plan.reasons), KEY)
    page.entry("where", f"{plan.directory}/{plan.version}", KEY)
    if isinstance(plan, WheelPlan):
        _environment(page, plan, verbose)
    else:
        _image(page, plan, verbose)
    _costs(page, plan, verbose)
    if verbose:
        _verbose(page, plan)
    else:
        page.entry("steps", ", ".join(what for _, what in steps.of(plan)), KEY)
    if alone:
        page.blank()
        said = ", which keeps what the indexes said" if isinstance(plan, WheelPlan) else ""
        page.paragraph(
            ("Nothing was touched", "pass"),
            (f"but envcheck's cache{said}. Run without --plan to install.", ""),
        )
    return page.text()


def _first(reasons: list[str]) -> Iterator[str]:
    """Why it is this one; and one reason why it is no other."""
    yield from reasons[:_REASONS]
    if (more := len(reasons) - _REASONS) > 0:
        yield f"and {number_of(more, 'more reason')} (-v shows all)"


def _environment(page: Page, plan: WheelPlan, verbose: bool) -> None:
    """Python, installer and packages."""
    where = f" ({plan.interpreter})" if plan.interpreter else ", which uv downloads first"
    page.entry("python", plan.python + where, KEY)
    if verbose or not plan.installer.startswith("uv"):
        page.entry("with", plan.installer, KEY)
    if verbose:
        page.entries("provided", [f"{k}: {how}" for k, how in sorted(plan.provided.items())], KEY)
    page.entries("note", plan.notes, KEY)
    if not verbose:
        page.entries("packages", _largest(plan.packages), KEY)


def _largest(packages: list[PlannedPackage]) -> Iterator[str]:
    """The largest packages, one a line, and how many more there are."""
    for package in packages[:_LARGEST]:
        about = ", to build with" if package.building else ""
        yield f"{package.name} {package.version} ({_size(package)}{about})"
    if rest := packages[_LARGEST:]:
        total = sum(package.size or 0 for package in rest)
        yield f"and {len(rest)} more, {size(total)} (-v lists them)"


def _image(page: Page, plan: ImagePlan, verbose: bool) -> None:
    """The image, its engine, the way to the GPUs. A digest stands whole: it is what one pastes."""
    page.entry("image", plan.reference, KEY)
    page.entry("pinned", plan.pinned, KEY)
    if verbose and plan.digest != plan.manifest:
        page.entry("", f"of the index {plan.digest}", KEY)
    if plan.contents:
        holds = ", ".join(f"{k} {v or 'not known'}" for k, v in plan.contents.items())
        page.entry("holds", holds, KEY)
    page.entry("engine", plan.engine, KEY)
    page.entry("GPUs", plan.wiring or "none is wired", KEY)
    estimated = ": no manifest says it" if verbose else ""
    unpacked = f"about {size(plan.unpacked_bytes)} unpacked (estimated{estimated})"
    layers = number_of(plan.layers, "layer")
    page.entry("size", f"{size(plan.compressed_bytes)} in {layers}, {unpacked}", KEY)
    if verbose or plan.user not in ("", "root"):
        page.entry("user", plan.user or "root", KEY)
    page.entries("note", plan.notes, KEY)


def _costs(page: Page, plan: AnyPlan, verbose: bool) -> None:
    """What is downloaded, in which time, and what it takes of each disk."""
    unknown = ""
    if isinstance(plan, WheelPlan) and plan.sizes_unknown:
        one = plan.sizes_unknown == 1
        unknown = " (1 file's size is" if one else f" ({plan.sizes_unknown} files' sizes are"
        unknown += " not known)"
    there = f"; {size(plan.in_store_bytes)} are here already" if plan.in_store_bytes else ""
    takes = ""
    if plan.seconds is not None:
        rate = f" at {size(plan.rate)}/s ({plan.rate_from})" if plan.download_bytes else ""
        takes = f"; all of it takes about {duration(plan.seconds)}{rate}"
    verb = steps.fetching(plan)
    key = "download" if verb == "fetch" else verb
    page.entry(key, f"{size(plan.download_bytes)}{unknown}{there}{takes}", KEY)
    page.entries("disk", [_disk_need(need, verbose) for need in plan.disk_needs], KEY)


def _disk_need(need: DiskNeed, verbose: bool) -> str:
    free = "free: not known" if need.free_mib is None else f"{size(need.free_mib * _MIB)} free"
    about = "about " if need.estimated else ""
    needed = f"{about}{size(need.needed_mib * _MIB)} at {need.path}"
    what = f", for {words(need.what)}" if need.what and verbose else ""
    return f"{needed}{what}; {free}"


def _verbose(page: Page, plan: AnyPlan) -> None:
    page.blank()
    page.line(("Steps", "heading"))
    for number, step in enumerate(plan.steps, 1):
        page.paragraph((f"{number}", "code"), (step.sentence, ""), indent=2, hanging=4)
    if isinstance(plan, WheelPlan):
        page.blank()
        _packages(page, plan.packages)


def _packages(page: Page, packages: list[PlannedPackage]) -> None:
    """The largest first; indexes by number below them. A narrow page has names, versions and sizes alone."""
    indexes = list(dict.fromkeys(package.index for package in packages))
    columns = [Column("name"), Column("version"), Column("size", right=True)]
    if page.columns >= _WIDE:
        columns += [Column("index"), Column("sha256")]
    rows = [
        [
            (package.name, ""),
            (package.version, ""),
            (_size(package), ""),
            (f"{indexes.index(package.index) + 1}", ""),
            (package.sha256[:_HASH] + _mark(package), ""),
        ][: len(columns)]
        for package in packages
    ]
    page.line((f"Packages ({len(packages)}, largest first)", "heading"))
    page.table(columns, rows, indent=2, gap=2, headings="quiet")
    for number, index in enumerate(indexes, 1):
        page.entry(f"index {number}", index, KEY)


def _mark(package: PlannedPackage) -> str:
    marks = ["in store"] * package.in_store + ["to build with"] * package.building
    return f"  {', '.join(marks)}" if marks else ""


def _size(package: PlannedPackage) -> str:
    return "not known" if package.size is None else size(package.size)

"""The plan of an installation, for people: what, where and why, what it costs, and its steps."""

from __future__ import annotations

from typing import Any

from ...reports.page import KEY, Page
from ...reports.plain import number_of
from ..plan.models import AnyPlan, DiskNeed, ImagePlan, PlannedPackage, WheelPlan
from ..progress import size
from ..pythons.interpreter import listed

_MIB = 1024 * 1024
_REASONS = 2  # that a short plan names
_LARGEST = 5  # packages that it names


def render(plan: AnyPlan, *, alone: bool = True, verbose: bool = False, **style: Any) -> str:
    """The plan as text; style: of the Page.

    Short, it leaves a question below it on a screen of 24 lines. verbose: with every package. alone: nothing
    will be done (`--plan`), and the text ends with how to have it done.
    """
    page = Page(**style)
    page.paragraph((f"Plan: {plan.called}", "heading"), hanging=2)
    page.entry("what", plan.title, KEY)
    more = len(plan.reasons) - _REASONS
    reasons = plan.reasons if verbose or more <= 0 else plan.reasons[:_REASONS]
    page.entries("why", reasons, KEY)
    if reasons != plan.reasons:
        page.entry("", f"and {number_of(more, 'more reason')} (-v shows all)", KEY)
    page.entry("where", f"{plan.directory}/{plan.version}", KEY)
    if isinstance(plan, WheelPlan):
        _environment(page, plan, verbose)
    else:
        _image(page, plan)
    _costs(page, plan)
    page.entry("steps", ", ".join(step.sentence for step in plan.steps), KEY)
    if alone:
        page.blank()
        kept = ", which keeps what the indexes answered" if isinstance(plan, WheelPlan) else ""
        page.paragraph(
            ("Nothing was touched", "pass"),
            (f"but envcheck's cache{kept}. Run without --plan to install.", ""),
        )
    return page.text()


def _environment(page: Page, plan: WheelPlan, verbose: bool) -> None:
    """Python, installer and packages."""
    where = f" ({plan.interpreter})" if plan.interpreter else ", which uv downloads first"
    page.entry("python", plan.python + where, KEY)
    if verbose:
        page.entry("with", plan.installer, KEY)
    if verbose:
        page.entries("provided", [f"{k}: {how}" for k, how in sorted(plan.provided.items())], KEY)
    page.entries("note", plan.notes, KEY)
    shown = plan.packages if verbose else plan.packages[:_LARGEST]
    lines = [f"{one.name} {one.version} ({_size(one)})" for one in shown]
    if rest := plan.packages[len(shown) :]:
        total = sum(package.size or 0 for package in rest)
        lines.append(f"and {len(rest)} more, {size(total)} (-v lists them)")
    page.entries("packages", lines, KEY)
    if verbose:
        page.entries("index", list(dict.fromkeys(package.index for package in shown)), KEY)


def _image(page: Page, plan: ImagePlan) -> None:
    """The image, its engine, the way to the GPUs. A digest stands whole: it is what one pastes."""
    page.entry("image", plan.reference, KEY)
    page.entry("pinned", plan.pinned, KEY)
    if plan.contents:
        holds = ", ".join(f"{k} {v or 'not known'}" for k, v in plan.contents.items())
        page.entry("holds", holds, KEY)
    page.entry("engine", plan.engine, KEY)
    page.entry("GPUs", plan.wiring or "none is wired", KEY)
    if plan.layers:
        layers = f"{size(plan.compressed_bytes)} in {number_of(plan.layers, 'layer')}"
        page.entry("size", f"{layers}, about {size(plan.unpacked_bytes)} unpacked (estimated)", KEY)
    if plan.user not in ("", "root"):
        page.entry("user", plan.user, KEY)
    page.entries("note", plan.notes, KEY)


def _costs(page: Page, plan: AnyPlan) -> None:
    """What is downloaded, and what it takes of each disk."""
    unknown = ""
    if isinstance(plan, WheelPlan) and plan.sizes_unknown:
        unknown = f" (the size of {number_of(plan.sizes_unknown, 'file')} is not known)"
    there = f"; {size(plan.in_store_bytes)} are here already" if plan.in_store_bytes else ""
    copied = any(step.sentence.startswith("copy") for step in plan.steps)
    key = "copy" if copied else "download"
    page.entry(key, f"{size(plan.download_bytes)}{unknown}{there}", KEY)
    page.entries("disk", [_disk_need(need) for need in plan.disk_needs], KEY)


def _disk_need(need: DiskNeed) -> str:
    free = "free: not known" if need.free_mib is None else f"{size(need.free_mib * _MIB)} free"
    about = "about " if need.estimated else ""
    what = f", for {listed(need.what)}" if need.what else ""
    return f"{about}{size(need.needed_mib * _MIB)} at {need.path}{what}; {free}"


def _size(package: PlannedPackage) -> str:
    return "not known" if package.size is None else size(package.size)

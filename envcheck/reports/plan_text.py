"""The plan of an installation, for people: what and why, where, steps, packages, totals."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ..install.plan.plan import AnyPlan, Room, WheelPlan
from ..install.pythons.versions import listed as words
from . import plan_image_text, plan_wheel_text
from .amounts import duration, size
from .page import KEY, Page

MIB = 1024 * 1024


def render(
    plan: AnyPlan, *, width: int = 80, colour: bool = False, utf8: bool = True, alone: bool = True
) -> str:
    """The plan as text for a terminal of that many columns, or for a pipe.

    alone: nothing will be done (`--plan`), and the text ends with how to have it done.
    """
    page = Page(width=width, colour=colour, utf8=utf8)
    _heading(page, plan)
    page.blank()
    page.line(("Steps", "heading"))
    for number, step in enumerate(plan.steps, 1):
        page.paragraph((f"{number}", "code"), (step.sentence, ""), indent=2, hanging=4)
    page.blank()
    if isinstance(plan, WheelPlan):
        plan_wheel_text.packages(page, plan)
        page.blank()
    for key, text in totals(plan):
        page.entry(key, text, KEY)
    if alone:
        page.blank()
        said = ", which keeps what the indexes said" if isinstance(plan, WheelPlan) else ""
        page.paragraph(
            ("Nothing was touched", "pass"),
            (f"but envcheck's cache{said}. Without --plan it is done.", ""),
        )
    return page.text()


def _heading(page: Page, plan: AnyPlan) -> None:
    page.paragraph((f"Plan: {plan.called}", "heading"), hanging=2)
    page.entry("what", plan.title, KEY)
    for number, reason in enumerate(plan.reasons):
        page.entry("" if number else "why", reason, KEY)
    page.entry("where", f"{plan.directory}/{plan.version}", KEY)
    own = (
        plan_wheel_text.entries(plan)
        if isinstance(plan, WheelPlan)
        else plan_image_text.entries(plan)
    )
    for key, text in own:
        page.entry(key, text, KEY)
    for number, note in enumerate(plan.notes):
        page.entry("" if number else "note", note, KEY)


def totals(plan: AnyPlan) -> Iterator[tuple[str, str]]:
    """("to fetch", "264 MiB"), and so on: what it costs."""
    unknown = plan_wheel_text.unknown_sizes(plan) if isinstance(plan, WheelPlan) else ""
    yield "to fetch", size(plan.download_bytes) + unknown
    yield "in store", size(plan.in_store_bytes)
    for number, room in enumerate(plan.rooms):
        yield ("" if number else "disk"), _room(room)
    if plan.seconds is not None:
        rate = f"{size(plan.rate)}/s ({plan.rate_from})"
        yield "takes", f"about {duration(plan.seconds)} at {rate}"


def _room(room: Room) -> str:
    free = "free: not known" if room.free_mib is None else f"{size(room.free_mib * MIB)} are free"
    about = "about " if room.estimated else ""
    needed = f"{about}{size(room.needed_mib * MIB)} at {room.path}"
    return f"{needed}, for {words(room.what)}; {free}" if room.what else f"{needed}; {free}"


def activation(prefix: str) -> str:
    """The command that activates an environment, to paste."""
    return f". {shlex.quote(prefix + '/bin/activate')}"

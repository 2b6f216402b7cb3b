"""The plan of an installation, for people: what, where and why, what it costs, and its steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from ...reports.page import KEY, Page
from ..plan.models import AnyPlan, Room, WheelPlan
from ..pythons.interpreter import listed as words
from . import plan_image_text, plan_wheel_text, steps
from .amounts import duration, size

MIB = 1024 * 1024
_REASONS = 2  # that a short plan names


def render(
    plan: AnyPlan,
    *,
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
    alone: bool = True,
    verbose: bool = False,
) -> str:
    """The plan as text for a terminal of that many columns, or for a pipe.

    Short, it leaves a question below it on a screen of 24 lines. verbose: with every package, the index and
    hash of its file, and each step in a sentence. alone: nothing will be done (`--plan`), and the text ends
    with how to have it done.
    """
    page = Page(width=width, colour=colour, utf8=utf8)
    page.paragraph((f"Plan: {plan.called}", "heading"), hanging=2)
    _list(page, "what", [plan.title])
    _list(page, "why", plan.reasons if verbose else _first(plan.reasons))
    _list(page, "where", [f"{plan.directory}/{plan.version}"])
    own = plan_wheel_text if isinstance(plan, WheelPlan) else plan_image_text
    for key, text in own.entries(plan, verbose=verbose):
        page.entry(key, text, KEY)
    _list(page, "note", plan.notes)
    if isinstance(plan, WheelPlan) and not verbose:
        _list(page, "packages", plan_wheel_text.largest(plan))
    for key, text in _costs(plan, verbose):
        page.entry(key, text, KEY)
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


def _list(page: Page, key: str, texts: Iterable[str]) -> None:
    for number, text in enumerate(texts):
        page.entry("" if number else key, text, KEY)


def _verbose(page: Page, plan: AnyPlan) -> None:
    page.blank()
    page.line(("Steps", "heading"))
    for number, step in enumerate(plan.steps, 1):
        page.paragraph((f"{number}", "code"), (step.sentence, ""), indent=2, hanging=4)
    if isinstance(plan, WheelPlan):
        page.blank()
        plan_wheel_text.packages(page, plan)


def _first(reasons: list[str]) -> Iterator[str]:
    """Why it is this one; and one reason why it is no other."""
    yield from reasons[:_REASONS]
    if (more := len(reasons) - _REASONS) > 0:
        yield f"and {more} more reason{'' if more == 1 else 's'} (-v shows all)"


def _costs(plan: AnyPlan, verbose: bool) -> Iterator[tuple[str, str]]:
    """("download", "264 MiB, …"), ("disk", …)."""
    unknown = plan_wheel_text.unknown_sizes(plan) if isinstance(plan, WheelPlan) else ""
    there = f"; {size(plan.in_store_bytes)} are here already" if plan.in_store_bytes else ""
    takes = ""
    if plan.seconds is not None:
        rate = f" at {size(plan.rate)}/s ({plan.rate_from})" if plan.download_bytes else ""
        takes = f"; all of it takes about {duration(plan.seconds)}{rate}"
    verb = steps.fetching(plan)
    yield (
        "download" if verb == "fetch" else verb,
        f"{size(plan.download_bytes)}{unknown}{there}{takes}",
    )
    for number, room in enumerate(plan.rooms):
        yield ("" if number else "disk"), _room(room, verbose)


def _room(room: Room, verbose: bool) -> str:
    free = "free: not known" if room.free_mib is None else f"{size(room.free_mib * MIB)} free"
    about = "about " if room.estimated else ""
    needed = f"{about}{size(room.needed_mib * MIB)} at {room.path}"
    what = f", for {words(room.what)}" if room.what and verbose else ""
    return f"{needed}{what}; {free}"


def activation(prefix: str) -> str:
    """The command that activates an environment, to paste."""
    return f". {shlex.quote(prefix + '/bin/activate')}"

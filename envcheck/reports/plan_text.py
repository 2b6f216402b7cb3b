"""The plan of an installation, for people: what and why, where, steps, packages, totals."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from urllib.parse import urlsplit

from ..install.plan.plan import Plan, PlannedPackage, Room
from ..install.pythons.versions import listed as words
from .page import Page

MIB = 1024 * 1024
_KEY = 12  # cells of the first column
_HASH = 8  # characters of a sha256 that tell two files apart
_WIDEST_NAME = 34
_WIDEST_VERSION = 18
_SIZE = 10
_REST = 2 + 6 + _HASH  # of the index's number and the hash
_NARROW_VERSION = 12


def render(
    plan: Plan, *, width: int = 80, colour: bool = False, utf8: bool = True, alone: bool = True
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
    _packages(page, plan)
    page.blank()
    for key, text in totals(plan):
        page.entry(key, text, _KEY)
    if alone:
        page.blank()
        page.paragraph(
            ("Nothing was touched", "pass"),
            (
                "but envcheck's cache, which keeps what the indexes said. Without --plan it is done.",
                "",
            ),
        )
    return page.text()


def _heading(page: Page, plan: Plan) -> None:
    page.paragraph((f"Plan: {plan.stack} {plan.release}", "heading"), hanging=2)
    page.entry("what", plan.title, _KEY)
    for number, reason in enumerate(plan.reasons):
        page.entry("" if number else "why", reason, _KEY)
    page.entry("where", f"{plan.directory}/{plan.version}", _KEY)
    page.entry("python", _python(plan), _KEY)
    page.entry("with", plan.installer, _KEY)
    for number, (name, how) in enumerate(sorted(plan.provided.items())):
        page.entry("" if number else "provided", f"{name}: {how}", _KEY)
    for number, note in enumerate(plan.notes):
        page.entry("" if number else "note", note, _KEY)


def _python(plan: Plan) -> str:
    if not plan.interpreter:
        return f"{plan.python}, which is not here yet and is got first"
    return f"{plan.python} ({plan.interpreter})"


def _packages(page: Page, plan: Plan) -> None:
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
        page.entry(f"index {number}", index, _KEY)


def _mark(package: PlannedPackage) -> str:
    marks = ["in store"] * package.in_store + ["to build with"] * package.building
    return f"  {', '.join(marks)}" if marks else ""


def _size(package: PlannedPackage) -> str:
    return "not known" if package.size is None else size(package.size)


def size(count: float) -> str:
    """Bytes as people say them: "3.1 GiB", "412 MiB", "9.4 MiB", "87 KiB"."""
    if count >= 1024 * MIB:
        return f"{count / 1024 / MIB:.1f} GiB"
    if count >= MIB:
        return f"{count / MIB:.0f} MiB" if count >= 100 * MIB else f"{count / MIB:.1f} MiB"
    return f"{max(1, round(count / 1024)) if count else 0} KiB"


def totals(plan: Plan) -> Iterator[tuple[str, str]]:
    """("to fetch", "264 MiB"), and so on: what it costs."""
    files = (
        "1 file's size is" if plan.sizes_unknown == 1 else f"{plan.sizes_unknown} files' sizes are"
    )
    unknown = f" ({files} not known)" if plan.sizes_unknown else ""
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


def duration(seconds: float) -> str:
    """ "40 s", "12 min", "1 h 5 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def host(url: str) -> str:
    """An index's host, by which people know it."""
    return urlsplit(url).hostname or url


def activation(prefix: str) -> str:
    """The command that activates an environment, to paste."""
    return f". {shlex.quote(prefix + '/bin/activate')}"

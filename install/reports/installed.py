"""What is said when an installation is done: what is there, how to use it, what comes next."""

from __future__ import annotations

from collections.abc import Iterator

from ...invocation import in_place
from ...reports.page import Page
from ..catalogue.containers import OWN
from ..transaction.record import Installed
from .plan_json import InstalledEnvironment
from .plan_text import activation

_KEY = 12
_STARTS = ("envcheck run python3", "envcheck shell")  # which any image with a Python has


def environment_of(installed: Installed, provided: dict[str, str]) -> InstalledEnvironment:
    """What the transaction has come to, as it is told."""
    record = installed.record
    kept = installed.before if installed.before != installed.version else ""
    return InstalledEnvironment(
        directory=installed.directory,
        prefix=installed.prefix,
        version=installed.version,
        stack=record.stack,
        release=record.release,
        title=record.title,
        python=record.python,
        provided=provided,
        packages=len(record.versions),
        verdict=record.health.verdict,
        failing=record.health.failing,
        unproven=record.health.unproven,
        kept=[kept] if kept else [],
        notes=installed.notes,
        drifted=installed.drifted,
        mode=record.mode,
        engine=record.engine,
        image=record.image,
        digest=record.image_digest,
        wiring=record.wiring,
    )


def render(
    environment: InstalledEnvironment,
    *,
    already: bool = False,
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
) -> str:
    """The last words, for a terminal of that many columns, or for a pipe.

    already: nothing was done, because an equal request is installed.
    """
    page = Page(width=width, colour=colour, utf8=utf8)
    said = "Already installed, nothing to do:" if already else "Installed and verified:"
    called = f"{environment.stack} {environment.release}"
    if environment.stack == OWN:
        called = environment.image  # its release is a tag that says nothing without the name
    page.paragraph((said, "pass"), (called, "heading"), hanging=2)
    page.entry("what", environment.title, _KEY)
    page.entry("where", f"{environment.prefix} -> {environment.version}", _KEY)
    for key, text in _contents(environment):
        page.entry(key, text, _KEY)
    for number, (name, how) in enumerate(sorted(environment.provided.items())):
        page.entry("" if number else "provided", f"{name}: {how}", _KEY)
    for number, sentence in enumerate(_doctor(environment)):
        page.entry("" if number else "doctor", sentence, _KEY)
    for number, note in enumerate(environment.notes):
        page.entry("" if number else "note", note, _KEY)
    if environment.kept:
        page.entry(
            "kept",
            f"{', '.join(environment.kept)} ({in_place('envcheck rollback')} goes back to it)",
            _KEY,
        )
    page.blank()
    container = environment.mode == "container"
    page.paragraph(("Use it, and check it:", ""))
    for command in _STARTS if container else [activation(environment.prefix)]:
        page.command(in_place(command))
    page.command(in_place("envcheck doctor"))
    if already:
        page.paragraph(("--upgrade looks for newer versions.", "quiet"))
        if environment.drifted:
            page.paragraph(("--fresh installs again what was locked.", "quiet"))
    return page.text()


def _contents(environment: InstalledEnvironment) -> Iterator[tuple[str, str]]:
    """What is in it: a Python and packages, or an image and what it is started by."""
    packages = f", {environment.packages} packages" if environment.packages else ""
    if environment.python:
        yield "python", environment.python + packages
    if environment.mode == "container":
        yield "image", environment.image
        yield "digest", environment.digest
        yield "engine", environment.engine
        yield "GPUs", environment.wiring or "none"


def _doctor(environment: InstalledEnvironment) -> Iterator[str]:
    """The verdict on the environment: the machine's own problems are no news."""
    if not environment.failing:
        yield environment.verdict
    else:
        yield f"No new problems ({', '.join(environment.failing)} failed before, too)."
    if environment.unproven:
        yield f"not proven without a GPU: {', '.join(environment.unproven)}"

"""What `envcheck install` answers when it is done: the last words for people, and one envelope as JSON."""

from __future__ import annotations

import shlex
from typing import Any, Literal

import msgspec

from ...invocation import in_place
from ...reports.page import KEY, Page
from ..catalogue.containers import OWN
from ..plan.models import AnyPlan
from ..transaction.record import Installed

_STARTS = ("envcheck run python3", "envcheck shell")  # which any image with a Python has

Result = Literal["installed", "planned", "already", "refused", "failed"]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    sentence: str
    hint: str = ""


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Every run's answer with --format json has all of these keys, whether it went well or not."""

    result: Result
    exit_code: int
    error: Failure | None = None
    plan: AnyPlan | None = None
    environment: Installed | None = None  # what is there now


def render(installed: Installed, *, already: bool = False, **style: Any) -> str:
    """The last words; style: of the Page. already: nothing was done."""
    page, record = Page(**style), installed.record
    result = "Already installed, nothing to do:" if already else "Installed and verified:"
    called = f"{record.stack} {record.release}"
    if record.stack == OWN:
        called = record.image  # its release is a tag that says nothing without the name
    page.paragraph((result, "pass"), (called, "heading"), hanging=2)
    page.entry("what", record.title, KEY)
    page.entry("where", f"{installed.prefix} -> {installed.version}", KEY)
    packages = f", {len(record.versions)} packages" if record.versions else ""
    if record.python:
        page.entry("python", record.python + packages, KEY)
    container = record.mode == "container"
    if container:
        page.entry("image", record.image, KEY)
        page.entry("digest", record.image_digest, KEY)
        page.entry("engine", record.engine, KEY)
        page.entry("GPUs", record.wiring or "none", KEY)
    provided = sorted(installed.provided.items())
    page.entries("provided", [f"{name}: {how}" for name, how in provided], KEY)
    health = record.health
    verdict = health.verdict
    if health.failing:
        verdict = f"No new problems ({', '.join(health.failing)} failed before, too)."
    unproven = ", ".join(health.unproven)
    proofs = [f"not proven without a GPU: {unproven}"] if unproven else []
    page.entries("doctor", [verdict, *proofs], KEY)
    page.entries("note", installed.notes, KEY)
    if installed.before not in ("", installed.version):
        back = in_place("envcheck rollback")
        page.entry("kept", f"{installed.before} ({back} goes back to it)", KEY)
    page.blank()
    page.paragraph(("Use it, and check it:", ""))
    for command in _STARTS if container else [activation(installed.prefix)]:
        page.command(in_place(command))
    page.command(in_place("envcheck doctor"))
    if already:
        page.paragraph(("--upgrade looks for newer versions.", "quiet"))
        if installed.drifted:
            page.paragraph(("--fresh installs again what was locked.", "quiet"))
    return page.text()


def activation(prefix: str) -> str:
    """The command that activates an environment, to paste."""
    return f". {shlex.quote(prefix + '/bin/activate')}"

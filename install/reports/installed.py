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


class InstalledEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What is there now."""

    directory: str  # holds the versions
    prefix: str  # the link that always leads to the version in use: what to activate
    version: str
    stack: str
    release: str
    title: str
    python: str
    provided: dict[str, str] = {}
    packages: int = 0
    verdict: str  # the doctor's
    failing: list[str] = []  # checks that failed on this machine before, and still do
    unproven: list[str] = []  # checks that must pass, and could not run for want of a GPU
    kept: list[str] = []  # older versions, which rollback can go back to
    notes: list[str] = []
    mode: Literal["wheel", "container"] = "wheel"
    engine: str = ""  # "podman"; of a container alone, as the next three
    image: str = ""  # "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    digest: str = ""  # of its manifest, "sha256:…": what was pulled
    wiring: str = ""  # how the GPUs get in
    drifted: bool = False  # packages of the lock were changed or removed since


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Every run's answer with --format json has all of these keys, whether it went well or not."""

    result: Result
    exit_code: int
    error: Failure | None = None
    plan: AnyPlan | None = None
    environment: InstalledEnvironment | None = None


def environment_of(installed: Installed, provided: dict[str, str]) -> InstalledEnvironment:
    record = installed.record
    kept = installed.before if installed.before != installed.version else ""
    same = ("stack", "release", "title", "python", "mode", "engine", "image", "wiring")
    return InstalledEnvironment(
        **{name: getattr(record, name) for name in same},
        directory=installed.directory,
        prefix=installed.prefix,
        version=installed.version,
        provided=provided,
        packages=len(record.versions),
        verdict=record.health.verdict,
        failing=record.health.failing,
        unproven=record.health.unproven,
        kept=[kept] if kept else [],
        notes=installed.notes,
        drifted=installed.drifted,
        digest=record.image_digest,
    )


def render(environment: InstalledEnvironment, *, already: bool = False, **style: Any) -> str:
    """The last words; style: of the Page. already: nothing was done."""
    page = Page(**style)
    result = "Already installed, nothing to do:" if already else "Installed and verified:"
    called = f"{environment.stack} {environment.release}"
    if environment.stack == OWN:
        called = environment.image  # its release is a tag that says nothing without the name
    page.paragraph((result, "pass"), (called, "heading"), hanging=2)
    page.entry("what", environment.title, KEY)
    page.entry("where", f"{environment.prefix} -> {environment.version}", KEY)
    packages = f", {environment.packages} packages" if environment.packages else ""
    if environment.python:
        page.entry("python", environment.python + packages, KEY)
    container = environment.mode == "container"
    if container:
        for key in ("image", "digest", "engine"):
            page.entry(key, getattr(environment, key), KEY)
        page.entry("GPUs", environment.wiring or "none", KEY)
    provided = sorted(environment.provided.items())
    page.entries("provided", [f"{name}: {how}" for name, how in provided], KEY)
    verdict = environment.verdict
    if environment.failing:
        verdict = f"No new problems ({', '.join(environment.failing)} failed before, too)."
    unproven = ", ".join(environment.unproven)
    proofs = [f"not proven without a GPU: {unproven}"] if unproven else []
    page.entries("doctor", [verdict, *proofs], KEY)
    page.entries("note", environment.notes, KEY)
    if environment.kept:
        back = in_place("envcheck rollback")
        page.entry("kept", f"{', '.join(environment.kept)} ({back} goes back to it)", KEY)
    page.blank()
    page.paragraph(("Use it, and check it:", ""))
    for command in _STARTS if container else [activation(environment.prefix)]:
        page.command(in_place(command))
    page.command(in_place("envcheck doctor"))
    if already:
        page.paragraph(("--upgrade looks for newer versions.", "quiet"))
        if environment.drifted:
            page.paragraph(("--fresh installs again what was locked.", "quiet"))
    return page.text()


def activation(prefix: str) -> str:
    """The command that activates an environment, to paste."""
    return f". {shlex.quote(prefix + '/bin/activate')}"

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


def render(environment: InstalledEnvironment, *, already: bool = False, **style: Any) -> str:
    """The last words; style: of the Page.

    already: nothing was done, because an equal request is installed.
    """
    page = Page(**style)
    said = "Already installed, nothing to do:" if already else "Installed and verified:"
    called = f"{environment.stack} {environment.release}"
    if environment.stack == OWN:
        called = environment.image  # its release is a tag that says nothing without the name
    page.paragraph((said, "pass"), (called, "heading"), hanging=2)
    page.entry("what", environment.title, KEY)
    page.entry("where", f"{environment.prefix} -> {environment.version}", KEY)
    packages = f", {environment.packages} packages" if environment.packages else ""
    if environment.python:
        page.entry("python", environment.python + packages, KEY)
    container = environment.mode == "container"
    if container:
        page.entry("image", environment.image, KEY)
        page.entry("digest", environment.digest, KEY)
        page.entry("engine", environment.engine, KEY)
        page.entry("GPUs", environment.wiring or "none", KEY)
    provided = sorted(environment.provided.items())
    page.entries("provided", [f"{name}: {how}" for name, how in provided], KEY)
    page.entries("doctor", _doctor(environment), KEY)
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


def _doctor(environment: InstalledEnvironment) -> list[str]:
    """The verdict on the environment: the machine's own problems are no news."""
    told = [environment.verdict]
    if environment.failing:
        told = [f"No new problems ({', '.join(environment.failing)} failed before, too)."]
    if environment.unproven:
        told.append(f"not proven without a GPU: {', '.join(environment.unproven)}")
    return told


def activation(prefix: str) -> str:
    """The command that activates an environment, to paste."""
    return f". {shlex.quote(prefix + '/bin/activate')}"

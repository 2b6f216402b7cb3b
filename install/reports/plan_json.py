"""What `envcheck install` answers with --format json: one envelope, whether it went well or not."""

from __future__ import annotations

from typing import Literal

import msgspec

from ... import json_text
from ..plan.models import AnyPlan

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
    """Every run's answer has all of these keys."""

    result: Result
    exit_code: int
    error: Failure | None = None
    plan: AnyPlan | None = None
    environment: InstalledEnvironment | None = None


def render(envelope: Envelope) -> str:
    return json_text.render(envelope)

"""What `envcheck install` answers with --format json: one envelope, whether it went well or not."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..install.plan.plan import Plan

Result = Literal["installed", "planned", "already", "refused", "failed"]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    sentence: str
    hint: str = ""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What is there now."""

    directory: str  # holds the versions
    prefix: str  # what to activate: the link that always leads to the version in use
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


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Every run's answer has all of these keys."""

    result: Result
    exit_code: int
    error: Failure | None = None
    plan: Plan | None = None
    environment: Environment | None = None


def render(envelope: Envelope) -> str:
    """JSON text: in the structs' own order, indented by two, a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(envelope), indent=2).decode() + "\n"

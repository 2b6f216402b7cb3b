"""Findings of causes that no check declares, for tests of what is done with findings."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.facts.evidence import Evidence
from envcheck.findings.causes import Cause, Finding, Level
from envcheck.findings.remedy import Remedy
from envcheck.findings.subjects import Subject


def made_finding(
    level: Level,
    message: str,
    subjects: Sequence[Subject] = (),
    evidence: Sequence[Evidence] = (),
    remedy: Remedy | None = None,
    headline: str = "",
    key: str = "made-up",
) -> Finding:
    """A finding with these words; its headline is the message unless another one is given."""
    cause = Cause(key, level, _literal(headline or message), _literal(message))
    return Finding(cause, {}, list(subjects), list(evidence), remedy)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")

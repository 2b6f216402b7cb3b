"""A soak as JSON lines: one a minute, and the summary at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .. import safe_text
from ..facts.soak import Soak
from ..findings.model import CheckResult
from .soak_words import summary, worst


def line(record: dict[str, Any]) -> str:
    return safe_text.json_text(msgspec.json.encode(record).decode()) + "\n"


def minute(number: int, gpus: Sequence[dict[str, Any]]) -> str:
    """gpus: the records as the collector told them, each with the failures that were seen in it."""
    return line({"minute": number, "gpus": list(gpus)})


def last(soak: Soak, results: Sequence[CheckResult]) -> str:
    gpus = [
        {name: value for name, value in msgspec.to_builtins(gpu).items() if name != "minutes"}
        for gpu in soak.gpus
    ]
    told = {
        "verdict": worst(results),
        "text": summary(soak, results),
        "asked": soak.asked,
        "seconds": soak.seconds,
        "began": soak.began,
        "stopped": soak.stopped,
        "gpus": gpus,
        "findings": [
            {"code": result.code, **msgspec.to_builtins(finding)}
            for result in results
            for finding in result.findings
        ],
    }
    return line({"summary": told})

"""Metrics as text that both OpenMetrics' and Prometheus' own parser take.

OpenMetrics 1.0 and Prometheus' format 0.0.4, which node_exporter's textfile collector reads, disagree on
counters, info metrics and state sets. They agree on gauges, so every family is one, whose UNIT line and
``# EOF`` the older format takes for comments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .. import safe_text

PREFIX = "envcheck"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_LONGEST = 200  # letters of a label's value


class Sample(NamedTuple):
    value: float
    labels: Mapping[str, str] = {}


class Family(NamedTuple):
    """name: without the prefix, ending in its unit where it has one ("seconds", "celsius")."""

    name: str
    help: str
    samples: list[Sample]
    unit: str = ""


def render(families: Iterable[Family], labels: Mapping[str, str] | None = None) -> str:
    """The text. Families without a sample are left out. labels: of every sample."""
    common = dict(labels or {})
    lines = []
    for family in families:
        if not family.samples:
            continue
        name = f"{PREFIX}_{family.name}"
        lines.append(f"# TYPE {name} gauge")
        if family.unit:
            lines.append(f"# UNIT {name} {family.unit}")
        lines.append(f"# HELP {name} {family.help}")
        # The same labels twice are one series, of which a parser refuses the second.
        by_labels = {
            _labels({**sample.labels, **common}): sample.value for sample in family.samples
        }
        lines += [f"{name}{these} {_number(value)}" for these, value in by_labels.items()]
    return "\n".join([*lines, "# EOF", ""])


def _labels(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{_value(value)}"' for name, value in labels.items() if value)
    return f"{{{told}}}" if told else ""


def _value(text: str) -> str:
    return safe_text.one_line(text[:_LONGEST]).translate(_ESCAPES)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)

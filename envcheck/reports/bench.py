"""A bench's rows as a table."""

from __future__ import annotations

from ..bench.results import BenchResult


def render(result: BenchResult) -> str:
    lines = []
    for row in result.rows:
        rate = f"{row.rate.median:,.0f} {row.rate.unit}" if row.rate else row.run.outcome
        lines.append(f"{row.run.row.name:<30} {rate}")
    return "\n".join(lines) + "\n"

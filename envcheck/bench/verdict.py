"""Whether a row is as fast as it should be: by equal rows, and no nearer than its spread. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .records import ReferenceRate, RowRate

WARN = 0.05  # below what it should be
FAIL = 0.15
UNSTEADY = 0.10  # from the least to the most of its repetitions, of their median

_KINDS = {"published": "published", "baseline": "the baseline", "other-gpu": "the other GPUs"}


class RowVerdict(NamedTuple):
    verdict: Literal["", "pass", "warn", "fail"]
    words: str = ""
    share: float | None = None  # of the reference that decided
    by: Literal["", "published", "baseline", "other-gpu"] = ""


NOT_JUDGED = RowVerdict("")


def judged(rate: RowRate, references: list[ReferenceRate]) -> RowVerdict:
    """The worst of what they say."""
    order = ["fail", "warn", "pass", ""]
    found = [_against(rate, one) for one in references if one.rate > 0]
    return min(
        found, key=lambda one: (order.index(one.verdict), one.share or 0.0), default=NOT_JUDGED
    )


def _against(rate: RowRate, one: ReferenceRate) -> RowVerdict:
    share = rate.median / one.rate
    below = 1 - share
    named = f"{one.rate:,.0f} {rate.unit} ({_KINDS[one.kind]}: {one.about})"
    if below < WARN or (one.least and rate.median >= one.least):
        words = f"{share:.0%} of {named}" if below >= 0.005 or below <= -0.005 else f"as {named}"
        return RowVerdict("pass", words, share, one.kind)
    if rate.spread > below:
        return RowVerdict(
            "",
            f"not judged: its repetitions go from {rate.least:,.0f} to {rate.most:,.0f} {rate.unit}, "
            f"which is more than its distance from {named}",
            share,
            one.kind,
        )
    words = f"{below:.0%} below {named}"
    return RowVerdict("fail" if below >= FAIL else "warn", words, share, one.kind)


def is_unsteady(rate: RowRate, on_gpu: bool) -> bool:
    """On a CPU that others use, too, nothing is steady, and nothing follows from it."""
    return on_gpu and rate.repetitions >= 3 and rate.spread > UNSTEADY

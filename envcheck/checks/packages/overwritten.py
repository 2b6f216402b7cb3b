"""The check on packages whose files another package's replaced."""

from __future__ import annotations

import re
from collections.abc import Container

from packaging.utils import canonicalize_name

from ...data.packages import TENSORFLOWS
from ..declared import declared_causes
from ..gpus import plural
from ..reading import Distribution, Skip, SnapshotView, fact
from ..target import installed, named, pip_replace
from ..verdicts import Passed, Verdicts, check
from .common import found

CAUSE = declared_causes(__name__)

_FOR_GPUS = re.compile(r"(?:^|-)(?:gpu|cuda|cu)\d*(?:$|-)")


@check("PKG-021")
def overwritten(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    required = fact(view.target.packages, "required") or []
    if not distributions:
        raise Skip("no packages of this field in the target")
    pairs = [
        (one, other, lost)
        for one in distributions.values()
        for lost in one.overwritten
        if (other := distributions.get(canonicalize_name(lost.by))) is not None
        and not {one.normalized, other.normalized} <= TENSORFLOWS
    ]
    for one, other, lost in pairs:
        loser, winner = _wanted(one, required), _wanted(other, required)
        kept, gone = (other, one) if winner > loser else (one, other)
        yield found(
            view,
            CAUSE["needed-files-overwritten"] if loser > winner else CAUSE["files-overwritten"],
            one,
            other,
            commands=[pip_replace(view, f"{kept.name}=={kept.version}", gone.name)],
            files=plural(lost.files, "file"),
            example=lost.example,
            kept=named(kept),
        )
    if not pairs:
        yield Passed(f"{len(distributions)} packages of this field")


def _wanted(one: Distribution, required: Container[str]) -> tuple[bool, bool]:
    return one.normalized in required, _FOR_GPUS.search(one.normalized) is not None

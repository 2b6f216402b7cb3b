"""Checks that compare a GPU with the others of its name: what should be equal in one machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ...data.products import is_data_centre
from ...findings.subjects import gpu_subject
from ..declared import declared_causes
from ..driver_state import HOLDERS
from ..gpus import address_of, found, judge_gpus
from ..peer_groups import Outlier, groups, is_vgpu, of_many_makers, outliers
from ..reading import Gpu, SnapshotView, known, need
from ..verdicts import Cause, Evidence, Passed, Unjudged, Verdicts, check

CAUSE = declared_causes(__name__)

_NEAR = 0.02  # the share of a value by which boards may differ
_MUCH_LESS = 0.9


class Shared(NamedTuple):
    """One fact that peers share. unit: of a number, of which a small difference is none."""

    field: str
    name: str
    unit: str = ""

    def among(self) -> Callable[[Gpu], object]:
        """The fact's value; values near each other are the same."""
        seen: list[float] = []

        def value(gpu: Gpu) -> object:
            own = known(getattr(gpu, self.field))
            if not self.unit or not isinstance(own, (int, float)):
                return own
            for other in seen:
                if abs(own - other) <= _NEAR * max(own, other):
                    return other
            seen.append(own)
            return own

        return value

    def show(self, one: Outlier) -> str:
        own, usual = (
            (f"{value:g}" if isinstance(value, float) else str(value)) + self.unit
            for value in (one.value, one.usual)
        )
        return f"{self.name} {own}" + ("" if one.usual is None else f" (its peers: {usual})")


def compared(
    view: SnapshotView, shared: list[Shared], differs: Cause, less: Cause | None = None
) -> Verdicts:
    """One finding for each GPU that differs from its peers; for each one if there is no majority.

    less: the cause for one whose first fact is much less than its peers', if that is worse.
    """
    for gpus in groups(view):
        name = known(gpus[0].name)
        if of_many_makers(gpus[0]):
            yield Passed(f"{name}: not compared, boards of many makers have this name")
            continue
        differing: dict[int, list[tuple[Shared, Outlier]]] = {}
        for fact in shared:
            for one in outliers(gpus, fact.among()):
                differing.setdefault(id(one.gpu), []).append((fact, one))
        for facts in differing.values():
            first = facts[0][1]
            numbers = isinstance(first.value, int) and isinstance(first.usual, int)
            much = numbers and first.value < _MUCH_LESS * first.usual  # type: ignore[operator]
            cause = less if less and facts[0][0] == shared[0] and much else differs
            values = "; ".join(fact.show(one) for fact, one in facts)
            yield found(view, cause, first.gpu, "", evidence=_evidence(view, facts), values=values)
        known_of = [any(known(getattr(g, fact.field)) for fact in shared) for g in gpus]
        if sum(known_of) < 2:
            yield Unjudged("skipped", f"the driver does not say what {name} is compared by")
        elif not differing:
            yield Passed(f"{sum(known_of)} × {name} have the same settings")


def _evidence(view: SnapshotView, facts: list[tuple[Shared, Outlier]]) -> list[Evidence]:
    shown = [view.gpu_evidence(one.gpu, fact.field) for fact, one in facts]
    for fact, one in facts:
        if one.peer is not None:
            usual = view.gpu_evidence(one.peer, fact.field)
            shown.append(msgspec.structs.replace(usual, value=f"{usual.value} (its peers)"))
    return shown


_MEMORY = [Shared("memory_total_mib", "memory", " MiB"), Shared("bar1_total_mib", "BAR1", " MiB")]


@check("GPU-021")
def memory_is_equal(view: SnapshotView) -> Verdicts:
    return compared(view, _MEMORY, CAUSE["other-memory"], CAUSE["less-memory"])


_POWER = [
    Shared("power_limit_w", "power limit", " W"),
    Shared("power_default_limit_w", "default power limit", " W"),
    Shared("power_max_limit_w", "highest power limit", " W"),
    Shared("clock_sm_max_mhz", "highest SM clock", " MHz"),
    Shared("clock_memory_max_mhz", "highest memory clock", " MHz"),
]


@check("GPU-024")
def power_is_equal(view: SnapshotView) -> Verdicts:
    return compared(view, _POWER, CAUSE["other-power-or-clocks"])


@check("GPU-022")
def ecc_is_as_sold(view: SnapshotView) -> Verdicts:
    off: list[Gpu] = []
    verdicts = list(judge_gpus(view, lambda gpu: _ecc(gpu, off)))
    if off:
        addresses = ",".join(map(address_of, off))
        reset = f"sudo nvidia-smi --gpu-reset -i {addresses}"
        yield CAUSE["ecc-off"].found(
            [gpu_subject(gpu) for gpu in off],
            [view.gpu_evidence(gpu, "ecc_enabled") for gpu in off],
            commands=[f"sudo nvidia-smi -i {addresses} -e 1", HOLDERS, reset],
        )
    yield from (one for one in verdicts if not isinstance(one, Passed) or not off)


def _ecc(gpu: Gpu, off: list[Gpu]) -> Verdicts:
    on = need(gpu.ecc_enabled, "ECC")
    if known(gpu.ecc_pending) not in (None, on):
        yield Passed("a change of the ECC mode is pending")
    elif on or is_vgpu(gpu) or not is_data_centre(known(gpu.name) or ""):
        yield Passed(f"ECC is {'on' if on else 'off'}")
    else:
        off.append(gpu)

"""Checks on the health of the GPUs' memory: ECC errors, remapped rows, retired pages, repairs."""

from __future__ import annotations

from ..declared import declared_causes
from ..gpus import found, gpu_check, need_any, plural
from ..reading import Gpu, SnapshotView, known, need
from ..verdicts import Passed, Verdicts

CAUSE = declared_causes(__name__)

# Volta and older retire pages, of which a board has 64; with 60 gone it is due for replacement.
RETIRED_PAGES_LIMIT = 60
# On-chip memory by its protection: the fields' name, and the errors in one bank that NVIDIA tolerates.
_SRAM = {"parity": ("parity", 4), "SEC-DED": ("secded", 2)}

# NVIDIA names no limit for corrected errors: this many are no background radiation.
_MANY_CORRECTED = 100_000


@gpu_check("GPU-002")
def no_uncorrectable_error(view: SnapshotView, gpu: Gpu) -> Verdicts:
    recent, ever = known(gpu.ecc_uncorrected_volatile), known(gpu.ecc_uncorrected_aggregate)
    if known(gpu.ecc_enabled) is False:
        yield Passed("ECC is off")
        return
    if not recent and not ever:
        need(gpu.ecc_enabled, "ECC")
        need(gpu.ecc_uncorrected_volatile, "uncorrectable errors since the driver was loaded")
    now, past = (recent or 0) - _sram(gpu, "volatile"), (ever or 0) - _sram(gpu, "aggregate")
    # Where each past error has its row remapped or its page retired, GPU-003 and GPU-004 tell of the memory.
    repaired = sum(known(count) or 0 for count in (gpu.remap_uncorrectable, gpu.retired_double_bit))
    past = past if past > repaired else 0
    fields = "ecc_uncorrected_volatile ecc_uncorrected_aggregate"
    errors = plural(now if now > 0 else past, "uncorrectable memory error")
    if now > 0:
        yield found(view, CAUSE["uncorrectable-errors"], gpu, fields, errors=errors, count=now)
    elif past > 0:
        since = "none since the driver was loaded" if recent is not None else "when is not known"
        yield found(
            view,
            CAUSE["past-uncorrectable-errors"],
            gpu,
            fields,
            errors=errors,
            since=since,
            count=past,
        )
    corrected = known(gpu.ecc_corrected_volatile) or 0
    if corrected >= _MANY_CORRECTED:
        yield found(
            view, CAUSE["many-corrected-errors"], gpu, "ecc_corrected_volatile", count=corrected
        )
    elif now <= 0 and past <= 0:
        yield Passed("no uncorrectable error")


def _sram(gpu: Gpu, period: str) -> int:
    return sum(known(getattr(gpu, f"sram_{name}_{period}")) or 0 for name, _most in _SRAM.values())


@gpu_check("GPU-031")
def sram_is_clean(view: SnapshotView, gpu: Gpu) -> Verdicts:
    counters = {f"sram_{name}_volatile": kind for kind, (name, _most) in _SRAM.items()}
    need_any(gpu, (*counters, "sram_threshold_exceeded"), "errors of on-chip memory")
    if known(gpu.sram_threshold_exceeded):
        yield found(view, CAUSE["sram-threshold-exceeded"], gpu, "sram_threshold_exceeded")
    recent = {name: count for name in counters if (count := known(getattr(gpu, name)))}
    for name, count in recent.items():
        kind = counters[name]
        errors = plural(count, f"uncorrectable {kind} error") + " in on-chip memory"
        yield found(view, CAUSE["sram-errors"], gpu, name, errors=errors, tolerated=_SRAM[kind][1])
    if not recent and not known(gpu.sram_threshold_exceeded):
        yield Passed("no uncorrectable error in on-chip memory")


_REPAIRS = {"channel": "channel of the memory", "tpc": "texture processing cluster (TPC)"}
# A bank of memory has so many spare rows: a GPU that has used as many and needs another one wears out.
_MANY_ROWS = 8


@gpu_check("GPU-003")
def remapping_is_complete(view: SnapshotView, gpu: Gpu) -> Verdicts:
    failed, pending = known(gpu.remap_failed), known(gpu.remap_pending)
    if known(gpu.unrepairable_memory):
        yield found(
            view, CAUSE["unrepairable-memory"], gpu, "unrepairable_memory remap_uncorrectable"
        )
        return
    repairs = [name for name in _REPAIRS if known(getattr(gpu, f"{name}_repair_pending"))]
    for name in repairs:
        yield found(
            view, CAUSE["repair-pending"], gpu, f"{name}_repair_pending", part=_REPAIRS[name]
        )
    if failed is None and pending is None:
        need(gpu.remap_failed, "row remapping")
    count = (known(gpu.remap_correctable) or 0) + (known(gpu.remap_uncorrectable) or 0)
    empty, low = known(gpu.remap_banks_none), known(gpu.remap_banks_low)
    if failed:
        yield found(
            view,
            CAUSE["remapping-failed"],
            gpu,
            "remap_failed remap_uncorrectable remap_banks_none",
        )
    elif empty or low:
        banks, rows = plural(empty or low or 0, "memory bank"), "no" if empty else "few"
        fields = "remap_banks_none remap_banks_low remap_uncorrectable"
        yield found(view, CAUSE["few-spare-rows"], gpu, fields, banks=banks, rows=rows)
    if pending:
        fields = "remap_pending remap_correctable remap_uncorrectable"
        again = count >= _MANY_ROWS
        yield found(
            view,
            CAUSE["remapping-again-and-again"] if again else CAUSE["remapping-pending"],
            gpu,
            fields,
            rows=count,
        )
    if not failed and not pending and not empty and not repairs:
        yield Passed(f"{count} rows remapped" if count else "no row remapped")


@gpu_check("GPU-004")
def retirement_is_complete(view: SnapshotView, gpu: Gpu) -> Verdicts:
    pending = known(gpu.retired_pending)
    counts = [known(gpu.retired_single_bit), known(gpu.retired_double_bit)]
    if pending is None and counts == [None, None]:
        need(gpu.retired_pending, "retired pages")
    pages = sum(count or 0 for count in counts)
    fields = "retired_pending retired_single_bit retired_double_bit"
    if pending:
        yield found(view, CAUSE["retirement-pending"], gpu, fields)
    if pages >= RETIRED_PAGES_LIMIT:
        yield found(view, CAUSE["too-many-retired-pages"], gpu, fields, pages=pages)
    elif not pending:
        yield Passed(f"{pages} pages retired" if pages else "no page retired")

"""Checks on the health of the GPUs' memory: ECC errors, remapped rows, retired pages, repairs."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..driver_state import NO_GPUS
from ..gpus import address_of, finding, judge_gpus, replace, reset
from ..registry import check
from .sram import MEMORY_ERRORS, aggregate, volatile

# Volta and older retire pages, of which a board has 64; with 60 gone it is due for replacement.
RETIRED_PAGES_LIMIT = 60
RETIRED_PAGES_CAPACITY = 64


@check(
    "GPU-002",
    title="No uncorrectable memory error",
    problem="has uncorrectable memory errors",
    about="ECC corrects single-bit errors and detects larger ones. An uncorrectable error since the"
    " driver was loaded (volatile) has killed the program that met it, and where it could not be contained"
    " the results of others are not to be trusted: a failure, until the GPU is reset and proves itself."
    " One in the board's life alone (aggregate) is a warning. Corrected errors are what ECC is for. Errors"
    " of on-chip memory, where the driver tells them apart, are GPU-031's.",
    sources=(MEMORY_ERRORS, "XID 48, 94, 95"),
    follows=(*NO_GPUS, "GPU-003", "GPU-004", "GPU-005"),
)
def no_uncorrectable_error(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _ecc(view, gpu))


def _ecc(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    enabled, pending = known(gpu.ecc_enabled), known(gpu.ecc_pending)
    if None not in (enabled, pending) and pending != enabled:
        yield finding(
            view,
            "warn",
            gpu,
            f"ECC will be turned {'on' if pending else 'off'} at the GPU's next reset: memory and speed"
            " will differ after it.",
            "ecc_enabled ecc_pending",
            reset(gpu, "The change waits for a reset."),
        )
    recent, ever = known(gpu.ecc_uncorrected_volatile), known(gpu.ecc_uncorrected_aggregate)
    if enabled is False:
        yield Passed("ECC is off")
        return
    if not recent and not ever:
        need(gpu.ecc_enabled, "ECC")
        need(gpu.ecc_uncorrected_volatile, "uncorrectable errors since the driver was loaded")
    here = max((recent or 0) - volatile(gpu), 0)  # the others are GPU-031's
    before = max((ever or 0) - aggregate(gpu), 0)
    if here:
        yield finding(
            view,
            "fail",
            gpu,
            f"{_errors(here)} since the driver was loaded: the programs that met"
            f" {'it' if here == 1 else 'them'} died or computed wrongly.",
            "ecc_uncorrected_volatile ecc_uncorrected_aggregate",
            reset(
                gpu,
                "A reset retires or remaps the bad memory; if the errors come back, ask for an RMA.",
            ),
        )
    elif before:
        since = "none since the driver was loaded" if recent is not None else "when is not told"
        yield finding(
            view,
            "warn",
            gpu,
            f"{_errors(before)} in the board's life, {since}: keep an eye on it.",
            "ecc_uncorrected_aggregate ecc_uncorrected_volatile",
            Remedy(
                "Nothing now; look again after some days of load.",
                [f"nvidia-smi -q -d ECC,ROW_REMAPPER -i {address_of(gpu)}"],
            ),
        )
    else:
        yield Passed("no uncorrectable error")


def _errors(count: int) -> str:
    return f"{count} uncorrectable memory error{'' if count == 1 else 's'}"


@check(
    "GPU-003",
    title="Row remapping is complete",
    problem="has incomplete row remapping",
    about="GPUs since Ampere replace a bad row of memory by a spare one; that takes effect at the next"
    " reset. A remapping that failed is a failure: a bank without spare rows, a row that had been remapped"
    " before, or 512 rows in all; the field diagnostic then decides on a replacement. One that is pending"
    " is a failure too: the memory has had an uncorrectable error, the repair waits for one command, and"
    " until then the GPU works around the bad page (data-centre parts) or goes on using it (others). Banks"
    " with no spare row left, or with few, are a warning: the next error there cannot be repaired. Rows"
    " that were remapped in the past are no fault.",
    sources=(
        f"{MEMORY_ERRORS}, RMA Policy",
        "nvidia-smi(1), Remapped Rows, Bank Remap Availability Histogram",
        "XID 63, 64",
    ),
    follows=NO_GPUS,
)
def remapping_is_complete(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _remap(view, gpu))


def _remap(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    failed, pending = known(gpu.remap_failed), known(gpu.remap_pending)
    if failed is None and pending is None:
        need(gpu.remap_failed, "row remapping")
    if failed:
        yield finding(
            view,
            "fail",
            gpu,
            f"A row of memory could not be remapped: {_why_failed(gpu)}; errors will go on.",
            f"remap_failed remap_uncorrectable {_HISTOGRAM}",
            replace(gpu, "The row-remapping failure flag is NVIDIA's criterion for an RMA."),
        )
    elif known(gpu.remap_banks_none) or known(gpu.remap_banks_low):
        yield _spare_rows(view, gpu)
    if pending:
        yield finding(
            view,
            "fail",
            gpu,
            "A row of memory waits for its remapping: the memory has had errors, and the repair takes"
            " effect only at a reset.",
            "remap_pending remap_correctable remap_uncorrectable",
            reset(gpu, "The reset puts the spare row in place."),
        )
    if not failed and not pending and not known(gpu.remap_banks_none):
        rows = (known(gpu.remap_correctable) or 0) + (known(gpu.remap_uncorrectable) or 0)
        yield Passed(f"{rows} rows remapped" if rows else "no row remapped")


_HISTOGRAM = "remap_banks_none remap_banks_low remap_banks_partial remap_banks_high remap_banks_max"
ROWS_LIMIT = 512  # remapped for uncorrectable errors, over the whole memory


def _why_failed(gpu: Gpu) -> str:
    empty, rows = known(gpu.remap_banks_none), known(gpu.remap_uncorrectable)
    if empty:
        return f"{_banks(empty)} no spare row left"
    if rows is not None and rows >= ROWS_LIMIT:
        return f"all {ROWS_LIMIT} remappings of the board are used up"
    if empty == 0:
        return "spare rows are left in every bank, so a row that was remapped before is bad again"
    return "its bank has no spare row left, or the row had been remapped before"


def _banks(count: int) -> str:
    return f"{count} memory bank{' has' if count == 1 else 's have'}"


def _spare_rows(view: SnapshotView, gpu: Gpu) -> Finding:
    empty, low = known(gpu.remap_banks_none) or 0, known(gpu.remap_banks_low) or 0
    told = f"{_banks(empty)} no spare row left" if empty else f"{_banks(low)} few spare rows left"
    return finding(
        view,
        "warn",
        gpu,
        f"{told}: nothing fails yet, and the next error there"
        f" {'cannot be repaired' if empty else 'or the one after it cannot be repaired'}.",
        f"{_HISTOGRAM} remap_uncorrectable",
        Remedy(
            "Run the vendor's field diagnostic when the machine is free, and plan for a replacement; watch"
            " for"
            " XID 63 and 64.",
            [f"nvidia-smi -q -d ROW_REMAPPER -i {address_of(gpu)}", "sudo dcgmi diag -r 3"],
        ),
        "is running out of spare memory rows",
    )


@check(
    "GPU-004",
    title="Page retirement is complete, and pages are left",
    problem="has bad memory pages",
    about="GPUs before Ampere retire a page of memory after a double-bit error or two single-bit ones;"
    " that takes effect when the driver is reloaded or the GPU is reset. A retirement that is pending"
    " is a failure, since the bad page is still in use. A board has room for 64 retired pages; at 60 it is"
    " due for replacement.",
    sources=("NVIDIA Dynamic Page Retirement", "XID 48, 63"),
    follows=NO_GPUS,
)
def retirement_is_complete(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _retired(view, gpu))


def _retired(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    pending = known(gpu.retired_pending)
    counts = [known(gpu.retired_single_bit), known(gpu.retired_double_bit)]
    if pending is None and counts == [None, None]:
        need(gpu.retired_pending, "retired pages")
    pages = sum(count or 0 for count in counts)
    if pending:
        yield finding(
            view,
            "fail",
            gpu,
            "A page of memory waits for its retirement: it is known to be bad, and still in use.",
            "retired_pending retired_single_bit retired_double_bit",
            reset(gpu, "The page is retired when the GPU is reset or the driver reloaded."),
        )
    if pages >= RETIRED_PAGES_LIMIT:
        yield finding(
            view,
            "fail",
            gpu,
            f"{pages} pages of memory are retired, of {RETIRED_PAGES_CAPACITY} that a board can retire: soon"
            " bad memory will stay in use.",
            "retired_single_bit retired_double_bit",
            replace(
                gpu, f"A board with {RETIRED_PAGES_LIMIT} retired pages is due for replacement."
            ),
        )
    if not pending and pages < RETIRED_PAGES_LIMIT:
        yield Passed(f"{pages} pages retired" if pages else "no page retired")


# Fact, whether a reset mends it, what is wrong.
_REPAIRS = (
    (
        "unrepairable_memory",
        False,
        "The GPU's memory has a fault that its own repair cannot mend: errors will go on.",
        "The driver calls the memory unrepairable.",
    ),
    (
        "sram_threshold_exceeded",
        False,
        "Uncorrectable errors in the GPU's on-chip memory are past the threshold for replacement.",
        "The SRAM threshold flag is NVIDIA's criterion for an RMA.",
    ),
    (
        "channel_repair_pending",
        True,
        "A memory channel waits for its repair: the memory has had errors, and the repair takes effect only"
        " at a reset.",
        "The reset repairs the channel.",
    ),
    (
        "tpc_repair_pending",
        True,
        "A group of multiprocessors waits for its repair, which takes effect only at a reset.",
        "The reset repairs it.",
    ),
)


@check(
    "GPU-005",
    title="No repair is pending, and none is impossible",
    problem="has a pending memory repair",
    about="Recent GPUs mend memory channels and groups of multiprocessors at a reset, and say when they"
    " cannot any more. A repair that is pending is a failure that goes with a reset; memory that is"
    " unrepairable, and on-chip memory (SRAM) with more errors than the threshold, are failures that go"
    " with the board alone.",
    sources=(MEMORY_ERRORS, "nvidia-smi(1), ECC Errors"),
    follows=NO_GPUS,
)
def no_repair_pending(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _repairs(view, gpu))


def _repairs(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    told = [entry for entry in _REPAIRS if known(getattr(gpu, entry[0])) is not None]
    if not told:
        for name, *_ in _REPAIRS:
            need(getattr(gpu, name), "the repair status")
        raise Skip("the repair status is not told")
    faults = [entry for entry in told if known(getattr(gpu, entry[0]))]
    for name, by_reset, message, reason in faults:
        remedy = reset(gpu, reason) if by_reset else replace(gpu, reason)
        yield finding(view, "fail", gpu, message, name, remedy)
    if not faults:
        yield Passed("nothing to repair")

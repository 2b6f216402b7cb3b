"""Whether a row's mode is proven: by what its own graph shows, which a row without the mode lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..facts.bench import RowRun
from .records import Proof

_KINDS = ("convolutions", "products")
_MOST = 1e12  # above any count: a Snapshot may come from anybody


class Proven(NamedTuple):
    proof: Proof
    words: str


def prove(run: RowRun, rows: Sequence[RowRun]) -> Proven:
    """rows: all of the run, among which its control is."""
    if not run.evidence:
        return Proven("not-known", "")
    parts = []
    if run.row.precision == "fp32":
        parts += _fp32(run)
    elif run.row.precision == "tf32":
        parts.append(_tf32(run))
    else:
        parts.append(_half(run, control(run, rows)))
    if run.row.compiled:
        parts.append(_compiled(run))
    if not parts:
        return Proven("nothing-to-engage", "")
    words = ", ".join(part.words for part in parts if part.words)
    order: list[Proof] = ["not-engaged", "not-known", "engaged"]
    return Proven(min((part.proof for part in parts), key=order.index), words)


def control(run: RowRun, rows: Sequence[RowRun]) -> RowRun | None:
    """The nearest row in FP32 that has evidence: of the group, else of the model, else of the style."""
    others = [
        one
        for one in rows
        if one.row.precision == "fp32" and one.row.style == run.row.style and _total(one)
    ]
    return min(
        others,
        key=lambda one: (one.row.group != run.row.group, one.row.model != run.row.model),
        default=None,
    )


def count(run: RowRun, name: str) -> float:
    """A count of its evidence; 0 where there is none that can be one."""
    value = run.evidence.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return value if 0 <= value < _MOST else 0


def _total(run: RowRun) -> float:
    return sum(count(run, kind) for kind in _KINDS)


def _half_total(run: RowRun) -> float:
    return sum(count(run, f"half_{kind}") for kind in _KINDS)


def counted(run: RowRun) -> str:
    """ "158 of 158 convolutions and 3 of 3 products in FP16" """
    kind = {"bfloat16": "BF16", "float16": "FP16"}.get(run.row.half, "16 bits")
    parts = [
        f"{count(run, f'half_{what}'):.0f} of {count(run, what):.0f} {what}"
        for what in _KINDS
        if count(run, what)
    ]
    return f"{' and '.join(parts)} in {kind}" if parts else ""


def _half(run: RowRun, beside: RowRun | None) -> Proven:
    if run.evidence.get("hidden_by_compiler") is True:
        return Proven("not-known", "the compiler hides the types")
    if not _total(run):
        return Proven("not-known", "no types were seen")
    if any(count(run, kind) and not count(run, f"half_{kind}") for kind in _KINDS):
        return Proven("not-engaged", counted(run))
    if beside is None:
        return Proven("not-known", f"{counted(run)}, and no row in FP32 to compare it with")
    if _half_total(beside):
        return Proven(
            "not-known", f"{counted(run)}, but {beside.row.name} computes in 16 bits, too"
        )
    return Proven("engaged", counted(run))


def _tf32(run: RowRun) -> Proven:
    bits = run.evidence.get("tf32_bits")
    if bits == "tf32":
        return Proven("engaged", "the bits of a product are TF32's")
    if bits == "fp32":
        return Proven("not-engaged", "the bits of a product are FP32's")
    return Proven("not-known", "no product's bits were seen")


def _fp32(run: RowRun) -> list[Proven]:
    """What must not be there in a row that the others are held against."""
    if _half_total(run):
        return [Proven("not-engaged", f"it is to be FP32: {counted(run)}")]
    if run.evidence.get("tf32_bits") == "tf32":
        return [Proven("not-engaged", "it is to be FP32, and the bits of a product are TF32's")]
    return []


def _compiled(run: RowRun) -> Proven:
    if "compiled_modules" not in run.evidence:
        return Proven("not-known", "whether it was compiled was not seen")
    modules = count(run, "compiled_modules")
    if not modules:
        return Proven("not-engaged", "nothing was compiled")
    return Proven("engaged", f"{modules:.0f} compiled module{'s' if modules != 1 else ''}")

"""The order of what was judged of Tensor Cores, and GPUs with the same results as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from ..facts.micro_kernels import Mode, Setting
from ..findings.model import Remedy
from ..findings.subjects import Subject
from ..safe_text import LONGEST
from ..tensorcores.mode_verdict import ModeVerdict
from .plain import ranges

# A GPU that is slower than another by more than this is not like it.
_SPREAD = 0.1

_MODES: tuple[str, ...] = get_args(Mode)
_SETTINGS: tuple[str, ...] = get_args(Setting)

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Alike(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of one model with the same results. Each row is that of the slowest of them."""

    title: str  # "GPU 0–7 NVIDIA H100 80GB HBM3"
    count: int
    rows: list[ModeVerdict]


def ordered(judged: Iterable[ModeVerdict]) -> list[ModeVerdict]:
    """By GPU (2 before 10), level, framework, library, setting and mode, whatever finished first."""
    return sorted(judged, key=_place)


def _place(row: ModeVerdict) -> tuple[object, ...]:
    return (
        *_by_index(row),
        row.level,
        row.framework,
        row.library,
        _SETTINGS.index(row.setting),
        _MODES.index(row.mode),
    )


def _by_index(row: ModeVerdict) -> tuple[int, str]:
    """A GPU's place among the others; what has no index comes last."""
    gpu = row.gpu
    last = 10**6
    return (last, "") if gpu is None else (last if gpu.index is None else gpu.index, gpu.text)


def folded(judged: Iterable[ModeVerdict]) -> list[Alike]:
    """The GPUs in order, each with its rows; those that differ in numbers alone are one."""
    gpus: dict[Subject | None, list[ModeVerdict]] = {}
    for row in ordered(judged):
        gpus.setdefault(row.gpu, []).append(row)
    groups: dict[tuple[object, ...], list[list[list[ModeVerdict]]]] = {}
    for rows in gpus.values():
        candidates = groups.setdefault(_words(rows), [])
        group = next((these for these in candidates if _near(these[0], rows)), None)
        if group is None:
            candidates.append([rows])
        else:
            group.append(rows)
    found = [group for candidates in groups.values() for group in candidates]
    return [_alike(group) for group in sorted(found, key=lambda gpus: _by_index(gpus[0][0]))]


def _words(rows: list[ModeVerdict]) -> tuple[object, ...]:
    """All that is said of a GPU, without its index and without numbers."""
    gpu = rows[0].gpu
    whole = gpu is not None and gpu.kind == "gpu" and gpu.index is not None
    return (gpu.name if gpu and whole else gpu, *(_row_words(row) for row in rows))


def _row_words(row: ModeVerdict) -> tuple[object, ...]:
    remedy = (row.remedy.text, *row.remedy.commands) if row.remedy else ()
    told = (row.reason, row.cause, row.slow, *remedy)
    return (
        *(row.level, row.framework, row.library, row.mode, row.setting, row.control, row.verdict),
        *(row.bits.says, row.rate.says, row.hardware.says),
        *(_NUMBER.sub("#", text[:LONGEST]) for text in told),
    )


def _near(first: list[ModeVerdict], second: list[ModeVerdict]) -> bool:
    """Whether no rate of one GPU is much lower than the other's."""
    return all(
        one.tflops == other.tflops
        if one.tflops is None or other.tflops is None
        else abs(one.tflops - other.tflops) <= _SPREAD * max(one.tflops, other.tflops)
        for one, other in zip(first, second, strict=True)
    )


def _alike(group: list[list[ModeVerdict]]) -> Alike:
    rows = [_slowest(same) for same in zip(*group, strict=True)]
    return Alike(title=_title([rows[0].gpu for rows in group]), count=len(group), rows=rows)


def _slowest(same: Sequence[ModeVerdict]) -> ModeVerdict:
    """One GPU's row, with the commands of all where each GPU has its own."""
    row = min(same, key=lambda row: float("inf") if row.tflops is None else row.tflops)
    if row.remedy is None:
        return row
    commands = [command for one in same if one.remedy for command in one.remedy.commands]
    remedy = Remedy(row.remedy.text, list(dict.fromkeys(commands)))
    return msgspec.structs.replace(row, remedy=remedy)


def _title(gpus: list[Subject | None]) -> str:
    first = gpus[0]
    if first is None or len(gpus) == 1:
        return first.text if first else ""
    indices = [gpu.index for gpu in gpus if gpu and gpu.index is not None]
    return f"GPU {ranges(indices)} {first.name}"

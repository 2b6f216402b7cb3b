"""The order of what was judged of Tensor Cores, and GPUs with the same results as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from ..facts.micro_kernels import Mode, Setting
from ..findings.model import Remedy
from ..safe_text import LONGEST
from ..tensorcores.judged import Judged
from .plain import ranges

# A GPU that is slower than another by more than this is not like it.
_SPREAD = 0.1

_MODES: tuple[str, ...] = get_args(Mode)
_SETTINGS: tuple[str, ...] = get_args(Setting)

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

# As view.gpu_name calls a GPU.
_SUBJECT = re.compile(
    r"GPU (?P<index>\d{1,6}) (?P<name>.*?)(?: at [0-9a-fA-F:]+\.[0-9a-fA-F])?", re.DOTALL
)


class Alike(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of one model with the same results. Each row is that of the slowest of them."""

    title: str  # "GPU 0–7 NVIDIA H100 80GB HBM3"
    count: int
    rows: list[Judged]


def ordered(judged: Iterable[Judged]) -> list[Judged]:
    """By GPU (2 before 10), level, framework, library, setting and mode, whatever finished first."""
    return sorted(judged, key=_place)


def _place(row: Judged) -> tuple[object, ...]:
    return (
        *_natural(row.subject),
        row.level,
        row.framework,
        row.library,
        _SETTINGS.index(row.setting),
        _MODES.index(row.mode),
    )


def _natural(subject: str) -> tuple[int, str]:
    """Numbers by their size; what is no GPU's usual name comes last."""
    found = re.match(r"GPU (\d{1,6})\b", subject)
    return (int(found.group(1)) if found else 10**6, subject)


def folded(judged: Iterable[Judged]) -> list[Alike]:
    """The GPUs in order, each with its rows; those that differ in numbers alone are one."""
    gpus: dict[str, list[Judged]] = {}
    for row in ordered(judged):
        gpus.setdefault(row.subject, []).append(row)
    groups: dict[tuple[object, ...], list[list[list[Judged]]]] = {}
    for rows in gpus.values():
        candidates = groups.setdefault(_words(rows), [])
        group = next((these for these in candidates if _near(these[0], rows)), None)
        if group is None:
            candidates.append([rows])
        else:
            group.append(rows)
    found = [group for candidates in groups.values() for group in candidates]
    return [_alike(group) for group in sorted(found, key=lambda gpus: _natural(gpus[0][0].subject))]


def _words(rows: list[Judged]) -> tuple[object, ...]:
    """All that is said of a GPU, without its index and without numbers."""
    found = _SUBJECT.fullmatch(rows[0].subject)
    return (found.group("name") if found else rows[0].subject, *(_row_words(row) for row in rows))


def _row_words(row: Judged) -> tuple[object, ...]:
    remedy = (row.remedy.text, *row.remedy.commands) if row.remedy else ()
    told = (row.reason, row.cause, row.slow, *remedy)
    return (
        *(row.level, row.framework, row.library, row.mode, row.setting, row.control, row.verdict),
        *(row.bits.says, row.rate.says, row.hardware.says),
        *(_NUMBER.sub("#", text[:LONGEST]) for text in told),
    )


def _near(first: list[Judged], second: list[Judged]) -> bool:
    """Whether no rate of one GPU is much lower than the other's."""
    return all(
        one.tflops == other.tflops
        if one.tflops is None or other.tflops is None
        else abs(one.tflops - other.tflops) <= _SPREAD * max(one.tflops, other.tflops)
        for one, other in zip(first, second, strict=True)
    )


def _alike(group: list[list[Judged]]) -> Alike:
    rows = [_slowest(same) for same in zip(*group, strict=True)]
    return Alike(title=_title([gpu[0].subject for gpu in group]), count=len(group), rows=rows)


def _slowest(same: Sequence[Judged]) -> Judged:
    """One GPU's row, with the commands of all where each GPU has its own."""
    row = min(same, key=lambda row: float("inf") if row.tflops is None else row.tflops)
    if row.remedy is None:
        return row
    commands = [command for one in same if one.remedy for command in one.remedy.commands]
    remedy = Remedy(row.remedy.text, list(dict.fromkeys(commands)))
    return msgspec.structs.replace(row, remedy=remedy)


def _title(subjects: list[str]) -> str:
    if len(subjects) == 1:
        return subjects[0]
    found = [_SUBJECT.fullmatch(subject) for subject in subjects]
    name = found[0].group("name") if found[0] else ""
    indices = [int(match.group("index")) for match in found if match]
    return f"GPU {ranges(indices)} {name}"

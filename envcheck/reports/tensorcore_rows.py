"""Tensor Core results as all reports show them: order, names, styles; GPUs with the same results as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

import msgspec

from ..facts.micro_kernels import Mode, Setting
from ..facts.target import FRAMEWORKS
from ..findings.model import Remedy
from ..tensorcores.mode_verdict import ModeVerdict, Verdict
from .plain import number_of, ranges, together

VERDICT_STYLES: dict[Verdict, str] = {
    "proven": "pass",
    "indicated": "warn",
    "not engaged": "fail",
    "contradiction": "fail",
    "cannot tell": "could-not-run",
    "could not run": "could-not-run",
    "not applicable": "skipped",
}
# With these verdicts nothing was computed: there is a reason, and no number.
SILENT: tuple[Verdict, ...] = ("could not run", "not applicable")

# FP32 matrices, by their setting.
_SETTING_LABELS = {
    "default": "FP32 default",
    "switch-on": "TF32 on",
    "switch-off": "TF32 off",
    "override": "TF32 override",
    "control": "FP32 control",
}
_SPREAD = 0.1  # the rates of GPUs with the same results differ by no more
_MODES: tuple[str, ...] = get_args(Mode)
_SETTINGS: tuple[str, ...] = get_args(Setting)


class SameGpus(msgspec.Struct, frozen=True):
    """GPUs of one model with the same results. Each row is that of the slowest of them."""

    title: str  # "GPU 0–7 NVIDIA H100 80GB HBM3"
    count: int
    rows: list[ModeVerdict]


def ordered(judged: Iterable[ModeVerdict]) -> list[ModeVerdict]:
    """By GPU (2 before 10, one without an index last), level, framework, library, setting and mode."""

    def key(row: ModeVerdict) -> tuple[object, ...]:
        index = row.gpu.index if row.gpu is not None else None
        place = float("inf") if index is None else index
        setting, mode = _SETTINGS.index(row.setting), _MODES.index(row.mode)
        return (place, row.gpu.text if row.gpu else "", level_of(row), setting, mode)

    return sorted(judged, key=key)


def level_of(row: ModeVerdict) -> tuple[str, str, str]:
    return (row.level, row.framework, row.library)


def folded(judged: Iterable[ModeVerdict]) -> list[SameGpus]:
    """The GPUs in order, each with its rows; those that differ in numbers alone are one."""
    gpus = together((row.gpu, row) for row in ordered(judged))
    groups: list[list[list[ModeVerdict]]] = []
    for rows in gpus.values():
        group = next((group for group in groups if _same(group[0], rows)), None)
        if group is None:
            groups.append([rows])
        else:
            group.append(rows)
    return [_folded(group) for group in groups]


def _same(first: list[ModeVerdict], second: list[ModeVerdict]) -> bool:
    return _results(first) == _results(second) and all(
        one.tflops == other.tflops
        if one.tflops is None or other.tflops is None
        else abs(one.tflops - other.tflops) <= _SPREAD * max(one.tflops, other.tflops)
        for one, other in zip(first, second, strict=True)
    )


def _results(rows: list[ModeVerdict]) -> list[object]:
    """What was found of a GPU, without its index and without numbers."""
    gpu = rows[0].gpu
    whole = gpu is not None and gpu.kind == "gpu" and gpu.index is not None
    found: list[object] = [gpu.name if gpu and whole else gpu]
    for row in rows:
        remedy = row.remedy.text if row.remedy else ""
        reason = (row.cause or row.reason) if row.verdict in SILENT else ""
        found += [*level_of(row), row.mode, row.setting, row.control, row.verdict, reason]
        found += [row.bits.says, row.rate.says, row.hardware.says]
        found += [bool(row.slow), bool(row.cause), remedy]
    return found


def _folded(group: list[list[ModeVerdict]]) -> SameGpus:
    rows = [_slowest(same) for same in zip(*group, strict=True)]
    gpus = [gpu_rows[0].gpu for gpu_rows in group]
    first = gpus[0]
    title = first.text if first is not None else ""
    if first is not None and len(gpus) > 1:
        indices = [gpu.index for gpu in gpus if gpu is not None and gpu.index is not None]
        title = f"GPU {ranges(indices)} {first.name}"
    return SameGpus(title, len(group), rows)


def _slowest(same: tuple[ModeVerdict, ...]) -> ModeVerdict:
    """One GPU's row, with the commands of all where each GPU has its own."""
    row = min(same, key=lambda row: float("inf") if row.tflops is None else row.tflops)
    if row.remedy is None:
        return row
    commands = [command for one in same if one.remedy for command in one.remedy.commands]
    remedy = Remedy(row.remedy.text, list(dict.fromkeys(commands)))
    return msgspec.structs.replace(row, remedy=remedy)


def label(row: ModeVerdict) -> str:
    """What was multiplied, and how it was set: "TF32", "FP16 control", "FP32 default"."""
    if row.setting in _SETTING_LABELS:
        return _SETTING_LABELS[row.setting]
    return f"{row.mode.upper()} control" if row.control else row.mode.upper()


def computed_by(row: ModeVerdict) -> str:
    """ "PyTorch", "libcublas 12.9.1" """
    if row.level == "L0":
        return "the hardware, by the driver alone"
    return FRAMEWORKS.get(row.framework, row.framework) or row.library or "the target's cuBLAS"


def good_control(row: ModeVerdict) -> bool:
    """A control that did not use Tensor Cores, as intended."""
    return row.control and row.verdict == "not engaged"


def plain_fp32(row: ModeVerdict) -> bool:
    """FP32 that stayed FP32, as most frameworks leave it: no fault."""
    return row.verdict == "not engaged" and row.mode == "fp32"


def style_of(row: ModeVerdict) -> str:
    if good_control(row):
        return "pass"
    if row.control and row.verdict not in SILENT:
        return "fail"
    return "" if plain_fp32(row) else VERDICT_STYLES[row.verdict]


def needs_words(row: ModeVerdict) -> bool:
    """Whether a row is not what one wishes for, or somebody has to do something about it."""
    if row.verdict == "not applicable" or good_control(row):
        return False
    if row.verdict == "proven" or row.setting == "override":
        return row.control
    if row.verdict == "could not run" or plain_fp32(row):
        return bool(row.cause or row.remedy)
    return True


def number(value: float | None) -> str:
    """Three digits that matter, five characters at most; "?" for what no measurement gives."""
    if value is None:
        return ""
    if not 0 <= value < 99999:
        return "?"
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def share_of(row: ModeVerdict) -> str:
    """ "97 %": of the peak."""
    return "" if row.share is None else f"{100 * row.share:.0f} %" if 0 <= row.share < 9.99 else "?"


def ratio_of(row: ModeVerdict) -> str:
    """ "6.2": times the rate of FP32."""
    return "" if row.ratio is None else f"{row.ratio:.1f}" if 0 <= row.ratio < 999 else "?"


def can_be_proven(row: ModeVerdict) -> bool:
    return not row.control and row.mode != "fp32" and row.verdict != "not applicable"


def proven(judged: Iterable[ModeVerdict]) -> str:
    """ "all 5 modes proven at L0, L1 and L2 (PyTorch)." """
    every = list(filter(can_be_proven, judged))
    if not every:
        return "no mode of theirs was run."
    missing = [row for row in every if row.verdict != "proven"]
    modes = dict.fromkeys(row.mode for row in every)
    whole = [mode for mode in modes if mode not in {row.mode for row in missing}]
    levels = _levels(every)
    if not missing:
        count = f"all {len(whole)} modes" if len(whole) > 1 else label(every[0])
        return f"{count} proven at {levels}."
    labels = by_level(missing).items()
    names = "; ".join(f"{', '.join(dict.fromkeys(words))} ({where})" for where, words in labels)
    count = f"{len(whole) or 'none'} of {number_of(len(modes), 'mode')}"
    return f"{count} proven at {levels}; not proven: {names}."


def _levels(rows: Iterable[ModeVerdict]) -> str:
    """ "L0, L1 and L2 (PyTorch, JAX)" """
    levels: dict[str, dict[str, None]] = {}
    for row in sorted(rows, key=lambda row: row.level):
        names = levels.setdefault(row.level, {})
        if row.framework:
            names[FRAMEWORKS.get(row.framework, row.framework)] = None
    words = [f"{level} ({', '.join(names)})" if names else level for level, names in levels.items()]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def by_level(judged: Iterable[ModeVerdict]) -> dict[str, list[str]]:
    """The labels of rows by their level or framework."""
    return together(
        (FRAMEWORKS.get(row.framework, row.framework) or row.level, label(row)) for row in judged
    )


def names_of(judged: Iterable[ModeVerdict]) -> str:
    """ "L1 TF32, FP16; PyTorch FP32 default" """
    return "; ".join(f"{where} {', '.join(labels)}" for where, labels in by_level(judged).items())

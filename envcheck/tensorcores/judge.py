"""From the micro-kernels' facts to verdicts: what is proven, of which mode, at which level, on which GPU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ..checks.model import CannotJudge
from ..checks.view import View, gpu_name, known
from ..facts.gpu import Gpu
from ..facts.micro_kernels import Level, LevelRun, MicroKernels, Mode, ModeRun, Setting, Signature
from ..snapshot import Snapshot
from . import causes
from .circumstances import Setup
from .hardware import hardware
from .judged import Judged, Line, Verdict
from .peaks import Chip, chip
from .rates import Speed, name, question, speed
from .signatures import Reading, read
from .verdicts import verdict

# What a framework's level is asked for, where its process never came so far as to say.
_L2: tuple[tuple[Mode, Setting], ...] = (
    ("fp32", "control"),
    ("fp32", "default"),
    ("tf32", "switch-on"),
    ("fp16", "half"),
    ("bf16", "half"),
)
_BELOW: dict[Level, Level] = {"L1": "L0", "L2": "L1"}


class Seen(NamedTuple):
    """One mode's run and what each line of evidence makes of it."""

    run: LevelRun
    mode: ModeRun
    path: str  # in the Snapshot: "machine.micro_kernels.runs[0].modes[2]", or of the run
    subject: str
    chip: Chip
    reading: Reading
    speed: Speed
    hardware: Line

    @property
    def control(self) -> bool:
        """It has to come out "not engaged", or nothing is proven at its level."""
        plain = self.mode.mode == "fp32" and not self.mode.setting
        return self.mode.setting == "control" or (plain and self.run.level != "L2")

    @property
    def place(self) -> tuple[str, Level, str]:
        """What shares a control: the GPU, the level, and the library or framework."""
        run = self.run
        library = run.framework if run.level == "L2" else _library(run)
        return self.subject, run.level, library


class Case(NamedTuple):
    """A Judged with the facts under it."""

    seen: Seen
    judged: Judged


def judge(snapshot: Snapshot) -> list[Judged]:
    """Every mode (at L2 in every setting) of every level of every GPU, in the Snapshot's order."""
    return [case.judged for case in cases(View(snapshot))]


def cases(view: View) -> list[Case]:
    """As `judge`, with the facts that each verdict rests on."""
    seen = [one for path, facts in _facts(view) for one in _all_seen(view, path, facts)]
    controls: dict[tuple[str, Level, str], bool] = {}
    for one in seen:
        if one.control:
            well = _verdict(one, False) == "not engaged"
            controls[one.place] = controls.get(one.place, True) and well
    return [_judged(view, one, controls.get(one.place, False), seen) for one in seen]


def _facts(view: View) -> Iterator[tuple[str, MicroKernels]]:
    documents = {"machine": view.snapshot.machine, "target": view.snapshot.target}
    for name_, document in documents.items():
        probe = None if document is None else document.micro_kernels
        if probe is not None and probe.facts is not None:
            yield f"{name_}.micro_kernels", probe.facts


def _all_seen(view: View, path: str, facts: MicroKernels) -> Iterator[Seen]:
    for place, run in enumerate(facts.runs):
        this = f"{path}.runs[{place}]"
        for number, mode in enumerate(run.modes):
            yield _seen(view, run, mode, f"{this}.modes[{number}]")
        for mode in _unreached(run, facts):
            yield _seen(view, run, mode, this)


def _unreached(run: LevelRun, facts: MicroKernels) -> Iterator[ModeRun]:
    """The modes of a level that did not come so far as to report them."""
    if run.outcome == "ok":
        return
    told = {(mode.mode, mode.setting) for mode in run.modes}
    asked = _L2 if run.level == "L2" else tuple((mode, "") for mode in facts.modes)
    for mode, setting in asked:
        if (mode, setting) not in told and (mode in facts.modes or mode == "fp32"):
            outcome = "not-run" if run.outcome == "busy" else run.outcome
            yield ModeRun(mode=mode, setting=setting, outcome=outcome, reason=run.reason)


def _seen(view: View, run: LevelRun, mode: ModeRun, path: str) -> Seen:
    capability = known(run.compute_capability)
    this = chip(known(run.name) or "", capability or "")
    return Seen(
        run,
        mode,
        path,
        subject(view, run),
        this,
        _read(msgspec.json.encode(mode.signatures), capability, mode.mode),
        speed(run, mode, this),
        hardware(run, mode),
    )


@lru_cache(maxsize=256)
def _read(signatures: bytes, capability: str | None, mode: Mode) -> Reading:
    """Equal GPUs give equal bits, level by level: those are read once."""
    return read(msgspec.json.decode(signatures, type=list[Signature]), capability, mode)


def subject(view: View, run: LevelRun) -> str:
    """The GPU as view.gpu_name calls it; "" for a level that ran on none."""
    address = known(run.pci_address)
    if address is None and known(run.index) is None and known(run.name) is None:
        return ""
    gpu = Gpu(index=run.index, name=run.name, pci_address=run.pci_address)
    for other in _gpus(view):
        if address is not None and known(other.pci_address) == address:
            gpu = msgspec.structs.replace(
                gpu,
                index=run.index if known(run.index) is not None else other.index,
                name=run.name if known(run.name) is not None else other.name,
            )
    uuid = known(run.uuid) or ""
    return gpu_name(gpu) + (f", MIG instance {uuid}" if uuid.startswith("MIG-") else "")


def _gpus(view: View) -> list[Gpu]:
    try:
        return view.gpus
    except CannotJudge:
        return []


def _verdict(seen: Seen, control_ok: bool) -> Verdict:
    if seen.chip.has(seen.mode.mode) is False:
        return "not applicable"
    if seen.mode.outcome != "ok":
        return "could not run"
    reading = seen.reading
    blind = reading.blind and not reading.wrong  # a wrong result is no exact one
    return verdict(blind, reading.says, seen.speed.line.says, seen.hardware.says, control_ok)


def _judged(view: View, seen: Seen, control_ok: bool, others: list[Seen]) -> Case:
    run, mode = seen.run, seen.mode
    said = _verdict(seen, control_ok)
    why = causes.why(
        Setup(
            run,
            mode,
            seen.chip,
            said,
            seen.control,
            control_ok,
            _variables(view) if run.level != "L0" else {},
            _below(seen, others),
            _directory(view),
        )
    )
    measured = said != "not applicable"
    return Case(
        seen,
        Judged(
            level=run.level,
            framework=run.framework,
            library=_library(run) if run.level == "L1" else "",
            subject=seen.subject,
            mode=mode.mode,
            setting=mode.setting,
            control=seen.control,
            verdict=said,
            bits=Line(says=seen.reading.says, text=seen.reading.text),
            rate=seen.speed.line,
            hardware=seen.hardware,
            tflops=seen.speed.tflops,
            peak_tflops=seen.speed.peak_tflops if measured else None,
            share=seen.speed.share if measured else None,
            ratio=seen.speed.ratio,
            reason=_reason(seen, said, control_ok),
            cause=why.cause if why else "",
            slow=seen.speed.slow if measured else "",
            remedy=why.remedy if why else None,
        ),
    )


def _reason(seen: Seen, said: Verdict, control_ok: bool) -> str:
    reading, mode = seen.reading, seen.mode
    lines = (
        ("bits", reading.says),
        ("rate", seen.speed.line.says),
        ("hardware", seen.hardware.says),
    )
    if said == "not applicable":
        capability = known(seen.run.compute_capability) or "?"
        what = (
            seen.chip.why_none or f"compute capability {capability} has no {name(mode.mode)} mode"
        )
        return f"{what}: its products run on CUDA cores" if mode.outcome == "ok" else what
    if said == "could not run":
        return _why_not_run(seen)
    if said == "contradiction":
        return "; ".join(
            f"{line} say{'' if line == 'bits' else 's'} {says}" for line, says in lines
        )
    if reading.wrong or reading.unknown:
        return (reading.wrong or reading.text).rstrip(".")
    if said == "indicated":
        agree = [line for line, says in lines if says == "tensor"]
        if not control_ok and not seen.control:
            return (
                f"{' and '.join(agree)} say{'s' if agree == ['rate'] else ''} so, without a control"
            )
        return (
            f"only {' and '.join(agree)} say{'s' if agree in (['rate'], ['hardware']) else ''} so"
        )
    return "no line of evidence is enough" if said == "cannot tell" else ""


def _why_not_run(seen: Seen) -> str:
    if seen.run.outcome == "busy":
        return f"left alone, since it is in use: {seen.run.reason}"
    return seen.mode.reason or seen.mode.outcome


def _below(seen: Seen, others: list[Seen]) -> Verdict | None:
    """The verdict on what the mode rests on: the same GPU and mode, one level below."""
    level = _BELOW.get(seen.run.level)
    asked = question(seen.mode)
    for one in others:
        if (one.run.level, one.subject, one.mode.mode) == (level, seen.subject, asked):
            controls = [
                _verdict(other, False)
                for other in others
                if other.place == one.place and other.control
            ]
            return _verdict(one, bool(controls) and set(controls) == {"not engaged"})
    return None


def _variables(view: View) -> dict[str, str]:
    target = view.snapshot.target
    probe = None if target is None else target.environment
    return {} if probe is None or probe.facts is None else probe.facts.variables


def _directory(view: View) -> str:
    """The target's directory, where it is one."""
    target = view.snapshot.target
    kind, _, place = ("", "", "") if target is None else target.location.partition(":")
    return place if kind == "path" else ""


def _library(run: LevelRun) -> str:
    return f"libcublas {known(run.library_version) or ''}".strip() if run.level == "L1" else ""

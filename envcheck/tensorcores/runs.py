"""The micro-kernels' runs of a Snapshot, each with its GPU and with what its three lines of evidence say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ..facts.base import known
from ..facts.gpu import Gpu
from ..facts.micro_kernels import Level, LevelRun, MicroKernels, Mode, ModeRun, Setting, Signature
from ..facts.missing import CannotJudge
from ..facts.view import SnapshotView
from ..findings.subjects import Subject, gpu_subject, mig_instance
from .hardware import hardware
from .mode_verdict import Line, Reading
from .peaks import Chip, chip
from .rates import Speed, is_of_the_library, speed
from .signatures import read

# What a framework's level is asked for, where its process never came so far as to say.
_L2: tuple[tuple[Mode, Setting], ...] = (
    ("fp32", "control"),
    ("fp32", "default"),
    ("tf32", "switch-on"),
    ("fp16", "half"),
    ("bf16", "half"),
)

MOST_VECTORS = 256  # of one Snapshot: all levels, modes and settings together have some 150

Place = tuple[Subject | None, Level, str]  # a GPU, a level, and the library or framework
_Bits = tuple[bytes, str | None, Mode]  # signatures as JSON, compute capability, mode


class RunEvidence(NamedTuple):
    """One mode's run and what each line of evidence makes of it."""

    run: LevelRun
    mode: ModeRun
    path: str  # in the Snapshot: "machine.micro_kernels.runs[0].modes[2]", or of the run
    gpu: Subject | None
    chip: Chip
    reading: Reading
    speed: Speed
    hardware: Line
    place: Place  # what shares a control

    @property
    def control(self) -> bool:
        """It has to come out "not engaged", or nothing is proven at its level."""
        plain = self.mode.mode == "fp32" and not self.mode.setting
        return self.mode.setting == "control" or (plain and self.run.level != "L2")


def all_seen(view: SnapshotView) -> Iterator[RunEvidence]:
    """Every run, in the Snapshot's order; modes that a level did not come to are there with the reason."""
    gpus, reader = _gpus(view), _Reader()
    for path, facts in _facts(view):
        yield from _all_seen(gpus, reader, path, facts)


def _facts(view: SnapshotView) -> Iterator[tuple[str, MicroKernels]]:
    documents = {"machine": view.snapshot.machine, "target": view.snapshot.target}
    for name_, document in documents.items():
        probe = None if document is None else document.micro_kernels
        if probe is not None and probe.facts is not None:
            yield f"{name_}.micro_kernels", probe.facts


def _all_seen(
    gpus: Mapping[str, Gpu], reader: _Reader, path: str, facts: MicroKernels
) -> Iterator[RunEvidence]:
    for number, run in enumerate(facts.runs):
        this = f"{path}.runs[{number}]"
        who = gpu_of(gpus, run)
        place = who, run.level, run.framework if run.level == "L2" else library(run)
        for position, mode in enumerate(run.modes):
            yield _seen(reader, run, mode, f"{this}.modes[{position}]", place)
        for mode in _unreached(run, facts):
            yield _seen(reader, run, mode, this, place)


def _unreached(run: LevelRun, facts: MicroKernels) -> Iterator[ModeRun]:
    """The modes of a level that did not come so far as to report them."""
    if run.outcome == "ok":
        return
    reported = {(mode.mode, mode.setting) for mode in run.modes}
    asked = _L2 if run.level == "L2" else tuple((mode, "") for mode in facts.modes)
    for mode, setting in asked:
        if (mode, setting) not in reported and (mode in facts.modes or mode == "fp32"):
            outcome = "not-run" if run.outcome == "busy" else run.outcome
            yield ModeRun(mode=mode, setting=setting, outcome=outcome, reason=run.reason)


def _seen(reader: _Reader, run: LevelRun, mode: ModeRun, path: str, place: Place) -> RunEvidence:
    capability = known(run.compute_capability)
    this = chip(known(run.name) or "", capability or "")
    rate, instructions = speed(run, mode, this), hardware(run, mode)
    if rate.line.says == "not tensor" and (why := _not_the_units(run, mode, instructions)):
        line = Line(says="cannot tell", text=f"{rate.line.text}; {why}")
        rate = msgspec.structs.replace(rate, line=line, abstains=run.level != "L0")
    return RunEvidence(
        run,
        mode,
        path,
        place[0],
        this,
        reader.read(mode.signatures, capability, mode.mode),
        rate,
        instructions,
        place,
    )


def _not_the_units(run: LevelRun, mode: ModeRun, instructions: Line) -> str:
    """Why a low rate does not say that CUDA cores did the work; "" where it does."""
    own = run.level == "L0" and mode.mode != "fp32"
    if own and instructions.says == "tensor":
        return "the instructions are Tensor Cores': something slowed them, as another process's turns do"
    if is_of_the_library(run, mode.mode) and instructions.says != "not tensor":
        return "the library's INT8 may be slow on Tensor Cores, too"
    return ""


class _Reader:
    """Reads the bits of one Snapshot's runs: equal ones once, and no more different vectors than are real.

    A vector that was never seen takes milliseconds; a Snapshot from a stranger may have a million.
    """

    def __init__(self) -> None:
        self._found: dict[_Bits, Reading] = {}
        self._vectors: set[bytes] = set()

    def read(self, signatures: list[Signature], capability: str | None, mode: Mode) -> Reading:
        key = msgspec.json.encode(signatures), capability, mode
        reading = self._found.get(key)
        if reading is None:
            reading = self._found[key] = self._new(signatures, key)
        return reading

    def _new(self, signatures: list[Signature], key: _Bits) -> Reading:
        asked = {
            msgspec.json.encode((s.input_type, s.output_type, s.a, s.b, s.slots, s.accumulator))
            for s in signatures
        }
        if len(self._vectors | asked) > MOST_VECTORS:
            why = f"more than {MOST_VECTORS} different vectors are too many to read"
            return Reading(says="cannot tell", text=why)
        self._vectors |= asked
        return _read(*key)


@lru_cache(maxsize=256)
def _read(signatures: bytes, capability: str | None, mode: Mode) -> Reading:
    """Equal GPUs of any Snapshot give equal bits, level by level."""
    return read(msgspec.json.decode(signatures, type=list[Signature]), capability, mode)


def gpu_of(gpus: Mapping[str, Gpu], run: LevelRun) -> Subject | None:
    """The GPU or MIG instance; None for a level that ran on none. ``gpus``: by PCI address."""
    address = known(run.pci_address)
    if address is None and known(run.index) is None and known(run.name) is None:
        return None
    gpu = Gpu(index=run.index, name=run.name, pci_address=run.pci_address)
    if address is not None and (other := gpus.get(address)) is not None:
        gpu = msgspec.structs.replace(
            gpu,
            uuid=other.uuid,
            index=run.index if known(run.index) is not None else other.index,
            name=run.name if known(run.name) is not None else other.name,
        )
    uuid = known(run.uuid) or ""
    subject = gpu_subject(gpu)
    return mig_instance(subject, uuid) if uuid.startswith("MIG-") else subject


def _gpus(view: SnapshotView) -> dict[str, Gpu]:
    """By PCI address; none where the driver was not asked."""
    try:
        gpus = view.gpus
    except CannotJudge:
        return {}
    return {address: gpu for gpu in gpus if (address := known(gpu.pci_address)) is not None}


def library(run: LevelRun) -> str:
    """What computed at L1: "libcublas 12.9.1"; "" at other levels."""
    return f"libcublas {known(run.library_version) or ''}".strip() if run.level == "L1" else ""

"""Where rows can run: which style on which GPUs, and which modes are there. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from ..data.versions import parse_version
from ..exit_codes import Cannot, UsageError
from ..facts.base import known
from ..facts.bench import LeftOut, Precision, Style
from ..facts.gpu import Gpu
from ..facts.micro_kernels import Mode
from ..facts.missing import CannotJudge
from ..facts.snapshot import Document, Snapshot
from ..facts.target import FRAMEWORKS, Framework
from ..facts.view import view_of
from ..tensorcores.peaks import Chip, chip

_IMPORT = 8.0  # seconds, where no import was timed


class BenchGpu(msgspec.Struct, frozen=True):
    address: str
    index: int | None
    name: str
    capability: str
    memory_mib: int  # all of it; 0 where that is not known

    @property
    def chip(self) -> Chip:
        return chip(self.name, self.capability)

    @property
    def words(self) -> str:
        return f"GPU {self.index}" if self.index is not None else f"GPU {self.address}"


class BenchPlace(NamedTuple):
    """One style, and what it runs on: GPUs, or the CPU where it has none."""

    style: Style
    framework: Framework
    gpus: list[BenchGpu]
    host_mib: int  # memory of the machine that is free; 0 where that is not known

    @property
    def title(self) -> str:
        version = known(self.framework.version) or ""
        return f"{FRAMEWORKS[self.framework.name]} {version}".strip()

    @property
    def import_seconds(self) -> float:
        seconds = known(self.framework.import_seconds)
        return min(max(seconds, 0.1), 120.0) if seconds is not None else _IMPORT

    @property
    def memory_mib(self) -> int:
        """What a row may take at most: of the smallest GPU, or of the host."""
        return min((gpu.memory_mib for gpu in self.gpus), default=self.host_mib)

    @property
    def half(self) -> Literal["float16", "bfloat16"]:
        """The type of AMP; JAX's users cast to bfloat16."""
        return "float16" if self.gpus and self.style != "jax" else "bfloat16"

    def why_not(self, precision: Precision) -> str:
        """Why a precision is not to be had here; "" where it is, or that is not known."""
        if not self.gpus:
            if precision == "tf32":
                return "a CPU has no TF32"
            if self.style == "session" and precision == "amp":
                return f"{self.title} has no AMP on a CPU"
            return ""
        if precision == "fp32":
            return ""
        mode: Mode = "tf32"
        if precision == "amp":
            mode = "fp16" if self.half == "float16" else "bf16"
        lacking = [gpu for gpu in self.gpus if gpu.chip.has(mode) is False]
        if not lacking:
            return ""
        first = lacking[0]
        why = first.chip.why_none
        if not why and mode != "fp16" and _is_before(first.capability, "8.0"):
            why = f"{mode.upper()} came with compute capability 8.0"
        return f"{first.name} has no {mode.upper()} Tensor Cores" + (f": {why}" if why else "")


def _is_before(version: str, other: str) -> bool:
    one, two = parse_version(version), parse_version(other)
    return one is not None and two is not None and one < two


def places(snapshot: Snapshot, chosen: list[int]) -> tuple[list[BenchPlace], list[LeftOut]]:
    """One place for each framework of the target that can be imported. chosen: GPUs' indices; none: all.

    Raises UsageError for a GPU that is not there, Cannot where those chosen cannot be used.
    """
    gpus, left_out = _gpus(snapshot, chosen)
    target = snapshot.target
    if target is None:
        return [], left_out
    found = []
    for framework in frameworks(target):
        mine = gpus
        why = _sees_no_gpu(framework) if gpus else ""
        if why:
            mine = []
            left_out.append(LeftOut(f"{FRAMEWORKS[framework.name]} on the GPUs", why))
        place = BenchPlace(style(framework), framework, mine, _host(snapshot))
        found.append(place)
    return found, left_out


def frameworks(target: Document | None) -> list[Framework]:
    """The frameworks of the target that can be imported."""
    if target is None:
        return []
    probes = (target.tensorflow, target.torch, target.jax)
    facts = [probe.facts for probe in probes if probe is not None and probe.facts is not None]
    return [one for one in facts if one.imported is True]


def style(framework: Framework) -> Style:
    """How models are written for it."""
    if framework.name == "torch":
        return "torch"
    if framework.name == "jax":
        return "jax"
    return "session" if (known(framework.version) or "").startswith("1.") else "keras"


def _gpus(snapshot: Snapshot, chosen: list[int]) -> tuple[list[BenchGpu], list[LeftOut]]:
    left_out: list[LeftOut] = []
    try:
        seen = view_of(snapshot).seen_gpus
    except CannotJudge:
        seen = []
    there = {known(gpu.index) for gpu in seen}
    for index in chosen:
        if index not in there:
            have = ", ".join(str(one) for one in sorted(one for one in there if one is not None))
            raise UsageError(f"--gpu {index}: there is {f'only {have}' if have else 'no GPU'}")
    found = []
    for gpu in seen:
        if chosen and known(gpu.index) not in chosen:
            continue
        one = bench_gpu(gpu)
        if one is None:
            continue
        if known(gpu.mig_enabled) is True:
            left_out.append(LeftOut(one.words, "MIG is on: it is cut into instances"))
            continue
        found.append(one)
    if chosen and not found:
        raise Cannot(
            f"no row can run on the GPUs of --gpu: {left_out[0].reason}"
            if left_out
            else "no row can run on the GPUs of --gpu: their PCI addresses are not known"
        )
    return found, left_out


def bench_gpu(gpu: Gpu) -> BenchGpu | None:
    """What a bench must know of a GPU; None for one whose address is not known."""
    address = known(gpu.pci_address)
    if not address:
        return None
    return BenchGpu(
        address,
        known(gpu.index),
        known(gpu.name) or "",
        known(gpu.compute_capability) or "",
        max(0, known(gpu.memory_total_mib) or 0),
    )


def _sees_no_gpu(framework: Framework) -> str:
    """Why it cannot use the machine's GPUs; "" where it can, or that is not known."""
    if known(framework.cuda_build) is False:
        return "it was built without CUDA"
    if known(framework.gpus) == []:
        return "it sees none of them: envcheck doctor says why"
    return ""


def _host(snapshot: Snapshot) -> int:
    probe = snapshot.machine.host
    if probe is None or probe.facts is None:
        return 0
    return max(0, known(probe.facts.memory_available_mib) or 0)

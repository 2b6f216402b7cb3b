"""Simulated machines whose micro-kernels ran: bits from the model, rates from the tables of peaks.

Every builder takes changes, so that a test puts one fault into a healthy run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import targets
from build import ok
from msgspec.structs import replace

from envcheck.collector.kernels import TYPES
from envcheck.collector.kernels.vectors import SETS, SIZES, VECTORS, Vector, encode, text
from envcheck.facts.gpu import Gpu
from envcheck.facts.micro_kernels import (
    Hardware,
    Level,
    LevelRun,
    MicroKernels,
    Mode,
    ModeRun,
    Output,
    Rate,
    Setting,
    Signature,
)
from envcheck.facts.snapshot import SCHEMA, Snapshot
from envcheck.facts.view import SnapshotView
from envcheck.tensorcores.chains import chain, integer_dot
from envcheck.tensorcores.formats import convert, decode, product
from envcheck.tensorcores.model import multiply_add
from envcheck.tensorcores.peaks import Chip, chip, tflops

MODES: tuple[Mode, ...] = ("fp32", "tf32", "fp16", "bf16", "int8", "fp8")
FRAMEWORKS = {"tensorflow": "2.19.1", "torch": "2.6.0+cu124", "jax": "0.6.2"}
SETTINGS: tuple[tuple[Mode, Setting], ...] = (
    ("fp32", "default"),
    ("tf32", "switch-on"),
    ("fp32", "switch-off"),
    ("fp16", "half"),
    ("bf16", "half"),
    ("fp32", "override"),
    ("fp32", "control"),
)
EFFICIENCY = 0.85  # of the peak, what the simulated kernels reach
OLD_INSTRUCTIONS = 0.6  # the same of mma.sync on Hopper and Blackwell
_LENGTH = 64  # terms of a simulated dot product


class Machine(NamedTuple):
    """A GPU: its name as libcuda tells it, and the clocks (MHz) that it was seen at."""

    name: str
    capability: str
    multiprocessors: int
    clock_max: float
    clock: float

    @property
    def chip(self) -> Chip:
        return chip(self.name, self.capability)

    @property
    def major(self) -> int:
        return int(self.capability.partition(".")[0])


MACHINES = {
    "V100": Machine("Tesla V100-SXM2-16GB", "7.0", 80, 1530.0, 1455.0),
    "T4": Machine("Tesla T4", "7.5", 40, 1590.0, 1500.0),
    "A100": Machine("NVIDIA A100-SXM4-40GB", "8.0", 108, 1410.0, 1410.0),
    "RTX 4090": Machine("NVIDIA GeForce RTX 4090", "8.9", 128, 2520.0, 2520.0),
    "L40S": Machine("NVIDIA L40S", "8.9", 142, 2520.0, 2400.0),
    "H100": Machine("NVIDIA H100 80GB HBM3", "9.0", 132, 1980.0, 1755.0),
    "B200": Machine("NVIDIA B200", "10.0", 148, 1965.0, 1900.0),
}


def signatures(
    mode: Mode, machine: Machine, engaged: bool = True, level: Level = "L1"
) -> list[Signature]:
    """What the mode's vectors give: on that machine's Tensor Core, or on a chain of FP32 FMAs."""
    return list(_signatures(mode, machine, engaged, level))


@cache
def _signatures(mode: Mode, machine: Machine, engaged: bool, level: Level) -> tuple[Signature, ...]:
    kinds = TYPES[mode]
    if level == "L2" and mode in ("fp16", "bf16"):
        kinds = kinds[1:]  # a framework gives halves back
    if level == "L0" and mode == "bf16":
        kinds = kinds[:1]
    return tuple(
        signature(VECTORS[name], mode, kind, machine, engaged)
        for kind in kinds
        for name in SETS[kind]
    )


def signature(
    vector: Vector, mode: Mode, types: tuple[str, str], machine: Machine, engaged: bool = True
) -> Signature:
    input_type, output_type = types
    a = [encode(value, input_type) for value in vector.a]
    b = [encode(value, input_type) for value in vector.b]
    word = _result(vector, a, b, mode, types, machine, engaged)
    facts: Any = {"input_type": input_type, "output_type": output_type}
    return Signature(
        vector=vector.name,
        a=[text(one, input_type) for one in a],
        b=[text(one, input_type) for one in b],
        slots=list(vector.slots),
        length=_LENGTH,
        period=vector.period,
        outputs=[Output(bits=f"{word:0{2 * SIZES[output_type]}X}", count=1024)],
        distinct=1,
        **facts,
    )


def _result(
    vector: Vector,
    a: Sequence[int],
    b: Sequence[int],
    mode: Mode,
    types: tuple[str, str],
    machine: Machine,
    engaged: bool,
) -> int:
    input_type, output_type = types
    if output_type == "int32":
        return integer_dot(a, b, 0)
    if not engaged or mode == "fp32":
        products = [
            product(decode(x, input_type), decode(y, input_type)) for x, y in zip(a, b, strict=True)
        ]
        return convert(chain(products, 0, "fp32"), "fp32", output_type)
    dense_a, dense_b = ([0] * _LENGTH, [0] * _LENGTH)
    for slot, x, y in zip(vector.slots, a, b, strict=True):
        dense_a[slot], dense_b[slot] = x, y
    words = "tf32" if mode == "tf32" else input_type
    word = multiply_add(dense_a, dense_b, 0, words, "fp32", machine.capability, "RNA")
    return convert(word, "fp32", output_type)


def rate(machine: Machine, level: Level, mode: Mode, engaged: bool = True, **changes: Any) -> Rate:
    """A rate of ``EFFICIENCY`` of the peak of Tensor Cores, or of CUDA cores where not engaged."""
    there = machine.chip
    lanes = there.lanes or 64.0
    own = there.rate(mode) if engaged else lanes
    old = level == "L0" and machine.major in (9, 10) and mode not in ("fp32", "fp8") and engaged
    clock = changes.get("clock_mhz")
    clock = clock if isinstance(clock, float) else machine.clock
    fma = (own or lanes) * (OLD_INSTRUCTIONS if old else EFFICIENCY)
    facts: dict[str, Any] = {
        "timer": "clock64" if level == "L0" else "cuda-events",
        "shape": [] if level == "L0" else [4096, 4096, 4096],
        "runs": 10,
        "seconds": 0.002,
        "spread": 1.02,
        "multiprocessors": machine.multiprocessors,
        "tflops": tflops(fma, machine.multiprocessors, clock),
        "fp32_tflops": tflops(lanes * EFFICIENCY, machine.multiprocessors, clock),
        "clock_mhz": machine.clock,
        "clock_source": "NVML",
        "clock_event_reasons": ["sw_power_cap"] if machine.clock < machine.clock_max else [],
    }
    if level == "L0":
        facts["fma_per_clock_per_sm"] = fma
    return Rate(**(facts | changes))


def opcodes(machine: Machine, mode: Mode, engaged: bool = True) -> dict[str, int]:
    """Of the kernel that the driver makes: a pure FFMA kernel has HFMA2.MMA in it, to load constants."""
    if mode == "fp32" or not engaged:
        return {"IDP": 64} if mode == "int8" else {"FFMA": 64, "HFMA2.MMA": 3}
    if mode == "int8":
        return {"IMMA": 64}
    if mode == "fp8":
        return {"QGMMA": 64} if machine.major == 9 else {"QMMA": 64}
    return {"HMMA": 64, "FFMA": 3}


def kernels(machine: Machine, mode: Mode, engaged: bool = True) -> list[str]:
    """The names that CUPTI sees, as cuBLAS 12.9 has them."""
    family = {7: "volta", 8: "ampere"}.get(machine.major, "ampere")
    family = "turing" if machine.capability == "7.5" else family
    if mode == "fp32" or not engaged:
        if mode == "int8":
            return [f"{family}_igemm_int8_128x128_ldg4_nn"]
        return [f"{family}_sgemm_128x128_nn"]
    helper = "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb1EffLb0EEEvv"
    name = {
        "tf32": "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16_stage4_warpsize2x2x1",
        "fp16": {
            "volta": "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
            "turing": "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn",
            "ampere": "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_nn",
        }[family],
        "bf16": "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn",
        "int8": "turing_int32_i8816gemm_int8_128x128_ldg16_nt"
        if family == "turing"
        else "ampere_int32_i16832gemm_int8_128x128_ldg16_stages_64x3_tn",
        "fp8": "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x64x64_stage4_warpsize2x2x1",
    }[mode]
    if machine.major >= 9 and mode in ("fp16", "bf16", "fp8"):
        name = "nvjet_hsh_128x256_64x4_2x1_v_bz_coopB_NNN"
    return [name, helper]


def mode_run(
    machine: Machine,
    level: Level,
    mode: Mode,
    setting: Setting = "",
    engaged: bool = True,
    **changes: Any,
) -> ModeRun:
    """A healthy run. engaged: its FP32 matrices, too, went through Tensor Cores where they may."""
    asked: Mode = "tf32" if mode == "fp32" and setting and engaged else mode
    there = machine.chip.has(asked)
    if not there:
        return ModeRun(
            mode=mode,
            setting=setting,
            outcome="not-supported",
            reason=f"the chip has no {asked} products",
        )
    # A framework's FP32 vectors are the same whatever is made of them.
    facts: dict[str, Any] = {
        "outcome": "ok",
        "call": _call(machine, level, mode),
        "signatures": signatures(asked, machine, engaged, level),
        "rate": rate(machine, level, asked, engaged),
        "hardware": Hardware(opcodes=opcodes(machine, asked, engaged))
        if level == "L0"
        else Hardware(kernel_names=kernels(machine, asked, engaged)),
    }
    return ModeRun(mode=mode, setting=setting, **(facts | changes))


def _call(machine: Machine, level: Level, mode: Mode) -> str:
    if level != "L0":
        return "cublasGemmEx" if level == "L1" else "matmul"
    if mode == "fp32":
        return "fma.rn.f32"
    if mode == "fp8" and machine.major == 9:
        return "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3"
    return "mma.sync.aligned"


def level_run(machine: Machine, level: Level, framework: str = "", **changes: Any) -> LevelRun:
    """A healthy level of one GPU; ``modes`` replaces all of its runs."""
    facts: dict[str, Any] = {
        "level": level,
        "framework": framework,
        "pci_address": "0000:01:00.0",
        "uuid": "GPU-<uuid-1>",
        "index": 0,
        "name": machine.name,
        "compute_capability": machine.capability,
        "multiprocessors": machine.multiprocessors,
        "clock_max_mhz": machine.clock_max,
        "outcome": "ok",
        "modes": _modes(machine, level, framework) if "modes" not in changes else [],
    }
    if level != "L0":
        facts["library_version"] = "12.9.1"
    if framework:
        facts["framework_version"] = FRAMEWORKS[framework]
    return LevelRun(**(facts | changes))


def _modes(machine: Machine, level: Level, framework: str) -> list[ModeRun]:
    if level != "L2":
        modes = [mode_run(machine, level, mode, engaged=mode != "fp32") for mode in MODES]
        if level == "L0" and machine.major == 10:  # needs tcgen05, which is not written
            modes[-1] = ModeRun(mode="fp8", outcome="not-supported", reason="needs tcgen05")
        return modes
    uses_tf32 = machine.chip.has("tf32") is True
    on = {"default": framework != "torch", "override": framework == "jax"}
    return [
        mode_run(
            machine,
            "L2",
            mode,
            setting,
            setting in ("switch-on", "half") or (uses_tf32 and on.get(setting, False)),
        )
        for mode, setting in SETTINGS
    ]


def replaced(run: LevelRun, mode: Mode, new: ModeRun, setting: Setting = "") -> LevelRun:
    """The level with one mode's run replaced."""
    found = [new if (one.mode, one.setting) == (mode, setting) else one for one in run.modes]
    facts = {name: getattr(run, name) for name in LevelRun.__struct_fields__}
    return LevelRun(**(facts | {"modes": found}))


def micro_kernels(*runs: LevelRun, **changes: Any) -> MicroKernels:
    levels = sorted({run.level for run in runs})
    return MicroKernels(**({"levels": levels, "modes": list(MODES), "runs": list(runs)} | changes))


def healthy_runs(machine: Machine) -> list[LevelRun]:
    """All levels of one GPU, L2 in every framework."""
    return [
        level_run(machine, "L0"),
        level_run(machine, "L1"),
        *(level_run(machine, "L2", framework) for framework in FRAMEWORKS),
    ]


def snapshot(
    machine: Machine, runs: Sequence[LevelRun] | None = None, target: Any = None, **probes: Any
) -> Snapshot:
    """A machine with one such GPU, and its runs (all healthy ones, unless given).

    target: further probes of the target's document.
    """
    runs = healthy_runs(machine) if runs is None else runs
    gpu: Gpu = targets.gpu(0, machine.name, machine.capability)
    below = [run for run in runs if run.level == "L0"]
    above = [run for run in runs if run.level != "L0"]
    if below:
        probes["micro_kernels"] = ok(micro_kernels(*below))
    sees = targets.tensorflow(gpus=[targets.FrameworkGpu(name=machine.name)])
    kept = {"tensorflow": sees} | (target or {})
    if above:
        kept["micro_kernels"] = ok(micro_kernels(*above))
    return Snapshot(
        schema=SCHEMA,
        redacted=True,
        machine=targets.document(**targets.machine(gpu, **probes)),
        target=targets.good_target(**kept),
    )


def with_micro_kernels(whole: Snapshot, framework: str, cublas: str = "12.9.1") -> Snapshot:
    """A machine of H100s whose healthy runs of all levels are put into it, at L2 in one framework.

    cublas: the version that L1 and L2 used. Where there is no target, it gets a good one.
    """
    machine = MACHINES["H100"]
    below: list[LevelRun] = []
    above: list[LevelRun] = []
    for number, gpu in enumerate(SnapshotView(whole).gpus):
        here: Any = {"pci_address": gpu.pci_address, "index": number, "uuid": gpu.uuid}
        below.append(level_run(machine, "L0", **here))
        used: Any = here | {"library_version": cublas}
        above.append(level_run(machine, "L1", **used))
        above.append(level_run(machine, "L2", framework, **used))
    target = whole.target or targets.good_target()
    return replace(
        whole,
        machine=replace(whole.machine, micro_kernels=ok(micro_kernels(*below))),
        target=replace(target, micro_kernels=ok(micro_kernels(*above))),
    )

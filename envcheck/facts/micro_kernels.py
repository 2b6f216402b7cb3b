"""Facts that the micro-kernels found: what matrix products gave, how fast, and on which hardware."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .base import NOT_COLLECTED, Address, Facts, Maybe

Level = Literal["L0", "L1", "L2"]  # the driver alone, the target's cuBLAS, the target's framework
Mode = Literal["fp32", "tf32", "fp16", "bf16", "int8", "fp8"]
# What a matrix holds. "tf32" inputs are FP32 words that the unit rounds; it is never a word's type.
ElementType = Literal["fp32", "fp16", "bf16", "e4m3", "int8", "int32"]
# How a framework was set for one product; "" at L0 and L1.
Setting = Literal[
    "",
    "default",  # FP32 matrices, the way the user has it
    "switch-on",  # FP32 matrices, the framework set to use TF32
    "switch-off",  # FP32 matrices, the framework set to stay with FP32
    "override",  # FP32 matrices, default settings under NVIDIA_TF32_OVERRIDE=0
    "control",  # FP32 matrices, set to stay with FP32 under NVIDIA_TF32_OVERRIDE=0
    "half",  # FP16 or BF16 matrices
]

# A word's bits, most significant first: "3F800001", "3C00".
Bits = Annotated[str, msgspec.Meta(pattern="^[0-9A-F]{2,8}$")]


class Output(Facts, frozen=True, kw_only=True):
    bits: Bits
    count: int  # of elements of the result


class Signature(Facts, frozen=True, kw_only=True):
    """One dot product, in many places of one matrix product, and the outputs that came back.

    The dot product has ``length`` terms. Those in ``slots`` multiply ``a`` by ``b``; all others are zero.
    In a large matrix product every row has them at another multiple of ``period``.
    """

    vector: str  # "S1"
    input_type: ElementType
    output_type: ElementType
    a: list[Bits]
    b: list[Bits]
    slots: list[int]
    length: int
    period: int = 0  # 0: at the beginning, everywhere
    accumulator: Bits = "00"  # accumulator input C, of the output's type; "00": zero
    outputs: list[Output] = []  # the most frequent first, eight at most
    distinct: int = 0  # how many different outputs there were


class Rate(Facts, frozen=True, kw_only=True):
    """How fast one kind of product was, and the clock and limits that it ran under."""

    timer: Literal["clock64", "cuda-events", "host-clock"]
    shape: list[int] = []  # [m, n, k] of the product; empty at L0
    runs: int = 0
    seconds: Maybe[float] = NOT_COLLECTED  # of one product: the median (L0: of the kernel)
    spread: Maybe[float] = NOT_COLLECTED  # 90th over 10th percentile of the runs
    fma_per_clock_per_sm: Maybe[float] = NOT_COLLECTED  # L0
    multiprocessors: Maybe[int] = NOT_COLLECTED  # that took part
    tflops: Maybe[float] = NOT_COLLECTED  # 2 x FMA per second; for INT8 TOP/s
    fp32_tflops: Maybe[float] = NOT_COLLECTED  # of the FP32 products between these (at L0: of FFMA)
    clock_mhz: Maybe[float] = NOT_COLLECTED  # SM clock while it ran
    clock_source: str = ""  # "clock64 over CUDA events", "NVML"
    clock_event_reasons: Maybe[list[str]] = NOT_COLLECTED  # as in Gpu, seen while it ran
    power_w: Maybe[float] = NOT_COLLECTED
    temperature_c: Maybe[int] = NOT_COLLECTED


class Hardware(Facts, frozen=True, kw_only=True):
    """What the machine itself says about the kernel that ran."""

    # Instructions of the kernel that the driver made, by kind: {"HMMA": 64, "FFMA": 3}.
    opcodes: dict[str, int] = {}
    opcodes_reason: str = ""  # why there are none
    kernel_names: Maybe[list[str]] = NOT_COLLECTED  # as CUPTI's activity API saw them


class ModeRun(Facts, frozen=True, kw_only=True):
    """One mode (at L2 in one setting) on one GPU at one level."""

    mode: Mode
    setting: Setting = ""
    outcome: Literal[
        "ok",
        "error",  # a call failed, or the framework raised
        "out-of-memory",
        "timeout",  # no answer; what was seen before is here
        "crashed",  # the process died
        "not-supported",  # the chip, driver, library or framework does not have it
        "not-run",  # left out: no time left, not asked for
    ]
    reason: str = ""  # one line; empty when ok
    call: str = ""  # "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "cublasGemmEx ..."
    signatures: list[Signature] = []
    rate: Rate | None = None
    rate_reason: str = ""  # why there is none
    hardware: Hardware = Hardware()


class LevelRun(Facts, frozen=True, kw_only=True):
    """One GPU at one level (at L1 with one cuBLAS, at L2 in one framework)."""

    level: Level
    framework: Literal["", "tensorflow", "torch", "jax"] = ""
    pci_address: Maybe[Address] = NOT_COLLECTED
    uuid: Maybe[str] = NOT_COLLECTED  # "GPU-...", or "MIG-..." of the instance that it ran on
    index: Maybe[int] = NOT_COLLECTED  # nvidia-smi's
    name: Maybe[str] = NOT_COLLECTED
    compute_capability: Maybe[str] = NOT_COLLECTED
    multiprocessors: Maybe[int] = NOT_COLLECTED  # of the device or MIG instance
    clock_max_mhz: Maybe[float] = NOT_COLLECTED  # SM clock, as libcuda reports it
    memory_free_mib: Maybe[int] = NOT_COLLECTED  # when it began
    driver_api_version: Maybe[str] = NOT_COLLECTED
    outcome: Literal["ok", "busy", "not-run", "error", "timeout", "crashed"]
    reason: str = ""
    busy: bool = False  # another process was using the GPU (and --busy-ok was given)
    library: Maybe[str] = NOT_COLLECTED  # L1, L2: libcublas, the file that was mapped
    library_version: Maybe[str] = NOT_COLLECTED  # of libcublas
    framework_version: Maybe[str] = NOT_COLLECTED
    # Variables that change the arithmetic, as the process that ran had them.
    variables: dict[str, str] = {}
    seconds: float = 0.0
    restarts: int = 0  # after a mode that died
    modes: list[ModeRun] = []


class MicroKernels(Facts, frozen=True, kw_only=True):
    """All runs of this document's levels: L0 in the machine's, L1 and L2 in the target's."""

    levels: list[Level] = []  # that were asked for
    modes: list[Mode] = []  # that were asked for
    busy_ok: bool = False
    inside: str = (
        ""  # the container that they ran in ("image:REF"); "" where that was the machine itself
    )
    runs: list[LevelRun] = []

"""Facts of `envcheck soak`: what all GPUs computed for how long, and what happened on the way."""

from __future__ import annotations

from typing import Literal

from .base import NOT_COLLECTED, Address, Facts, Maybe

GpuState = Literal[
    "ok",
    "died",  # its context or its process did
    "hung",  # nothing came of it any more, and it was ended
    "busy",  # another process uses it
    "not-run",  # it could not be begun
    "error",  # nothing was computed
]
Counters = dict[str, float]  # names of collector/telemetry/quantities.ERRORS


class SoakMinute(Facts, frozen=True, kw_only=True):
    """What one GPU did in a minute; of a long soak, in several. null: not known."""

    began: float
    seconds: float
    products: int = 0
    wrong: int = 0  # results that were not what they had been: products and memory
    tflops: float | None = None
    sm_clock_mhz: float | None = None  # mean
    memory_clock_mhz: float | None = None  # mean
    temperature_c: float | None = None  # the highest
    memory_temperature_c: float | None = None  # the highest
    power_w: float | None = None  # mean
    throttled: dict[str, float] = {}  # reason: share of the samples that had it, 0 to 1
    grown: Counters = {}  # counters that grew, and by how much
    pcie_width: int | None = None  # the least
    pcie_gen: int | None = None  # the least
    other_processes: int | None = None  # the most
    xids: list[int] = []
    samples: int = 0
    reason_samples: int = 0  # those in which the reasons for held-down clocks could be read


class Mismatch(Facts, frozen=True, kw_only=True):
    """A result that was not what it had to be."""

    seconds: float
    what: Literal[
        "product",  # it is not the first one of its round
        "first",  # of the first one of a round, some blocks are not what most blocks are
        "memory",  # it is not what was written
        "peers",  # the first one of a round is not the other GPUs' of that name
    ]
    product: int = (
        0  # its number, from 1 on; of memory, how often all of it had been looked at before
    )
    words: int = 0  # of 32 bits that differ; of memory, of 64
    row: int | None = None  # of one of them; of envcheck's own kernel, a thread of its block
    column: int | None = None  # of envcheck's own kernel, one of that thread's words
    found: str = ""  # the word, in hexadecimal
    wanted: str = ""
    unit: int | None = None  # the multiprocessor that made it
    addresses: str = ""  # of memory, from the first to the last that differ
    bits: str = ""  # of memory, all that differ, in hexadecimal


class XidSeen(Facts, frozen=True, kw_only=True):
    seconds: float
    number: int


class SoakGpu(Facts, frozen=True, kw_only=True):
    """One GPU."""

    gpu: Maybe[Address] = NOT_COLLECTED
    index: Maybe[int] = NOT_COLLECTED
    name: Maybe[str] = NOT_COLLECTED
    outcome: GpuState
    reason: str = ""
    ended: float | None = None  # when it died or hung
    lost: str = ""  # NVML's words, where it lost the GPU
    lost_at: float | None = None
    level: Literal["", "driver", "cublas"] = ""  # whose products
    mode: str = ""  # "fp16"
    call: str = ""
    library: str = ""
    library_version: str = ""
    tflop: float = 0.0  # of a product, 10^12 operations
    words: int = 0  # of a product's result, each compared
    memory_mib: int = 0  # that held patterns
    passes: int = 0  # over all of it
    products: int = 0
    rounds: int = 0  # of products with the same operands, other ones in each
    digest: str = ""  # SHA-256 of the first round's result
    wrong: int = 0  # results that were not what they had been
    wrong_words: int = 0
    mismatches: list[Mismatch] = []  # the first of them
    xids: list[XidSeen] = []
    errors_before: Counters = {}
    errors_after: Counters = {}
    no_samples: str = ""  # why there are none
    minutes: list[SoakMinute] = []
    log: list[str] = []  # what its process wrote about GPUs


class Soak(Facts, frozen=True, kw_only=True):
    """One run of `envcheck soak`."""

    asked: float = 0.0  # seconds
    began: str = ""  # UTC, "2026-11-20T18:24:52Z"
    seconds: float = 0.0
    stopped: Literal["", "user", "fail-fast", "none-left"] = ""  # before its time was over, by what
    busy_ok: bool = False  # GPUs that others used were taken, too
    gpus: list[SoakGpu] = []

"""Facts of `envcheck bench`: what was trained, how fast, with which memory."""

from __future__ import annotations

from typing import Literal

from .acceleration import Value
from .base import NOT_COLLECTED, Address, Facts, Maybe
from .telemetry import GpuSamples

Style = Literal["session", "keras", "torch", "jax"]
Precision = Literal["fp32", "tf32", "amp"]


class BenchRow(Facts, frozen=True, kw_only=True):
    """What is to be run: core plans it, the collector runs it, and the result carries it along."""

    name: str  # unique among a run's rows: "resnet50 amp xla 256"
    what: str  # as the command line has it: "resnet50", "bert"
    model: str  # "resnet50", "mnist", "bert-base", "unet-2d", "mlp"
    style: Style  # TensorFlow 1 by sessions, TensorFlow 2 by Keras, PyTorch, JAX
    precision: Precision = "fp32"
    half: Literal["", "float16", "bfloat16"] = (
        ""  # the type of "amp"; with float16 losses are scaled
    )
    compiled: bool = False  # by XLA in TensorFlow and JAX, by torch.compile in PyTorch
    batch: int = 1  # per GPU
    image: int = 0  # pixels on a side; 0: the model has none
    length: int = 0  # tokens of a sequence; 0: the model has none
    small: bool = False  # fewer and narrower layers, for a machine without a GPU
    seed: int = 1
    gpus: list[Address] = []  # none: on the CPU
    together: Literal["", "mirrored", "ddp"] = ""  # on all of ``gpus``, as one job
    memory_mib: int = 0  # that it takes of each GPU (of the host on a CPU), estimated; 0: not known
    group: str = ""  # rows of a group may be compared


class Repetition(Facts, frozen=True, kw_only=True):
    """Steps that were timed in one piece."""

    began: float  # seconds since the bench began
    seconds: float
    steps: int
    skipped: int = 0  # of these steps, by the loss scaler


class WarmUp(Facts, frozen=True, kw_only=True):
    steps: int = 0
    seconds: float = 0.0
    steady: bool = False  # the rate had come to rest


class RowMemory(Facts, frozen=True, kw_only=True):
    """The most that a row took of its GPU, in MiB."""

    tensors_mib: Maybe[int] = NOT_COLLECTED  # what the framework's tensors took at their peak
    pool_mib: Maybe[int] = NOT_COLLECTED  # what its allocator held


class RowRun(Facts, frozen=True, kw_only=True):
    """What became of a row."""

    row: BenchRow
    outcome: Literal[
        "ok",
        "out-of-memory",
        "not-supported",  # this version, build or device does not have it
        "not-applicable",  # it is not there
        "not-run",  # what it needs is missing: time, memory
        "busy",  # another process uses the GPU
        "error",
        "timeout",
        "crashed",
        "interrupted",  # by the user: what was measured until then is kept
    ]
    reason: str = ""  # one line; empty when ok
    framework_version: Maybe[str] = NOT_COLLECTED
    import_seconds: float = 0.0
    build_seconds: float = 0.0  # until the model, its data and the first step were there
    parameters: Maybe[int] = NOT_COLLECTED  # trainable ones, counted
    warm_up: WarmUp = WarmUp()
    repetitions: list[Repetition] = []
    losses: list[float | None] = []  # after each repetition. null: it was no number any more
    evidence: dict[str, Value] = {}  # what shows whether the mode engaged: counts, types, bits
    memory: RowMemory = RowMemory()
    samples: list[GpuSamples] = []  # of each of its GPUs, while it was measured
    log: list[str] = []  # what its processes wrote about GPUs


class LeftOut(Facts, frozen=True):
    """What was asked for and is not run, and why: as planned, before anything ran."""

    name: str
    reason: str


class Bench(Facts, frozen=True, kw_only=True):
    """All rows of one run of `envcheck bench`."""

    asked: list[str] = []  # the command line's WHAT
    options: list[str] = []  # of the command line, which say how rows are run: "--batch", "128"
    inside: str = ""  # the container that they ran in ("image:REF"); "": the machine itself
    began: str = ""  # UTC, "2026-11-20T18:24:52Z"
    seconds: float = 0.0
    interrupted: bool = False  # by the user, before all rows were done
    busy_ok: bool = False  # GPUs that others used were taken, too
    settings: dict[str, str] = {}  # variables of the environment that change what is measured
    rows: list[RowRun] = []
    left_out: list[LeftOut] = []  # by the plan

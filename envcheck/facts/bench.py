"""Facts of `envcheck bench`: what was trained or run, how fast, with which memory.

Nothing here is judged. A row is one model in one framework and one mode, in a process of its own.
"""

from __future__ import annotations

from typing import Literal

from .acceleration import Value
from .base import NOT_COLLECTED, Address, Facts, Maybe
from .telemetry import GpuSamples

Style = Literal["session", "keras", "torch", "jax"]
Precision = Literal["fp32", "tf32", "amp", "half"]


class BenchRow(Facts, frozen=True, kw_only=True):
    """What is to be run: core plans it, the collector runs it, and the result carries it along."""

    name: str  # unique among a run's rows: "resnet50 amp xla 256"
    what: str  # as the command line has it: "resnet50", "parity"
    # "resnet50", "mnist", "bert-base", "bert-large", "unet-2d", "unet-3d", "mlp"; "shapes"
    model: str
    style: Style  # TensorFlow 1 by sessions, TensorFlow 2 by Keras, PyTorch, JAX
    precision: Precision = "fp32"  # "half": everything in 16 bits, which parity's control is
    half: Literal["", "float16", "bfloat16"] = ""  # the 16-bit type of "amp" and "half"
    # How AMP is switched on: graph rewrite, Keras policy, autocast, casts of one's own (JAX).
    way: Literal["", "rewrite", "policy", "autocast", "cast"] = ""
    # The loss scale: moved by the framework, stuck at a value that underflows (parity's control), or none.
    scaler: Literal["", "dynamic", "stuck"] = ""
    compiled: bool = False  # by XLA in TensorFlow and JAX, by torch.compile in PyTorch
    tensorrt: bool = False  # with forward alone, by TF-TRT
    train: bool = True  # False: forward alone
    batch: int = 1  # per GPU
    image: int = 0  # pixels on a side; 0: the model has none
    length: int = 0  # tokens of a sequence; 0: the model has none
    small: bool = False  # fewer and narrower layers, for a machine without a GPU
    data: Literal["synthetic", "tf.data", "dali"] = "synthetic"
    largest: bool = False  # the largest batch that fits is looked for, from ``batch`` on
    # Of training from the seed on, with their losses kept; of shapes, rounds. 0: repetitions are timed.
    steps: int = 0
    seed: int = 0
    gpus: list[Address] = []  # none: on the CPU
    together: Literal["", "mirrored", "ddp", "horovod"] = ""  # on all of ``gpus``, as one job
    # Processes of such a job on the CPU, where ``gpus`` is empty: of "ddp" and "horovod".
    ranks: int = 0
    memory_mib: int = 0  # that it takes of each GPU (of the host on a CPU), estimated; 0: not known
    group: str = ""  # rows of a group are compared, and measured in turn


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


class BatchTried(Facts, frozen=True, kw_only=True):
    """One step on the way to the largest batch."""

    batch: int
    predicted: bool = False  # from the memory of smaller ones
    outcome: Literal["ok", "out-of-memory", "error", "timeout", "crashed"]
    memory_mib: Maybe[int] = NOT_COLLECTED  # the pool's


class RankRun(Facts, frozen=True, kw_only=True):
    """One GPU's part in a row that runs on several."""

    gpu: Maybe[Address] = NOT_COLLECTED
    repetitions: list[Repetition] = []


class ShapeRate(Facts, frozen=True, kw_only=True):
    """One shape of a row that runs products and convolutions of many."""

    operation: Literal["product", "convolution"]
    # Of a product m, n, k; of a convolution images, pixels on a side, channels in and out, its kernel's side.
    sizes: list[int]
    edge: int  # the size that is moved: n and k, or the channels
    around: int  # the round number that it stands beside
    dtype: str  # "float16"
    seconds: list[float] = []  # that one operation took, by repetition
    kernels: Maybe[list[str]] = NOT_COLLECTED  # as CUPTI's activity API saw them
    reason: str = ""  # why nothing was measured


class RowMemory(Facts, frozen=True, kw_only=True):
    """The most that a row took of its GPU, in MiB: of the host, where it ran on a CPU."""

    tensors_mib: Maybe[int] = NOT_COLLECTED  # what the framework's tensors took at their peak
    pool_mib: Maybe[int] = NOT_COLLECTED  # what its allocator held
    process_mib: Maybe[int] = NOT_COLLECTED  # what the driver counted for the process


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
    in_turn: bool = False  # measured in rounds with the other rows of its group
    repetitions: list[Repetition] = []
    # After each of ``steps``; of a timed row, after each repetition. null: it was no number any more.
    losses: list[float | None] = []
    accuracy: Maybe[float] = NOT_COLLECTED  # 0 to 1, on samples that were not trained on
    # Beside the style's own keys, of a row with ``largest``: "largest_by" ("prediction" or "doubling"), and
    # "largest_is_bound", where no larger batch was tried.
    evidence: dict[str, Value] = {}  # what shows whether the mode engaged: counts, types, bits
    memory: RowMemory = RowMemory()
    tried: list[BatchTried] = []
    shapes: list[ShapeRate] = []  # where ``what`` is "shapes"; it trains nothing
    ranks: list[RankRun] = []
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

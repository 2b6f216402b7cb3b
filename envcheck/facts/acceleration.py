"""Facts about acceleration systems and memory: what ran with each switched on, and without it."""

from __future__ import annotations

from typing import Literal

from .base import NOT_COLLECTED, Address, Facts, Maybe

Value = bool | int | float | str | list[str]


class SystemTrial(Facts, frozen=True, kw_only=True):
    """One thing that was run. ``evidence`` is what it left behind: counts, sums, names, rates."""

    name: str  # "jit_compile"
    control: bool = False  # with the system switched off: what the others are held against
    outcome: Literal[
        "ok",  # it ran; whether it did what it should is for checks to say
        "error",  # the framework raised, or a call failed
        "out-of-memory",
        "timeout",
        "crashed",  # the process died in it
        "not-supported",  # this version, build or device does not have it
    ]
    reason: str = ""  # one line; empty when ok
    seconds: float = 0.0
    evidence: dict[str, Value] = {}


class SystemRun(Facts, frozen=True, kw_only=True):
    """One system, in one framework where it belongs to one, on one GPU or all."""

    system: str  # "xla", as in collector/systems
    framework: Literal["", "tensorflow", "torch", "jax"] = ""
    framework_version: Maybe[str] = NOT_COLLECTED
    device: Literal["gpu", "cpu"] = "gpu"  # where it was to run
    gpus: list[Address] = []  # that it was given
    outcome: Literal[
        "ok",  # its trials tell
        "not-applicable",  # it is not there, or this machine has no use for it
        "not-run",  # what it needs is missing: a GPU, time
        "busy",  # another process uses the GPU
        "error",
        "timeout",
        "crashed",
    ]
    reason: str = ""
    import_seconds: float = 0.0  # of the framework, before the work began
    seconds: float = 0.0  # of the work
    log: list[str] = []  # what its processes wrote about GPUs
    trials: list[SystemTrial] = []


class Acceleration(Facts, frozen=True, kw_only=True):
    """All runs of this document's systems: memory and links in the machine's, all others in the target's."""

    systems: list[str] = []  # that were asked for
    inside: str = ""  # the container that they ran in ("image:REF"); "": the machine itself
    seconds: float = 0.0
    runs: list[SystemRun] = []

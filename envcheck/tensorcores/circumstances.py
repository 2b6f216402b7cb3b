"""What lies around a run that is not proven: the setup that its likely cause is looked for in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..facts.base import known
from ..facts.micro_kernels import LevelRun, ModeRun
from ..facts.target import FRAMEWORKS
from ..facts.view import SnapshotView
from ..findings.model import Remedy
from ..findings.shell import word
from .mode_verdict import Line, Reading, Verdict
from .peaks import Chip

OVERRIDE = "NVIDIA_TF32_OVERRIDE"


class Why(NamedTuple):
    cause: str  # one sentence
    remedy: Remedy | None = None
    chosen: bool = False  # a variable that the user has set asks for it


class Setup(NamedTuple):
    """A run and what lies around it.

    variables: those of the target, as the user has them. below, above: the verdict on the same mode of the
    same GPU one level below and above, None where there is none. control_wanted: it had to come out "not
    engaged". control: how the level's control came out. calm: nothing is amiss. target: the target's
    directory, "" where it is none.
    """

    run: LevelRun
    mode: ModeRun
    chip: Chip
    reading: Reading
    hardware: Line
    verdict: Verdict
    control_wanted: bool
    control: Verdict | None
    calm: bool
    variables: Mapping[str, str]
    below: Verdict | None
    above: Verdict | None
    target: str

    @property
    def framework(self) -> str:
        return FRAMEWORKS.get(self.run.framework, "")

    @property
    def cublas(self) -> str:
        """ "cuBLAS 12.9.1" """
        return f"cuBLAS {known(self.run.library_version) or ''}".strip()

    @property
    def version(self) -> str:
        return known(self.run.framework_version) or ""

    def variable(self, name: str) -> str:
        return self.variables.get(name, self.run.variables.get(name, ""))


def command(run: LevelRun, target: str, *options: str) -> str:
    """The command that runs this level on this GPU again. target: the target's directory, or ""."""
    index = known(run.index)
    words = ["envcheck doctor", f"--kernels {run.level}"]
    words += [] if index is None else [f"--gpu {index}"]
    inside = target.startswith(("image:", "container:"))  # L0 runs there, too
    words += [f"--target {word(target)}"] if target and (inside or run.level != "L0") else []
    return " ".join([*words, *options])


def again(setup: Setup, *options: str) -> str:
    return command(setup.run, setup.target, *options)


def directory(view: SnapshotView) -> str:
    """The target as `--target` has it: its directory, or its container; "" where there is none."""
    target = view.snapshot.target
    location = "" if target is None else target.location
    kind, _, place = location.partition(":")
    return place if kind == "path" else location

"""Which stack and release are chosen, and what a refusal says."""

from __future__ import annotations

from typing import Any

import fit_machines as m
import pytest

from envcheck.exit_codes import Cannot, ExitCode, UsageError
from envcheck.facts.snapshot import Snapshot
from envcheck.install.catalogue.model import Stack
from envcheck.install.fit.disk_space import DiskSpace
from envcheck.install.fit.models import Choice
from envcheck.install.fit.select import choose
from envcheck.install.request import Request

SILENT = "its index pypi.ngc.nvidia.com does not answer"


class Index:
    """Says whether a stack's index answers, and counts how often it was asked."""

    def __init__(self, silence: str = "") -> None:
        self.silence = silence
        self.asked: list[str] = []

    def __call__(self, stack: Stack) -> str:
        self.asked.append(stack.name)
        return self.silence


def chosen(
    snapshot: Snapshot, index: Index | None = None, space: DiskSpace | None = None, **wish: Any
) -> Choice:
    wanted = Request(**wish)
    return choose(wanted, snapshot, m.PYTHONS, [], index or Index(), space=space)


def refused(snapshot: Snapshot, **wish: Any) -> Cannot:
    with pytest.raises(Cannot) as caught:
        chosen(snapshot, **wish)
    assert caught.value.exit_code is ExitCode.CANNOT
    return caught.value


def name(choice: Choice) -> str:
    return f"{choice.stack.name} {choice.candidate.release.release}"


def test_without_a_word_nvidia_tf1_where_it_fits_and_its_index_answers() -> None:
    index = Index()
    choice = chosen(m.machine(["H100"]), index)
    assert name(choice) == "nvidia-tf1 23.03"
    assert choice.reasons == ["23.03 is the newest release of nvidia-tf1"]
    assert index.asked == ["nvidia-tf1"]


def test_else_tensorflow_and_why() -> None:
    choice = chosen(m.machine(["H100"]), Index(SILENT))
    assert name(choice) == "tensorflow 2.21.0"
    assert choice.reasons[0] == f"nvidia-tf1 was skipped: {SILENT}"


def test_a_release_without_a_stack_finds_its_own() -> None:
    assert name(chosen(m.machine(), release="22.10")) == "nvidia-tf1 22.10"
    assert name(chosen(m.machine(), release="2.19.0")) == "tensorflow 2.19.0"
    with pytest.raises(UsageError, match="nvidia-tf1"):
        chosen(m.machine(), release="23.11")
    with pytest.raises(UsageError, match=r"tensorflow has no release"):
        chosen(m.machine(), release="2.99")


def test_a_named_release_that_cannot_work_names_the_newest_that_can() -> None:
    error = refused(m.machine(["A100"], "470.82.01"), stack="tensorflow", release="2.21.0")
    assert str(error) == (
        "tensorflow 2.21.0 cannot be installed here: it needs driver 525.60.13 or newer, and this"
        " machine has 470.82.01"
    )
    assert (
        error.hint == "the newest release that fits: envcheck install tensorflow --release 2.14.1"
    )


def test_without_a_gpu_the_ways_out_are_named() -> None:
    for wish in ({}, {"stack": "tensorflow"}, {"stack": "tensorflow", "release": "2.21.0"}):
        error = refused(m.without_gpu(), **wish)
        assert "this machine has no NVIDIA GPU" in str(error)
        assert "envcheck install tensorflow-cpu" in error.hint and "--allow-no-gpu" in error.hint
    assert name(chosen(m.without_gpu(), stack="tensorflow-cpu")) == "tensorflow-cpu 2.21.0"


def test_nothing_fits_anywhere() -> None:
    error = refused(m.machine(["H100"], "450.80.02", glibc="2.12"))
    assert str(error).startswith(
        "neither nvidia-tf1 nor tensorflow fits this machine: nvidia-tf1: of its"
    )
    assert "2.21.0 comes nearest, and needs glibc 2.27 or newer" in str(error)
    assert "container" in error.hint

"""The stacks of the public index say what was read from the wheels there."""

from __future__ import annotations

from catalogued import constraints

from envcheck.data import table
from envcheck.install.catalogue.load import load

TENSORFLOW = load("tensorflow")
CPU = load("tensorflow-cpu")
FIRST = load("tensorflow1")
BUILDS = {row["tensorflow"]: row for row in table("pypi_tf")}


def test_every_build_with_the_extra_is_there() -> None:
    wanted = [version for version, row in BUILDS.items() if row["and_cuda"]]
    assert [r.version for r in reversed(TENSORFLOW.releases)] == wanted
    assert "2.13.1" not in wanted


def test_what_is_known_not_to_work_is_broken_and_says_why() -> None:
    broken = {r.version: r.broken for r in TENSORFLOW.releases if r.broken}
    assert set(broken) == {"2.15.0", "2.16.1"}
    assert "tensorrt-libs" in broken["2.15.0"] and "uninstallable" in BUILDS["2.15.0"]["note"]
    assert "no GPU" in broken["2.16.1"]
    assert not [r for stack in (CPU, FIRST) for r in stack.releases if r.broken]


def test_cudnn_does_not_float_past_the_gpus_that_a_build_names() -> None:
    """From 9.11 on cuDNN has no code below compute capability 7.5."""
    for release in TENSORFLOW.releases:
        pins = BUILDS[release.version]["and_cuda"].split("; ")
        floats = any("cudnn" in pin and "<" in pin for pin in pins)
        ours = constraints(TENSORFLOW, release, "nvidia-cudnn-cu12", "3.11")
        assert ("9.28.0.42" not in ours) is floats and "9.10.2.21" in ours, release.version
    assert floats is False

"""The stacks of the public index say what was read from the wheels there."""

from __future__ import annotations

import re

from catalogued import constraints, for_each
from packaging.version import Version

from envcheck.data import packages, table
from envcheck.install.catalogue.load import load
from envcheck.install.catalogue.model import Release

TENSORFLOW = load("tensorflow")
CPU = load("tensorflow-cpu")
FIRST = load("tensorflow1")
BUILDS = {row["tensorflow"]: row for row in table("pypi_tf")}

by_build = for_each(TENSORFLOW)


def test_every_build_with_the_extra_is_there() -> None:
    wanted = [version for version, row in BUILDS.items() if row["and_cuda_nvidia-cublas"]]
    assert [r.version for r in reversed(TENSORFLOW.releases)] == wanted
    assert "2.13.1" not in wanted


@by_build
def test_a_build_says_what_was_read_from_its_wheel(release: Release) -> None:
    row = BUILDS[release.version]
    build = packages.tensorflow_build(release.version)
    assert build is not None
    assert release.cuda == row["cuda_built"]
    assert release.cudnn == row["cudnn_built_major"]
    assert tuple(release.compute_capabilities) == build.capabilities
    assert release.released == row["released"]
    pinned = {pin.name: next(iter(pin.specifier)).version for pin in build.tensorrt_pins}
    assert release.tensorrt == pinned.get("tensorrt", "")
    tag = re.search(r"manylinux_2_(\d+)", row["source"])
    assert tag and release.glibc == f"2.{tag[1]}"
    assert release.prerelease == Version(release.version).is_prerelease
    assert not [python for python in release.python if f"{python}.1" not in build.requires_python]


def test_what_is_known_not_to_work_is_broken_and_says_why() -> None:
    broken = {r.version: r.broken for r in TENSORFLOW.releases if r.broken}
    assert set(broken) == {"2.15.0", "2.16.1"}
    assert "tensorrt-libs" in broken["2.15.0"] and "uninstallable" in BUILDS["2.15.0"]["note"]
    assert "no GPU" in broken["2.16.1"]
    assert not [r for stack in (CPU, FIRST) for r in stack.releases if r.broken]


def test_the_cpu_stack_follows_the_same_releases() -> None:
    assert [r.version for r in CPU.releases] == [r.version for r in TENSORFLOW.releases]
    for cpu, gpu in zip(CPU.releases, TENSORFLOW.releases, strict=True):
        tags = [f"cp{python.replace('.', '')}" for python in cpu.python]
        assert tags == BUILDS[cpu.version]["linux_x86_64_wheels"].split()
        assert (cpu.glibc, cpu.prerelease) == (gpu.glibc, gpu.prerelease)
        assert not cpu.cuda and not cpu.compute_capabilities


def test_cudnn_does_not_float_past_the_gpus_that_a_build_names() -> None:
    """From 9.11 on cuDNN has no code below compute capability 7.5."""
    for release in TENSORFLOW.releases:
        pin = BUILDS[release.version]["and_cuda_nvidia-cudnn"]
        floats = "<" in pin
        ours = constraints(TENSORFLOW, release, "nvidia-cudnn-cu12", "3.11")
        assert ("9.28.0.42" not in ours) is floats and "9.10.2.21" in ours, release.version
    assert floats is False

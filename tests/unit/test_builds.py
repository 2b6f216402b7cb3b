"""Which build of a framework a remedy installs: resolved for the Python, driver, GPUs and neighbours."""

from __future__ import annotations

from typing import Any

import pytest
from build import ok
from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.version import Version
from targets import dist, interpreter, packages
from whole import with_target

from envcheck.checks import builds
from envcheck.checks.fitness import is_entry
from envcheck.checks.installing import pip_install, with_pip
from envcheck.data.cuda import rows_for
from envcheck.data.framework_builds import framework_builds
from envcheck.facts.view import SnapshotView

INDEX = "--index-url https://download.pytorch.org/whl/"
STABLE = "--find-links https://download.pytorch.org/whl/torch_stable.html"
JAX = "--find-links https://storage.googleapis.com/jax-releases/jax_cuda_releases.html"


def view(python: str, driver: str, installed: str = "", **of_interpreter: Any) -> SnapshotView:
    """A machine with this driver, and an environment with these packages ("torch=1.8.1 numpy=1.19")."""
    wheels = [one.split("=") for one in installed.split()]
    by = "conda" if of_interpreter.get("kind") == "conda" else "pip"
    found = packages(*(dist(name, version, installer=by) for name, version in wheels))
    snapshot = with_target(
        interpreter=interpreter(version=f"{python}.1", **of_interpreter), packages=found
    )
    nvml = snapshot.machine.nvml
    assert nvml is not None and nvml.facts is not None
    changed = ok(replace(nvml.facts, driver_version=driver))
    return SnapshotView(replace(snapshot, machine=replace(snapshot.machine, nvml=changed)))


# (framework, GPU, the machine, what pip installs)
RESOLVED: dict[str, tuple[str, str, SnapshotView, str]] = {
    "pytorch#32369": ("torch", "7.5", view("3.7", "440.33.01"), "torch==1.12.1"),
    "the version that is there": (
        "torch",
        "7.5",
        view("3.7", "440.33.01", "torch=1.4.0"),
        "torch==1.4.0 --force-reinstall",
    ),
    "bevfusion#283": (
        "torch",
        "8.6",
        view("3.8", "470.42.01", "torch=1.8.1+cu101 torchvision=0.9.1+cu101"),
        f"torch==1.8.1+cu111 torchvision==0.9.1+cu111 {STABLE}",
    ),
    "an old driver": ("torch", "8.0", view("3.12", "470.42.01"), f"torch==2.7.1 {INDEX}cu118"),
    "a new GPU, no CUDA 13": (
        "torch",
        "12.0",
        view("3.12", "570.86.10", "torch=2.5.1"),
        f"torch==2.11.0 {INDEX}cu128",
    ),
    "a GPU that CUDA 13 left": (
        "torch",
        "6.0",
        view("3.12", "580.65.06", "torch=2.12.0 torchvision=0.27.0"),
        f"torch==2.12.1 torchvision {INDEX}cu126",
    ),
    "gladia#927": (
        "jax",
        "7.5",
        view("3.8", "515.65.01", "jax=0.3.25 jaxlib=0.3.25"),
        f"'jax[cuda11_pip]==0.4.13' {JAX}",
    ),
    "JAX": ("jax", "9.0", view("3.12", "535.161.08"), "'jax[cuda12]==0.12.0.1'"),
    "JAX on CUDA 13": ("jax", "9.0", view("3.12", "580.65.06"), "'jax[cuda13]==0.12.0.1'"),
    "tensorrt's wheels": (
        "tensorflow",
        "8.0",
        view("3.10", "470.42.01"),
        "'tensorflow[and-cuda]==2.14.1'",
    ),
}


@pytest.mark.parametrize("name", RESOLVED)
def test_resolved(name: str) -> None:
    framework, gpu, machine, wanted = RESOLVED[name]
    (command,) = builds.gpu_build(machine, framework, [gpu]).commands
    assert command == f"'<home-1>/venv/bin/python' -m pip install {wanted}"


# Where nothing fits the remedy says what to change, and installs nothing that would not help.
CHANGES = {
    "the driver": (
        "tensorflow",
        "8.0",
        view("3.11", "470.42.01"),
        "update the driver to 525.60.13",
    ),
    "Python": ("torch", "12.0", view("3.8", "580.65.06"), "environment of Python 3.14"),
    "an extra that has no wheels": ("jax", "12.0", view("3.8", "580.65.06"), "Python 3.14"),
    "the image": ("tensorflow", "12.0", view("3.12", "580.65.06"), "NVIDIA's container"),
    "both": ("torch", "12.0", view("3.7", "470.42.01"), "both have to be newer"),
    "the platform": (
        "tensorflow",
        "7.0",
        view("3.10", "535.161.08", architecture="ppc64le"),
        "Open-CE",
    ),
    "the GPU": ("torch", "3.0", view("3.12", "580.65.06"), "No public build"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_to_change(name: str) -> None:
    framework, gpu, machine, words = CHANGES[name]
    remedy = builds.gpu_build(machine, framework, [gpu])
    assert words in remedy.text
    installs = [one for one in remedy.commands if "pip install" in one]
    assert bool(installs) == (name == "the driver")


@pytest.mark.parametrize(
    ("of", "command"),
    [
        ({"pip": False, "uv": True}, "uv pip install --python {python} torch==1.12.1"),
        ({"pip": True, "uv": True}, "{python} -m pip install torch==1.12.1"),
        ({"pip": False}, "{python} -m ensurepip; {python} -m pip install torch==1.12.1"),
        (
            {"pip": False, "kind": "interpreter", "executable": "/usr/bin/python3"},
            "sudo apt install python3-pip; /usr/bin/python3 -m pip install torch==1.12.1",
        ),
        (
            {"kind": "interpreter", "externally_managed": True},
            "{python} -m pip install --break-system-packages torch==1.12.1",
        ),
    ],
)
def test_the_installer_that_is_there(of: dict[str, Any], command: str) -> None:
    machine = view("3.7", "440.33.01", **of)
    printed = with_pip(machine, builds.gpu_build(machine, "torch", ["7.5"])).commands
    assert "; ".join(printed) == command.format(python="'<home-1>/venv/bin/python'")


@pytest.mark.parametrize(
    ("requires", "wanted"),
    [
        ('nvidia-cusparse-cu12 (==12.5.1.3) ; extra == "and-cuda"', "==12.5.1.3"),
        ("nvidia_cusparse_cu12==12.5.1.3", "==12.5.1.3"),
        ("nvidia-cusparse-cu12>=12", ""),
        ("nvidia-cusparse-cu12-x==1", ""),
    ],
)
def test_a_library_is_of_the_version_that_the_framework_asks_for(
    requires: str, wanted: str
) -> None:
    found = packages(dist("tensorflow", "2.18.0", requires=[requires]))
    machine = SnapshotView(with_target(interpreter=interpreter(), packages=found))
    command = pip_install(machine, "nvidia-cusparse-cu12", "torch")
    assert command.endswith(f" install nvidia-cusparse-cu12{wanted} torch")


@pytest.mark.parametrize(
    ("installed", "what"),
    [
        ("torch=1.4.0", "pytorch==1.4.0 cudatoolkit=10.1 -c pytorch"),
        ("jax=0.4.30 jaxlib=0.4.30", "jax 'jaxlib=*=*cuda*' -c conda-forge"),
    ],
)
def test_conda(installed: str, what: str) -> None:
    framework = installed.partition("=")[0]
    machine = view("3.7", "440.33.01", installed, kind="conda")
    (printed,) = builds.gpu_build(machine, framework, ["7.5"]).commands
    assert printed == f"conda install -p '<home-1>/venv' {what}"


def test_power_has_conda_builds_alone() -> None:
    machine = view("3.10", "535.161.08", kind="conda", architecture="ppc64le")
    (printed,) = builds.gpu_build(machine, "torch", ["7.0"]).commands
    assert printed.endswith("-c rocketce pytorch")


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_each_build_is_whole(framework: str) -> None:
    for build in builds.builds_of(framework):
        assert rows_for(build.cuda), build
        assert build.capabilities and all(map(is_entry, build.capabilities)), build
        (pin,) = Requirement(build.requirement).specifier
        assert Version(pin.version).public == build.version.public, build
        assert build.source and all(one.startswith("3.") for one in build.pythons), build
    assert {one.framework for one in framework_builds(framework)} <= {framework}

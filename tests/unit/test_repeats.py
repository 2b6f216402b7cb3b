"""No remedy repeats what is already so, on any machine that the tests know."""

from __future__ import annotations

from typing import Any

import h100
import pytest
import test_remedies
from known_machines import machines
from msgspec.structs import force_setattr
from repeats import RULES, Machine, in_remedy, repeated
from targets import good_target
from whole import RELEASE, kernel, seeing, whole

from envcheck.facts.kernel import KernelModule, ModuleFile
from envcheck.facts.target import Environment
from envcheck.findings.model import Remedy


def test_no_remedy_repeats_what_is_so() -> None:
    """Nor is any refused (conftest.py): each check has judged each machine here."""
    odd = {build.__name__: build() for build in test_remedies.ODD}
    for name, snapshot in (machines() | odd).items():
        assert repeated(snapshot) == [], name


def on(variables: dict[str, str] | None = None, **changes: Any) -> Machine:
    target = good_target(tensorflow=seeing(8), environment=Environment(variables=variables or {}))
    return Machine(whole(target, **changes))


NOT_ON_DISK = [ModuleFile(kernel=RELEASE, path="/x/nvidia.ko", uvm=False)]
NO_UVM = [KernelModule(name="nvidia")]
AWAY: dict[str, Any] = {"modules": [], "driver_version": h100.ABSENT, "module_files": []}

# what is so, and a command that repeats it
REPEATED: list[tuple[Machine, str]] = [
    (on(), "sudo modprobe nvidia-uvm"),
    (on(kernel=kernel(modules=NO_UVM, module_files=NOT_ON_DISK)), "sudo modprobe nvidia_uvm"),
    (on(kernel=kernel(**AWAY, dkms=h100.ABSENT)), "sudo modprobe nvidia"),
    (on(kernel=kernel(modules=NO_UVM)), "sudo modprobe -r nvidia_uvm nvidia_drm"),
    (on(), "sudo systemctl enable --now nvidia-fabricmanager"),
    (on(), "sudo systemctl stop nvidia-persistenced"),
    (on(), "sudo apt install nvidia-dkms-535 libnvidia-compute-535"),
    (on(), "python -m pip install 'numpy<2.2' tensorflow==2.19.1"),
    (on(), "python -m pip uninstall pynvml"),
    (on({"NCCL_DEBUG": "INFO"}), "export NCCL_DEBUG=INFO"),
    (on(), "unset CUDA_VISIBLE_DEVICES"),
    (on(), "sudo nvidia-smi -c DEFAULT"),
    (on(), "sudo nvidia-smi -i 3 -pl 700"),
]


@pytest.mark.parametrize(("machine", "command"), REPEATED, ids=[c for _m, c in REPEATED])
def test_what_repeats_is_found(machine: Machine, command: str) -> None:
    assert len(list(in_remedy(as_they_are([command]), machine))) == 1


def as_they_are(commands: list[str]) -> Remedy:
    """A remedy of these commands, also where no remedy prints them."""
    remedy = Remedy("Do.")
    force_setattr(remedy, "commands", commands)
    return remedy


def test_each_rule_is_tried() -> None:
    assert len(REPEATED) >= len(RULES)


@pytest.mark.parametrize(
    "commands",
    [
        ["sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"],
        ["sudo apt install --reinstall nvidia-dkms-535"],
        ["sudo apt install nvidia-driver-550"],
        ["python -m pip install --force-reinstall numpy==2.1.3"],
        ["python -m pip install numpy==2.0.0 tensorflow==2.19.1"],
        ["sudo nvidia-smi -i 3 -pl 650"],
        ["export NCCL_DEBUG=INFO"],
        ["sudo systemctl restart nvidia-fabricmanager"],
    ],
)
def test_what_changes_something_does_not(commands: list[str]) -> None:
    assert list(in_remedy(as_they_are(commands), on())) == []

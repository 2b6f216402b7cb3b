"""Simulated machines, interpreters and stacks to fit against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h100
import msgspec
import whole

from envcheck.facts.snapshot import Snapshot
from envcheck.install.catalogue import load as catalogue
from envcheck.install.catalogue.model import Release, Stack
from envcheck.install.fit.disk_space import DiskSpace
from envcheck.install.fit.fit import fit
from envcheck.install.fit.models import Candidate, StackFit
from envcheck.install.pythons.interpreter import Interpreter
from envcheck.install.request import Request

# Driver → the newest CUDA that it supports, as nvidia-smi prints it.
DRIVERS = {
    "450.80.02": "11.0",
    "470.82.01": "11.4",
    "525.60.13": "12.0",
    "535.54.03": "12.2",
    "550.54.14": "12.4",
    "570.124.06": "12.8",
    "580.65.06": "13.0",
}
GPUS = {
    "V100": ("Tesla V100-SXM2-16GB", "7.0"),
    "T4": ("Tesla T4", "7.5"),
    "A100": ("NVIDIA A100-SXM4-80GB", "8.0"),
    "H100": (whole.NAME, "9.0"),
    "RTX 5090": ("NVIDIA GeForce RTX 5090", "12.0"),
    "RTX 3090": ("NVIDIA GeForce RTX 3090", "8.6"),
    "RTX A6000": ("NVIDIA RTX A6000", "8.6"),
    "A10": ("NVIDIA A10", "8.6"),
    "P100": ("Tesla P100-PCIE-16GB", "6.0"),
    "K80": ("Tesla K80", "3.7"),
    "B200": ("NVIDIA B200", "10.0"),
}


def machine(gpus: Sequence[str] = ("H100",), driver: str = "535.54.03", **changes: Any) -> Snapshot:
    """A machine with these GPUs under this driver; keyword arguments replace its host's facts."""
    listed = [
        h100.gpu(place, name=GPUS[name][0], compute_capability=GPUS[name][1])
        for place, name in enumerate(gpus)
    ]
    versions = {"driver_version": driver, "cuda_version": DRIVERS.get(driver, whole.ABSENT)}
    return with_sections(
        whole.host(**changes),
        nvml=h100.nvml(listed, **versions),
        nvidia_smi=h100.smi(listed, **versions),
        cuda=h100.cuda(listed, driver_api_version=versions["cuda_version"]),
        kernel=whole.kernel(driver_version=driver),
    )


def with_sections(host: Any, **sections: Any) -> Snapshot:
    snapshot = whole.whole(host=host, **sections)
    return msgspec.structs.replace(snapshot, target=None)


def without_gpu(**changes: Any) -> Snapshot:
    """A machine without an NVIDIA GPU; keyword arguments replace its host's facts."""
    empty = h100.empty_machine()
    probe = msgspec.structs.replace(empty.machine.pci, facts=whole.host(**changes))
    document = msgspec.structs.replace(empty.machine, host=probe)
    return msgspec.structs.replace(empty, machine=document)


def interpreter(version: str = "3.11.7", **changes: Any) -> Interpreter:
    minor = ".".join(version.split(".")[:2])
    values = {"path": f"/usr/bin/python{minor}", "version": version, "found_in": "PATH"}
    return Interpreter(**{**values, **changes})


PYTHONS = [interpreter(f"3.{minor}.1") for minor in (12, 11, 10, 9, 8, 6)]


def space(**changes: Any) -> DiskSpace:
    values: dict[str, Any] = {
        "path": "/data/envs",
        "device": 1,
        "free_mib": 900_000,
        "noexec": False,
        "read_only": False,
        "writable": True,
    }
    return DiskSpace(**{**values, **changes})


def tensorflow() -> Stack:
    return catalogue.load("tensorflow")


def nvidia_tf1() -> Stack:
    return catalogue.load("nvidia-tf1")


def with_release(**facts: Any) -> Stack:
    """Upstream's stack with one release, for Python 3.11, with these facts."""
    release = Release(release="1", version="1", python=["3.11"], source="test", **facts)
    return msgspec.structs.replace(tensorflow(), releases=[release])


def tensorflow_cpu() -> Stack:
    return catalogue.load("tensorflow-cpu")


def judged(
    stack: Stack, snapshot: Snapshot, place: DiskSpace | None = None, **wish: Any
) -> StackFit:
    return fit(stack, snapshot, PYTHONS, [], Request(**wish), place)


def one(judged: StackFit, release: str) -> Candidate:
    return next(each for each in judged.candidates if each.release.release == release)


def kinds(candidate: Candidate) -> list[str]:
    return [refusal.kind for refusal in candidate.refusals]


def sentence(candidate: Candidate, kind: str) -> str:
    """The one refusal of this kind."""
    (found,) = [refusal for refusal in candidate.refusals if refusal.kind == kind]
    return found.sentence

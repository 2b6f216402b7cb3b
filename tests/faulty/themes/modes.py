"""MIG, modes, processes, licences."""

from __future__ import annotations

from world.gpus import busy
from world.machine import Machine

from ..model import Collection
from .pcie import all_or_each

FAULTS = Collection("MIG, modes, processes")
add = FAULTS.add


def _no_instances(m: Machine, index: int) -> None:
    m.gpu(index).change(mig=(True, True), mig_instances=[])
    m.hidden_from_cuda.append(index)


add(
    "MIG is on and GPU 2 has no instance (a100-mig)",
    "a100-mig",
    lambda m: _no_instances(m, 2),
    ("GPU-011", "GPU 2\\b", "instance", "nvidia-smi mig|-mig 0"),
    also="DRV-007",
)


def _all_without(m: Machine) -> None:
    for gpu in m.gpus:
        _no_instances(m, gpu.index)
    m.cuda_init = "100 -"


add(
    "MIG is on everywhere, and nothing is cut",
    "a100-mig",
    _all_without,
    ("GPU-011", all_or_each(4), r"instance", r"nvidia-smi mig|-mig 0"),
)
add(
    "MIG goes off with the next reset",
    "a100-mig",
    lambda m: m.gpu(0).change(mig=(True, False)),
    ("GPU-011|GPU-02\\d|GPU-006", r"GPU 0\b", r"MIG", r"reset|-mig"),
)


add(
    "compute mode Prohibited on GPU 3 (h100)",
    "h100",
    lambda m: (m.gpu(3).change(compute_mode=2), m.hidden_from_cuda.append(3)),
    ("GPU-014", "GPU 3\\b", "Prohibited", "nvidia-smi.*(-c|compute-mode)"),
    also="DRV-007",
)


def _taken(m: Machine) -> None:
    busy(m.gpu(2), processes=[(8123, 61000)], compute_mode=3)
    m.gpu(2).change(pcie=m.gpu(2).pcie_max)


add(
    "an exclusive GPU that a process holds",
    "h100",
    _taken,
    (
        "GPU-01[46]",
        r"GPU 2\b",
        r"Exclusive|8123|process",
        r"nvidia-smi.*(-c|compute-mode)|kill|8123|wait",
    ),
)


def _full(m: Machine) -> None:
    m.gpu(5).change(used_mib=79800, processes=[(9001, 79500)])


add(
    "another process holds all memory of GPU 5",
    "h100",
    _full,
    ("GPU-016", r"GPU 5\b", r"9001|memory", r"kill|9001|nvidia-smi|ps |wait"),
)
add(
    "memory is held by nobody who is listed",
    "h100",
    lambda m: m.gpu(7).change(used_mib=60000, processes=[]),
    ("GPU-016", r"GPU 7\b", r"memory|held|no process", r"fuser|lsof|reset|nvidia-smi"),
)
add(
    "persistence mode is off on a server",
    "h100",
    lambda m: (
        [gpu.change(persistence=False) for gpu in m.gpus],
        m.services.remove("/usr/bin/nvidia-persistenced"),
    ),
    ("GPU-015", all_or_each(8), r"persistence", r"persistenced|nvidia-smi.*-pm"),
)


def _vgpu(m: Machine) -> None:
    m.gpu(0).change(name="GRID T4-16Q", virtualization=2, licence=False, brand=2, ecc=(True, True))


add(
    "the vGPU has no licence",
    "t4",
    _vgpu,
    ("GPU-017", r"GPU 0\b", r"licen[cs]e", r"gridd|token|licen[cs]e"),
)

"""MIG, modes, processes, licences."""

from __future__ import annotations

from ..changes import both, gpu, machine
from ..model import Collection
from .pcie import all_or_each

FAULTS = Collection("MIG, modes, processes")
add = FAULTS.add


add(
    "MIG is on and GPU 2 has no instance (a100-mig)",
    both(gpu(2, mig=(True, True), mig_instances=[]), machine(hidden_from_cuda=[2])),
    ("GPU-011", "GPU 2\\b", "instance", "nvidia-smi mig|-mig 0"),
    base="a100-mig",
    also="DRV-007",
)
add(
    "MIG goes off with the next reset",
    gpu(0, mig=(True, False)),
    ("GPU-011|GPU-02\\d|GPU-006", r"GPU 0\b", r"MIG", r"reset|-mig"),
    base="a100-mig",
)
add(
    "compute mode Prohibited on GPU 3 (h100)",
    both(gpu(3, compute_mode=2), machine(hidden_from_cuda=[3])),
    ("GPU-014", "GPU 3\\b", "Prohibited", "nvidia-smi.*(-c|compute-mode)"),
    also="DRV-007",
)
add(
    "memory is held by nobody who is listed",
    gpu(7, used_mib=60000, processes=[]),
    ("GPU-016", r"GPU 7\b", r"memory|held|no process", r"fuser|lsof|reset|nvidia-smi"),
)
add(
    "persistence mode is off on a server",
    lambda m: (
        [gpu.change(persistence=False) for gpu in m.gpus],
        m.services.remove("/usr/bin/nvidia-persistenced"),
    ),
    ("GPU-015", all_or_each(8), r"persistence", r"persistenced|nvidia-smi.*-pm"),
)


add(
    "the vGPU has no licence",
    gpu(0, name="GRID T4-16Q", virtualization=2, licence=False, brand=2, ecc=(True, True)),
    ("GPU-017", r"GPU 0\b", r"licen[cs]e", r"gridd|token|licen[cs]e"),
    base="t4",
)

"""What broken machines have in common: what NVML, nvidia-smi and libcuda say when they fail."""

from __future__ import annotations

import h100
from h100 import ADDRESSES, COUNT, ERROR, LIB, NODES, VICTIM
from targets import error, good_target
from whole import ABSENT, blind, broken, kernel, nodes, whole

from envcheck.facts.gpu import CudaDriver, NvidiaSmi
from envcheck.facts.kernel import Service
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Document, Snapshot

UPGRADED = "535.129.03"
NOT_INSTALLED = Service(name="nvidia-fabricmanager", installed=False, running=False)
HERE = ADDRESSES[VICTIM]
ALL = [h100.gpu(n) for n in range(COUNT)]
NO_GPU_LOG = "failed call to cuInit: {}: {}"
NO_DEVICE = ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")
DLOPEN = "Could not load dynamic library '{0}'; dlerror: {0}: cannot open shared object file"
CANNOT_DLOPEN = (
    "W tensorflow/core/common_runtime/gpu/gpu_device.cc:2251] Cannot dlopen some GPU libraries."
    " Please make sure the missing libraries mentioned above are installed properly"
)


# What a GeForce answers "not supported" to.
DATA_CENTRE_FACTS = (
    "ecc_enabled", "ecc_pending", "ecc_corrected_volatile", "ecc_uncorrected_volatile",
    "ecc_corrected_aggregate", "ecc_uncorrected_aggregate", "sram_threshold_exceeded",
    "remap_pending", "remap_failed", "remap_correctable", "remap_uncorrectable",
    "channel_repair_pending", "tpc_repair_pending", "unrepairable_memory",
    "mig_enabled", "mig_pending", "mig_instances", "bar1_total_mib", "serial",
    "fabric_state", "fabric_status", "fabric_health",
)  # fmt: skip


def blinded(name: str, words: str) -> Document:
    """A target whose TensorFlow sees no GPU, since cuInit failed so."""
    return good_target(tensorflow=blind(NO_GPU_LOG.format(name, words)))


def no_smi(code: int, words: str) -> NvidiaSmi:
    """nvidia-smi that printed this instead of a document."""
    return NvidiaSmi(
        path="/usr/bin/nvidia-smi",
        exit_code=code,
        message=words,
        form=ABSENT,
        driver_version=ERROR,
        cuda_version=ERROR,
        gpu_count=ERROR,
        gpus=ERROR,
    )


def no_cuda(code: int, name: str, **changes: object) -> CudaDriver:
    """libcuda whose cuInit failed, as the probe writes it down."""
    none = code == 100
    fact = broken(f"cuInit: {name} ({code})")
    facts: dict[str, object] = {
        "library_path": f"{LIB}/libcuda.so.1",
        "library_real_path": f"{LIB}/libcuda.so.{h100.DRIVER}",
        "init_code": code,
        "init_name": name,
        "driver_api_version": "12.2",
        "device_count": 0 if none else fact,
        "devices": [] if none else fact,
    }
    return CudaDriver(**{**facts, **changes})  # type: ignore[arg-type]


def no_libcuda() -> CudaDriver:
    words = "libcuda.so.1: cannot open shared object file: No such file or directory"
    names = (
        "library_path",
        "library_real_path",
        "init_code",
        "init_name",
        "device_count",
        "devices",
    )
    return CudaDriver(load_error=words, **dict.fromkeys(names, error(words, "absent")))


def no_module() -> dict[str, object]:
    """What NVML, nvidia-smi and libcuda say where the nvidia module is not loaded."""
    return {
        "nvml": h100.no_driver(9, "Driver Not Loaded"),
        "nvidia_smi": no_smi(9, "NVIDIA-SMI has failed because it couldn't communicate with it."),
        "cuda": no_cuda(100, "CUDA_ERROR_NO_DEVICE"),
        "target": blinded(*NO_DEVICE),
    }


def geforce(cuda: CudaDriver | None = None, **changes: object) -> dict[str, object]:
    """A desktop with one RTX 4080, idle, and what libcuda says there."""
    facts: dict[str, object] = {
        "name": "NVIDIA GeForce RTX 4080",
        "brand": "GeForce",
        "architecture": "Ada Lovelace",
        "compute_capability": "8.9",
        "persistence": False,
        "performance_state": "P8",
        "utilization_percent": 1,
        "clock_event_reasons": ["gpu_idle"],
        "pcie_gen": 1,
        "pcie_gen_max": 4,
        "nvlinks": h100.NOT_SUPPORTED,
        "memory_total_mib": 16376,
        "memory_used_mib": 600,
        "processes": [],
        **dict.fromkeys(DATA_CENTRE_FACTS, h100.NOT_SUPPORTED),
        **changes,
    }
    gpus = [h100.gpu(0, **facts)]
    device = h100.pci_device(ADDRESSES[0], device_id="10de:2704", link_gts=2.5, max_link_gts=16.0)
    return {
        "pci": Pci(devices=[device]),
        "nvml": h100.nvml(gpus, pairs=[]),
        "nvidia_smi": h100.smi(gpus),
        "cuda": cuda or h100.cuda(gpus),
        "kernel": kernel(
            device_nodes=nodes(*NODES[1:]),
            services=[Service(name="nvidia-persistenced", installed=True, running=False)],
        ),
    }


def with_fault(log: list[object] | None = None, **facts: object) -> Snapshot:
    """These facts on one GPU, as NVML and nvidia-smi both tell them, and these lines in the log."""
    gpus = [h100.gpu(n, **(facts if n == VICTIM else {})) for n in range(COUNT)]
    return whole(nvml=h100.nvml(gpus), nvidia_smi=h100.smi(gpus), kernel=kernel(log=log or []))

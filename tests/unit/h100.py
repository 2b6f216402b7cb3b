"""A simulated healthy machine with 8 × H100 at work, and ways to put one fault into it."""

from __future__ import annotations

from typing import Any

import msgspec
from build import document

from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import (
    CudaDevice,
    CudaDriver,
    Gpu,
    GpuPair,
    GpuProcess,
    LostGpu,
    MigInstance,
    NvidiaSmi,
    NvLink,
    Nvml,
)
from envcheck.facts.host import Host
from envcheck.facts.kernel import DeviceNode, DriverFile, Kernel, KernelModule, Service
from envcheck.facts.pci import Pci, PciDevice
from envcheck.facts.snapshot import SCHEMA, Snapshot

NOT_SUPPORTED = Unavailable(unavailable="not-supported")
ABSENT = Unavailable(unavailable="absent", detail="nothing there")
ERROR = Unavailable(unavailable="error", detail="it broke")
LIB = "/usr/lib/x86_64-linux-gnu"
DRIVER = "535.104.05"
COUNT = 8
ADDRESSES = [f"0000:{bus:02x}:00.0" for bus in (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)]
NODES = [f"/dev/nvidia{n}" for n in range(COUNT)]
VICTIM = 3  # the GPU that gets the fault


def gpu(index: int = 0, **changes: Any) -> Gpu:
    """A healthy H100 SXM5 at work; keyword arguments replace its facts."""
    values: dict[str, Any] = {
        "index": index,
        "pci_address": ADDRESSES[index],
        "uuid": f"GPU-<uuid-{index + 1}>",
        "serial": f"<serial-{index + 1}>",
        "name": "NVIDIA H100 80GB HBM3",
        "brand": "NVIDIA",
        "architecture": "Hopper",
        "compute_capability": "9.0",
        "minor_number": index,
        "gsp_firmware": DRIVER,
        "gsp_enabled": True,
        "gsp_default": True,
        "inforom_valid": True,
        "virtualization": "None",
        "persistence": True,
        "compute_mode": "Default",
        "performance_state": "P0",
        "memory_total_mib": 81559,
        "memory_used_mib": 41000,
        "memory_free_mib": 40028,
        "bar1_total_mib": 131072,
        "mig_enabled": False,
        "mig_pending": False,
        "mig_instances": [],
        "ecc_enabled": True,
        "ecc_pending": True,
        "ecc_corrected_volatile": 2,
        "ecc_uncorrected_volatile": 0,
        "ecc_corrected_aggregate": 5,
        "ecc_uncorrected_aggregate": 0,
        "sram_threshold_exceeded": False,
        "sram_parity_volatile": 0,
        "sram_parity_aggregate": 0,
        "sram_secded_volatile": 0,
        "sram_secded_aggregate": 0,
        "retired_single_bit": NOT_SUPPORTED,
        "retired_double_bit": NOT_SUPPORTED,
        "retired_pending": NOT_SUPPORTED,
        "remap_correctable": 0,
        "remap_uncorrectable": 0,
        "remap_pending": False,
        "remap_failed": False,
        "remap_banks_max": 2560,
        "remap_banks_high": 0,
        "remap_banks_partial": 0,
        "remap_banks_low": 0,
        "remap_banks_none": 0,
        "channel_repair_pending": False,
        "tpc_repair_pending": False,
        "unrepairable_memory": False,
        "reset_required": False,
        "recovery_action": "None",
        "temperature_c": 61,
        "temperature_slowdown_c": 87,
        "temperature_margin_c": 26,
        "memory_temperature_c": 72,
        "power_draw_w": 692.0,
        "power_limit_w": 700.0,
        "power_default_limit_w": 700.0,
        "clock_sm_mhz": 1755,
        "clock_sm_max_mhz": 1980,
        "clock_event_reasons": ["sw_power_cap"],
        "slowdown_sw_power_cap_us": 5_000_000_000,
        "slowdown_sync_boost_us": 0,
        "slowdown_sw_thermal_us": 0,
        "slowdown_hw_thermal_us": 0,
        "slowdown_hw_power_brake_us": 0,
        "utilization_percent": 98,
        "pcie_gen": 5,
        "pcie_gen_max": 5,
        "pcie_width": 16,
        "pcie_width_max": 16,
        "pcie_replays": 9,
        "nvlinks": [NvLink(link=n, active=True, crc_errors=0, replay_errors=0) for n in range(18)],
        "fabric_state": "Completed",
        "fabric_status": "Success",
        "fabric_health": "Healthy",
        "fabric_faults": [],
        "vgpu_licence": NOT_SUPPORTED,
        "processes": [GpuProcess(pid=4711, kind="C", name="python3", memory_mib=40000)],
    }
    return Gpu(**{**values, **changes})


def pci_device(address: str, kind: str = "gpu", **changes: Any) -> PciDevice:
    values: dict[str, Any] = {
        "address": address,
        "kind": kind,
        "device_id": "10de:2330" if kind == "gpu" else "10de:22a3",
        "driver": "nvidia" if kind == "gpu" else "nvidia-nvswitch",
        "answers": True,
        "power_state": "D0",
        "link_gts": 32.0,
        "link_width": 16,
        "max_link_gts": 32.0,
        "max_link_width": 16,
        "slot_max_link_gts": 32.0,
        "slot_max_link_width": 16,
    }
    return PciDevice(**{**values, **changes})


def kernel(**changes: Any) -> Kernel:
    values: dict[str, Any] = {
        "modules": [KernelModule(name=name, version=DRIVER) for name in ("nvidia", "nvidia_uvm")],
        "driver_version": DRIVER,
        "device_nodes": [
            DeviceNode(path=path, mode="0666", owner="root", group="root", usable=True)
            for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", *NODES)
        ],
        "driver_files": [file(name, DRIVER) for name in ("libcuda", "libnvidia-ml")],
        "driver_packages": [],
        "services": [
            Service(name="nvidia-fabricmanager", installed=True, running=True, version=DRIVER),
            Service(name="nvidia-persistenced", installed=True, running=False),
            Service(name="nvidia-cuda-mps-control", installed=True, running=False),
        ],
        "log": [],
        "fabric_manager_log": [],
    }
    return Kernel(**{**values, **changes})


def nvml(gpus: list[Gpu], **changes: Any) -> Nvml:
    values: dict[str, Any] = {
        "binding_version": "12.560.30",
        "library_path": f"{LIB}/libnvidia-ml.so.1",
        "init_code": 0,
        "nvml_version": f"12.{DRIVER}",
        "driver_version": DRIVER,
        "cuda_version": "12.2",
        "gpu_count": len(gpus),
        "gpus": gpus,
        "pairs": [
            GpuPair(first=first, second=second, level="NODE", p2p_read="ok")
            for place, first in enumerate(ADDRESSES)
            for second in ADDRESSES[place + 1 :]
        ],
    }
    return Nvml(**{**values, **changes})


def smi(gpus: list[Gpu], **changes: Any) -> NvidiaSmi:
    values: dict[str, Any] = {
        "path": "/usr/bin/nvidia-smi",
        "exit_code": 0,
        "form": "xml",
        "schema": "v12",
        "driver_version": DRIVER,
        "cuda_version": "12.2",
        "gpu_count": len(gpus),
        "gpus": gpus,
    }
    return NvidiaSmi(**{**values, **changes})


def cuda(gpus: list[Gpu], **changes: Any) -> CudaDriver:
    values: dict[str, Any] = {
        "library_path": f"{LIB}/libcuda.so.1",
        "library_real_path": f"{LIB}/libcuda.so.{DRIVER}",
        "init_code": 0,
        "init_name": "CUDA_SUCCESS",
        "driver_api_version": "12.2",
        "device_count": len(gpus),
        "devices": [
            CudaDevice(
                ordinal=n,
                name=entry.name,
                pci_address=entry.pci_address,
                uuid=entry.uuid,
                compute_capability=entry.compute_capability,
            )
            for n, entry in enumerate(gpus)
        ],
    }
    return CudaDriver(**{**values, **changes})


def sections(gpus: list[Gpu] | None = None, **changes: Any) -> dict[str, Any]:
    """The machine's facts, section by section, with these GPUs in NVML, nvidia-smi and CUDA alike."""
    gpus = [gpu(n) for n in range(COUNT)] if gpus is None else gpus
    built: dict[str, Any] = {
        "host": Host(os_id="ubuntu", architecture="x86_64", wsl=False),
        "pci": Pci(
            devices=[pci_device(address) for address in ADDRESSES]
            + [pci_device(f"0000:{bus:02x}:00.0", "nvswitch") for bus in (0x07, 0x08, 0x09, 0x0A)]
        ),
        "kernel": kernel(),
        "nvml": nvml(gpus),
        "nvidia_smi": smi(gpus),
        "cuda": cuda(gpus),
    }
    return {**built, **changes}


def machine(gpus: list[Gpu] | None = None, **changes: Any) -> Snapshot:
    """The Snapshot; keyword arguments replace whole sections."""
    return Snapshot(
        schema=SCHEMA, redacted=True, machine=document(**sections(gpus, **changes)), target=None
    )


def with_fault(**changes: Any) -> Snapshot:
    """The machine with these facts on one GPU, as NVML and nvidia-smi both tell them."""
    return machine([gpu(n, **(changes if n == VICTIM else {})) for n in range(COUNT)])


def lost_gpu() -> Snapshot:
    """One GPU that the driver counts and cannot open any more; nothing else lists it."""
    left = [gpu(n) for n in range(COUNT) if n != VICTIM]
    lost = LostGpu(index=VICTIM, error="GPU is lost", code=15, pci_address=ADDRESSES[VICTIM])
    pairs = [
        pair
        for pair in msgspec.convert(nvml(left).pairs, list[GpuPair])
        if ADDRESSES[VICTIM] not in (pair.first, pair.second)
    ]
    return machine(
        left,
        nvml=nvml(left, gpu_count=COUNT, lost=[lost], pairs=pairs),
        nvidia_smi=smi(left, exit_code=15, gpu_count=COUNT),
    )


def mig_instance() -> MigInstance:
    return MigInstance(gpu_instance=3, compute_instance=0, uuid="MIG-<uuid-99>", multiprocessors=16)


def no_driver(code: int, words: str = "error") -> Nvml:
    """NVML that did not start, as the probe writes it down."""
    fact = Unavailable(unavailable="error", detail=f"nvmlInit: {words}")
    return Nvml(
        init_code=code,
        init_error=words,
        driver_version=fact,
        cuda_version=fact,
        gpu_count=fact,
        gpus=fact,
        pairs=fact,
    )


def file(name: str, version: str, folder: str = LIB) -> DriverFile:
    path = f"{folder}/{name}.so.{version}"
    return DriverFile(path=path, library=name, version=version, real_path=path)


def empty_machine() -> Snapshot:
    """No NVIDIA device, no driver: what this looks like to each probe."""
    asked = ("library_path", "library_real_path", "init_code", "device_count", "devices")
    return Snapshot(
        schema=SCHEMA,
        redacted=True,
        machine=document(
            host=Host(os_id="debian"),
            pci=Pci(devices=[]),
            kernel=Kernel(modules=[], driver_version=ABSENT, driver_files=[], device_nodes=[]),
            nvml=msgspec.structs.replace(no_driver(12), library_path=ABSENT),
            nvidia_smi=NvidiaSmi(path=ABSENT, exit_code=ABSENT, gpus=ABSENT),
            cuda=CudaDriver(load_error="no such file", **dict.fromkeys(asked, ABSENT)),
        ),
        target=None,
    )

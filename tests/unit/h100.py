"""A simulated healthy machine with 8 × H100 at work, and ways to put one fault into it."""

from __future__ import annotations

from typing import Any

import msgspec
from build import document
from msgspec.structs import replace
from world import bases, snapshots
from world.gpus import busy
from world.machine import Machine

from envcheck.facts.base import Unavailable
from envcheck.facts.gpu import (
    CudaDevice,
    CudaDriver,
    Gpu,
    GpuPair,
    LostGpu,
    MigInstance,
    NvidiaSmi,
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


def _described() -> Machine:
    made = bases.h100(DRIVER, (12, 2), ADDRESSES)
    for one in made.gpus:
        busy(
            one,
            reserved_mib=531,
            used_mib=41000,
            processes=[(4711, 40000)],
            dram_corrected=(2, 5),
            histogram=(2560, 0, 0, 0, 0),
            temperature=61,
            margin=26,
            memory_temperature=72,
            power_mw=692000,
            clock_sm=1755,
            reasons=["sw_power_cap"],
            counters=one.counters | {"sw_power_cap": 5_000_000_000_000},
            replays=9,
        )
    return made


FACTS = snapshots.sections(_described())


def gpu(index: int = 0, **changes: Any) -> Gpu:
    """A healthy H100 SXM5 at work; keyword arguments replace its facts."""
    tokens = {"uuid": f"GPU-<uuid-{index + 1}>", "serial": f"<serial-{index + 1}>"}
    return replace(FACTS["nvml"].gpus[index], **(tokens | changes))


def pci_device(address: str, kind: str = "gpu", **changes: Any) -> PciDevice:
    """The described machine's device at the address, or one like its first of that kind."""
    devices: list[PciDevice] = sorted(FACTS["pci"].devices, key=lambda one: one.kind != kind)
    found = next((device for device in devices if device.address == address), devices[0])
    return replace(found, address=address, **({"kind": kind} | changes))


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
    }
    return Kernel(**{**values, **changes})


def nvml(gpus: list[Gpu], **changes: Any) -> Nvml:
    """NVML's facts with these GPUs."""
    return replace(
        FACTS["nvml"],
        **{
            "library_path": f"{LIB}/libnvidia-ml.so.1",
            "gpu_count": len(gpus),
            "gpus": gpus,
            **changes,
        },
    )


def smi(gpus: list[Gpu], **changes: Any) -> NvidiaSmi:
    """nvidia-smi's facts with these GPUs."""
    return replace(FACTS["nvidia_smi"], **{"gpu_count": len(gpus), "gpus": gpus, **changes})


def cuda(gpus: list[Gpu], **changes: Any) -> CudaDriver:
    """libcuda's facts with these GPUs."""
    devices = [
        CudaDevice(
            ordinal=n,
            name=entry.name,
            pci_address=entry.pci_address,
            uuid=entry.uuid,
            compute_capability=entry.compute_capability,
        )
        for n, entry in enumerate(gpus)
    ]
    return replace(FACTS["cuda"], **{"device_count": len(gpus), "devices": devices, **changes})


def sections(gpus: list[Gpu] | None = None, **changes: Any) -> dict[str, Any]:
    """The machine's facts, section by section, with these GPUs in NVML, nvidia-smi and CUDA alike."""
    gpus = [gpu(n) for n in range(COUNT)] if gpus is None else gpus
    built: dict[str, Any] = {
        "host": Host(os_id="ubuntu", architecture="x86_64", wsl=False),
        "pci": Pci(devices=sorted(FACTS["pci"].devices, key=lambda device: device.kind)),
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

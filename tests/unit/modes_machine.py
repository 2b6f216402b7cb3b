"""Machines that are broken below the target, each with all that such a machine shows."""

from __future__ import annotations

import h100
from h100 import ADDRESSES, COUNT, LIB, NODES, VICTIM
from modes_parts import (
    ALL,
    HERE,
    NO_DEVICE,
    NO_GPU_LOG,
    UPGRADED,
    blinded,
    no_cuda,
    no_libcuda,
    no_module,
    no_smi,
    with_fault,
)
from msgspec.structs import replace
from targets import error, good_target
from whole import (
    ABSENT,
    RELEASE,
    blind,
    broken,
    dead,
    disk,
    event,
    host,
    kernel,
    nodes,
    seeing,
    unbound,
    unloaded,
    whole,
    xid,
)

from envcheck.facts.base import StuckProcess
from envcheck.facts.gpu import LostGpu, NvidiaSmi, NvLink
from envcheck.facts.kernel import KernelEvent, KernelModule, Service
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot

OTHERS = [gpu for gpu in ALL if gpu.pci_address != HERE]
NO_DRIVER_LOG = "Could not find cuda drivers on your machine, GPU will not be used."


def nvrm(text: str, address: str = "") -> KernelEvent:
    return event("nvrm", f"NVRM: {text}", None, address)


def service(name: str, running: bool, **facts: object) -> Service:
    return Service(name=f"nvidia-{name}", installed=True, running=running, **facts)  # type: ignore[arg-type]


def mismatch() -> Snapshot:
    return whole(
        good_target(
            tensorflow=blind(
                NO_GPU_LOG.format("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported"),
                "kernel version 535.104.5 does not match DSO version 535.129.3 -- cannot find",
            )
        ),
        nvml=h100.no_driver(18, "Driver/library version mismatch"),
        nvidia_smi=no_smi(18, "Failed to initialize NVML: Driver/library version mismatch"),
        cuda=no_cuda(
            803,
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            library_real_path=f"{LIB}/libcuda.so.{UPGRADED}",
        ),
        kernel=kernel(
            UPGRADED,
            reboot_required=True,
            reboot_required_by=["nvidia-driver-535", "linux-image-5.15.0-119-generic"],
            services=[
                service("fabricmanager", False, version=UPGRADED),
                service("persistenced", False),
            ],
            log=[
                nvrm(
                    f"API mismatch: the client has the version {UPGRADED}, but NVRM: this kernel"
                    f" module has the version {h100.DRIVER}."
                )
            ],
        ),
    )


def rival(driver: str) -> Snapshot:
    return whole(
        pci=unbound(driver.replace("_", "-") if driver == "nova_core" else driver),
        kernel=unloaded(
            modules=[KernelModule(name=driver)],
            kept_out=[],
            log=[
                nvrm("The NVIDIA probe routine was not called for 8 device(s)."),
                nvrm("No NVIDIA devices probed."),
            ],
        ),
        **no_module(),
    )


def secure_boot() -> Snapshot:
    return whole(
        host=host(secure_boot=True, lockdown="integrity"),
        pci=unbound(),
        kernel=unloaded(
            log=[
                event("module-rejected", "Loading of module with unavailable key is rejected"),
                event(
                    "module-rejected",
                    "modprobe: could not insert 'nvidia': Key was rejected by service",
                ),
            ]
        ),
        **no_module(),
    )


def no_uvm() -> Snapshot:
    return whole(
        blinded("CUDA_ERROR_UNKNOWN", "unknown error"),
        kernel=kernel(
            modules=[KernelModule(name="nvidia", version=h100.DRIVER)],
            device_nodes=nodes("/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"),
        ),
        cuda=no_cuda(999, "CUDA_ERROR_UNKNOWN"),
    )


def forbidden(**changes: object) -> dict[str, object]:
    return {
        "nvml": h100.no_driver(4, "Insufficient Permissions"),
        "nvidia_smi": no_smi(4, "Failed to initialize NVML: Insufficient Permissions"),
        "cuda": no_cuda(100, "CUDA_ERROR_NO_DEVICE"),
        "target": blinded(*NO_DEVICE),
        **changes,
    }


def permissions() -> Snapshot:
    closed = nodes(mode="0660", group="video", usable=False)
    return whole(kernel=kernel(device_nodes=closed), **forbidden())


def no_fabric(state: str | None = "In Progress") -> Snapshot:
    """Without a fabric manager; Hopper tells the state of the fabric, Ampere does not."""
    names = ("fabric_state", "fabric_status", "fabric_health")
    facts = dict.fromkeys(names, ABSENT if state else h100.NOT_SUPPORTED)
    gpus = [h100.gpu(n, **facts | ({"fabric_state": state} if state else {})) for n in range(COUNT)]
    pairs = h100.nvml(gpus).pairs
    assert isinstance(pairs, list)
    return whole(
        blinded("CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"),
        nvml=h100.nvml(gpus, pairs=[replace(pair, p2p_read="GPU not supported") for pair in pairs]),
        nvidia_smi=h100.smi(gpus),
        cuda=no_cuda(802, "CUDA_ERROR_SYSTEM_NOT_READY"),
        kernel=kernel(services=[service("fabricmanager", False), service("persistenced", True)]),
    )


def mig_without_instances() -> Snapshot:
    gpus = [h100.gpu(n, mig_enabled=True, mig_pending=True, nvlinks=[]) for n in range(COUNT)]
    return whole(
        blinded(*NO_DEVICE),
        nvml=h100.nvml(gpus),
        nvidia_smi=h100.smi(gpus),
        cuda=no_cuda(100, "CUDA_ERROR_NO_DEVICE"),
    )


def off_the_bus() -> Snapshot:
    """XID 79: the kernel says so, the device reads as ones, CUDA starts for nobody any more."""
    asleep = {
        name: broken("reads as all ones")
        for name in ("link_gts", "link_width", "max_link_gts", "max_link_width")
    }
    devices = h100.sections()["pci"].devices
    devices = [
        replace(device, answers=False, power_state="D3cold", **asleep)
        if device.address == HERE
        else device
        for device in devices
    ]
    return whole(
        blinded("CUDA_ERROR_UNKNOWN", "unknown error"),
        pci=Pci(devices=devices),
        nvml=h100.lost_gpu().machine.nvml,
        nvidia_smi=no_smi(
            15, f"Unable to determine the device handle for GPU {HERE}: GPU is lost."
        ),
        cuda=no_cuda(999, "CUDA_ERROR_UNKNOWN"),
        kernel=kernel(
            log=[
                xid(79, "pid=4711, name=python3, GPU has fallen off the bus."),
                event(
                    "fallen-off-bus", f"NVRM: GPU {HERE}: GPU has fallen off the bus.", None, HERE
                ),
                xid(
                    154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
                ),
                xid(119, "Timeout after 6s of waiting for RPC response from GPU3 GSP!"),
            ]
        ),
    )


def lost_without_a_word() -> Snapshot:
    """No Xid, the bus answers; NVML has errors alone for this GPU."""
    unknown = replace(broken("Unknown Error"), code=999)
    facts = dict.fromkeys(
        ("uuid", "name", "memory_total_mib", "temperature_c", "power_draw_w"), unknown
    )
    gpus = [h100.gpu(n, **(facts if n == VICTIM else {})) for n in range(COUNT)]
    return whole(
        good_target(tensorflow=seeing(7)),
        nvml=h100.nvml(gpus),
        nvidia_smi=h100.smi(OTHERS, exit_code=15, gpu_count=COUNT),
        cuda=h100.cuda(OTHERS),
    )


def did_not_start() -> Snapshot:
    """After a reboot the driver cannot bring one GPU up: fewer in NVML than on the bus."""
    return whole(
        good_target(tensorflow=seeing(7)),
        nvml=h100.nvml(OTHERS, pairs=[]),
        nvidia_smi=h100.smi(OTHERS),
        cuda=h100.cuda(OTHERS),
        kernel=kernel(log=[nvrm(f"GPU {HERE}: RmInitAdapter failed! (0x62:0xffff:2477)", HERE)]),
    )


def narrow_link() -> Snapshot:
    """Four lanes are gone, on a GPU at work."""
    devices = [
        replace(device, link_width=8) if device.address == HERE else device
        for device in h100.sections()["pci"].devices
    ]
    gpus = [h100.gpu(n, **({"pcie_width": 8} if n == VICTIM else {})) for n in range(COUNT)]
    return whole(
        pci=Pci(devices=devices),
        nvml=h100.nvml(gpus),
        nvidia_smi=h100.smi(gpus),
        cuda=h100.cuda(gpus),
    )


def hung() -> Snapshot:
    def stuck(pid: int, command: str) -> list[StuckProcess]:
        return [StuckProcess(pid=pid, command=command, state="D")]

    late = "the probe gave no answer in time"
    return whole(
        good_target(
            tensorflow=dead("timeout", late, stuck=stuck(4, "python3 -m collector tensorflow"))
        ),
        nvml=dead("timeout", late, stuck=stuck(1, "python3 -m collector nvml")),
        nvidia_smi=NvidiaSmi(
            path="/usr/bin/nvidia-smi",
            stuck=stuck(2, "nvidia-smi -q -x"),
            **dict.fromkeys(
                ("exit_code", "message", "form", "driver_version", "gpu_count", "gpus"),
                error("no answer within 10 s", "timeout"),
            ),
        ),
        cuda=dead("timeout", late, stuck=stuck(3, "python3 -m collector cuda")),
    )


def old_system() -> Snapshot:
    return whole(host=host(os_id="centos", os_version="7", glibc="2.12"))


def bare() -> Snapshot:
    """A machine as it comes: the GPUs, and nothing of NVIDIA's driver."""
    nothing = dict.fromkeys(("path", "exit_code", "gpus", "gpu_count", "driver_version"), ABSENT)
    return whole(
        good_target(tensorflow=blind(NO_DRIVER_LOG)),
        pci=unbound(),
        kernel=unloaded(
            module_files=[], dkms=ABSENT, driver_files=[], driver_packages=[], kept_out=[]
        ),
        containers=None,
        nvml=replace(h100.no_driver(12, "Shared Library Not Found"), library_path=ABSENT),
        nvidia_smi=NvidiaSmi(**nothing),
        cuda=no_libcuda(),
    )


def kernel_upgraded() -> Snapshot:
    """Booted into a kernel that DKMS did not build for."""
    now = "5.15.0-119-generic"
    return whole(
        host=host(kernel=now),
        pci=unbound(),
        kernel=unloaded(release=now, kernels_installed=[RELEASE, now]),
        **no_module(),
    )


def wrong_flavour() -> Snapshot:
    """Blackwell under the proprietary module, which finds nothing that it may start and goes."""
    words = "requires use of the NVIDIA open kernel modules."
    at = ADDRESSES[0]
    return whole(
        pci=Pci(devices=[h100.pci_device(at, device_id="10de:2b85", driver=ABSENT)]),
        kernel=unloaded(
            module_files=[
                replace(
                    kernel().module_files[0],  # type: ignore[index]
                    flavour="proprietary",
                    version="570.124.04",
                )
            ],
            log=[
                nvrm(f"The NVIDIA GPU {at} (PCI ID: 10de:2b85) {words}", at),
                event("nvrm", f"nvidia: probe of {at} failed with error -1", None, at),
                nvrm("The NVIDIA probe routine failed for 1 device(s)."),
                nvrm("None of the NVIDIA devices were initialized."),
            ],
        ),
        **no_module(),
    )


def one_closed() -> Snapshot:
    """One GPU that this user may not open: NVML says so, CUDA leaves it out."""
    closed = [
        replace(one, usable=False, mode="0600") if one.path == NODES[VICTIM] else one
        for one in nodes()
    ]
    lost = LostGpu(index=VICTIM, error="Insufficient Permissions", code=4, pci_address=HERE)
    return whole(
        good_target(tensorflow=seeing(7)),
        kernel=kernel(device_nodes=closed),
        nvml=h100.nvml(OTHERS, gpu_count=COUNT, lost=[lost], pairs=[]),
        nvidia_smi=h100.smi(OTHERS, gpu_count=COUNT),
        cuda=h100.cuda(OTHERS),
    )


def nothing_at_all() -> Snapshot:
    """No NVIDIA device, and a TensorFlow that has to do without."""
    empty = h100.empty_machine().machine
    return whole(
        good_target(tensorflow=blind(NO_DRIVER_LOG)),
        **{name: getattr(empty, name) for name in ("pci", "kernel", "nvml", "nvidia_smi", "cuda")},
    )


def one_program_hangs() -> Snapshot:
    """nvidia-smi hangs in the kernel, and a power limit has nothing to do with it."""
    gpus = [h100.gpu(n, power_limit_w=400.0) for n in range(COUNT)]
    found = whole(nvml=h100.nvml(gpus))
    return replace(found, machine=replace(found.machine, nvidia_smi=hung().machine.nvidia_smi))


def dead_mount() -> Snapshot:
    late = error("no answer", "timeout")
    facts = dict.fromkeys(("free_mib", "total_mib", "free_inodes", "writable", "read_only"), late)
    gone = disk("<home-1>/.cache", "cache", filesystem="nfs4", mount_point="/home", **facts)
    rest = [one for one in host().disks if "cache" not in one.roles]
    return whole(host=host(disks=[gone, *rest]))


def sick_fabric() -> Snapshot:
    links = [NvLink(link=n, active=n < 9, crc_errors=0, replay_errors=0) for n in range(18)]
    return with_fault(fabric_health="Unhealthy", nvlinks=links)

"""The failures that GPU machines really have, each with all that such a machine shows: one finding each.

A failure that can be seen without running a kernel has one independent failing finding (or warning);
what follows from it is a consequence, and nothing else is told.
"""

from __future__ import annotations

from collections.abc import Callable

import h100
import pytest
from h100 import ADDRESSES, COUNT, ERROR, LIB, NODES, VICTIM
from msgspec.structs import replace
from targets import (
    dist,
    error,
    good_libraries,
    good_packages,
    good_target,
    interpreter,
    not_imported,
    packages,
    system_library,
    tensorflow,
    wheel_library,
)
from whole import (
    ABSENT,
    RELEASE,
    blind,
    broken,
    containers,
    dead,
    diagnosed,
    docker,
    event,
    host,
    in_container,
    independent,
    kernel,
    nodes,
    seeing,
    unbound,
    unloaded,
    whole,
    with_target,
    xid,
)

from envcheck.facts.base import StuckProcess, Unavailable
from envcheck.facts.gpu import CudaDriver, LostGpu, NvidiaSmi
from envcheck.facts.kernel import KernelModule, Service
from envcheck.facts.pci import Pci
from envcheck.facts.target import Environment, FrameworkGpu, HorovodExtension, Loader
from envcheck.snapshot import Document, Snapshot

UPGRADED = "535.129.03"
HERE = ADDRESSES[VICTIM]
NOT_INSTALLED = Service(name="nvidia-fabricmanager", installed=False, running=False)
ALL = [h100.gpu(n) for n in range(COUNT)]
NO_GPU_LOG = "failed call to cuInit: {}: {}"
DLOPEN = "Could not load dynamic library '{0}'; dlerror: {0}: cannot open shared object file"
CANNOT_DLOPEN = (
    "W tensorflow/core/common_runtime/gpu/gpu_device.cc:2251] Cannot dlopen some GPU libraries."
    " Please make sure the missing libraries mentioned above are installed properly"
)


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


def no_module() -> dict[str, object]:
    """What NVML, nvidia-smi and libcuda say where the nvidia module is not loaded."""
    return {
        "nvml": h100.no_driver(9, "Driver Not Loaded"),
        "nvidia_smi": no_smi(9, "NVIDIA-SMI has failed because it couldn't communicate with it."),
        "cuda": no_cuda(100, "CUDA_ERROR_NO_DEVICE"),
        "target": good_target(
            tensorflow=blind(
                NO_GPU_LOG.format("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")
            )
        ),
    }


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
                Service(
                    name="nvidia-fabricmanager", installed=True, running=False, version=UPGRADED
                ),
                Service(name="nvidia-persistenced", installed=True, running=False),
            ],
            log=[
                event(
                    "nvrm",
                    f"NVRM: API mismatch: the client has the version {UPGRADED}, but NVRM: this kernel"
                    f" module has the version {h100.DRIVER}.",
                )
            ],
        ),
    )


def rival(driver: str) -> Snapshot:
    return whole(
        pci=unbound(driver.replace("_", "-") if driver == "nova_core" else driver),
        kernel=unloaded(
            modules=[KernelModule(name=driver)],
            blacklisted=[],
            log=[
                event("nvrm", "NVRM: The NVIDIA probe routine was not called for 8 device(s)."),
                event("nvrm", "NVRM: No NVIDIA devices probed."),
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
                event("module-rejected", "modprobe: could not insert 'nvidia': Key was rejected by service"),
            ]
        ),
        **no_module(),
    )


def no_uvm() -> Snapshot:
    return whole(
        good_target(
            tensorflow=blind(NO_GPU_LOG.format("CUDA_ERROR_UNKNOWN", "unknown error"))
        ),
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
        "target": good_target(
            tensorflow=blind(
                NO_GPU_LOG.format("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")
            )
        ),
        **changes,
    }


def permissions() -> Snapshot:
    closed = nodes(mode="0660", group="video", usable=False)
    return whole(kernel=kernel(device_nodes=closed), **forbidden())


def selinux() -> Snapshot:
    confined = in_container(
        container="podman",
        selinux="enforcing",
        selinux_label="system_u:system_r:container_t:s0:c1,c2",
    )
    return whole(
        host=confined,
        kernel=kernel(device_nodes=nodes(usable=False), services=[]),
        containers=None,
        **forbidden(),
    )


def lost_in_container() -> Snapshot:
    """Inside, after systemd wrote the device rules anew: the nodes are there, and opening one fails."""
    return whole(
        good_target(
            tensorflow=blind(NO_GPU_LOG.format("CUDA_ERROR_UNKNOWN", "unknown error")),
            environment=Environment(
                variables={
                    "NVIDIA_VISIBLE_DEVICES": "all",
                    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
                }
            ),
        ),
        host=in_container(),
        kernel=kernel(device_nodes=nodes(char_link=False), services=[]),
        containers=None,
        nvml=h100.no_driver(999, "Unknown Error"),
        nvidia_smi=no_smi(255, "Failed to initialize NVML: Unknown Error"),
        cuda=no_cuda(999, "CUDA_ERROR_UNKNOWN"),
    )


def about_to_lose() -> Snapshot:
    """The host of such a container, before it happens."""
    return whole(kernel=kernel(device_nodes=nodes(char_link=False)))


def no_runtime() -> Snapshot:
    nothing = dict.fromkeys(
        ("toolkit_path", "toolkit_version", "cli_path", "cli_version", "hook_path", "toolkit_config"),
        ABSENT,
    )
    bare = docker(runtimes=["io.containerd.runc.v2", "runc"])
    return whole(containers=containers(bare, **nothing, toolkit_mode=ABSENT, toolkit_no_cgroups=ABSENT))


def no_fabric(told: bool = True) -> Snapshot:
    """Without a fabric manager; Hopper tells the state of the fabric, Ampere does not."""
    state = (
        {"fabric_state": "In Progress", "fabric_status": ABSENT, "fabric_health": ABSENT}
        if told
        else dict.fromkeys(("fabric_state", "fabric_status", "fabric_health"), h100.NOT_SUPPORTED)
    )
    gpus = [h100.gpu(n, **state) for n in range(COUNT)]
    pairs = h100.nvml(gpus).pairs
    assert isinstance(pairs, list)
    return whole(
        good_target(
            tensorflow=blind(
                NO_GPU_LOG.format("CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized")
            )
        ),
        nvml=h100.nvml(gpus, pairs=[replace(pair, p2p_read="GPU not supported") for pair in pairs]),
        nvidia_smi=h100.smi(gpus),
        cuda=no_cuda(802, "CUDA_ERROR_SYSTEM_NOT_READY"),
        kernel=kernel(
            services=[
                Service(name="nvidia-fabricmanager", installed=True, running=False),
                Service(name="nvidia-persistenced", installed=True, running=True),
            ]
        ),
    )


def mig_without_instances() -> Snapshot:
    gpus = [h100.gpu(n, mig_enabled=True, mig_pending=True, nvlinks=[]) for n in range(COUNT)]
    return whole(
        good_target(
            tensorflow=blind(
                NO_GPU_LOG.format("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")
            )
        ),
        nvml=h100.nvml(gpus),
        nvidia_smi=h100.smi(gpus),
        cuda=no_cuda(100, "CUDA_ERROR_NO_DEVICE"),
    )


def mixed_cudnn(origin: str, folder: str) -> Snapshot:
    """One sub-library from elsewhere, the rest from the wheel."""
    odd = {"path": f"{folder}/libcudnn_ops.so.9", "origin": origin}
    stranger = system_library("libcudnn_ops", "libcudnn_ops.so.9", "9.1.0", how="framework", **odd)
    used = [one for one in good_libraries("framework") if one.name != "libcudnn_ops"] + [stranger]
    paths = [folder] if origin == "LD_LIBRARY_PATH" else []
    found = [*good_libraries(), replace(stranger, how="dlopen")]
    return with_target(
        tensorflow=seeing(8, libraries=used), loader=Loader(ld_library_path=paths, libraries=found)
    )


def old_tensorflow(*log: str) -> dict[str, object]:
    """TensorFlow 2.13, which looks for libraries on the loader's path alone, and finds no GPU."""
    return {
        "packages": packages(dist("tensorflow", "2.13.1"), dist("numpy", "1.24.3")),
        "tensorflow": blind(
            *log,
            version="2.13.1",
            built_cuda="11.8",
            built_cudnn="8",
            built_capabilities=["sm_60", "sm_70", "sm_75", "sm_80", "compute_80"],
        ),
    }


def cuda_11(*without: str) -> list:  # type: ignore[type-arg]
    """CUDA 11.8 and cuDNN 8 as a system's packages bring them."""
    rows = [
        ("libcudart", "libcudart.so.11.0"),
        ("libcublas", "libcublas.so.11"),
        ("libcublasLt", "libcublasLt.so.11"),
        ("libcufft", "libcufft.so.10"),
        ("libcurand", "libcurand.so.10"),
        ("libcusolver", "libcusolver.so.11"),
        ("libcusparse", "libcusparse.so.11"),
        ("libcudnn", "libcudnn.so.8"),
    ]
    return [
        system_library(name, soname, path=error("not found", "absent"))
        if name in without
        else system_library(name, soname)
        for name, soname in rows
    ]


def no_cudnn() -> Snapshot:
    return with_target(
        **old_tensorflow(CANNOT_DLOPEN), loader=Loader(libraries=cuda_11("libcudnn"))
    )


def no_cudnn_by_its_name() -> Snapshot:
    return with_target(
        **old_tensorflow(DLOPEN.format("libcudnn.so.8"), CANNOT_DLOPEN),
        loader=Loader(libraries=cuda_11("libcudnn")),
    )


def no_cublas() -> Snapshot:
    return with_target(
        **old_tensorflow(DLOPEN.format("libcublas.so.11"), CANNOT_DLOPEN),
        loader=Loader(libraries=cuda_11("libcublas", "libcublasLt")),
    )


def no_libraries() -> Snapshot:
    names = [one.name for one in cuda_11()]
    return with_target(
        **old_tensorflow(CANNOT_DLOPEN), loader=Loader(libraries=cuda_11(*names))
    )


def no_and_cuda() -> Snapshot:
    """`pip install tensorflow` without its extra."""
    return with_target(
        packages=packages(dist("tensorflow", "2.19.1"), dist("numpy", "2.1.3")),
        tensorflow=blind(CANNOT_DLOPEN),
        loader=Loader(),
    )


def stubs() -> Snapshot:
    folder = "/usr/local/cuda/lib64/stubs"
    fact = broken("cuDriverGetVersion: CUDA_ERROR_STUB_LIBRARY")
    stub = system_library(
        "libcuda", "libcuda.so.1", path=f"{folder}/libcuda.so.1", origin="LD_LIBRARY_PATH"
    )
    return whole(
        good_target(
            tensorflow=blind(
                NO_GPU_LOG.format("CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"),
                libraries=[replace(stub, how="framework")],
            ),
            loader=Loader(ld_library_path=[folder], libraries=[*good_libraries(), stub]),
        ),
        cuda=no_cuda(
            34,
            "CUDA_ERROR_STUB_LIBRARY",
            library_path=f"{folder}/libcuda.so.1",
            library_real_path=f"{folder}/libcuda.so",
            driver_api_version=fact,
        ),
    )


def compat() -> Snapshot:
    """A compat libcuda on a GeForce: forward compatibility is for data-centre GPUs."""
    folder = "/usr/local/cuda-12.4/compat"
    rtx = geforce(
        cuda=no_cuda(
            804,
            "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
            library_path=f"{folder}/libcuda.so.1",
            library_real_path=f"{folder}/libcuda.so.550.54.15",
            driver_api_version="12.4",
        )
    )
    return whole(
        good_target(
            tensorflow=blind(
                NO_GPU_LOG.format("CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility")
            ),
            loader=Loader(ld_library_path=[folder], libraries=good_libraries()),
        ),
        **rtx,
    )


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
        **dict.fromkeys(
            ["ecc_enabled", "ecc_pending", "ecc_corrected_volatile", "ecc_uncorrected_volatile", "ecc_corrected_aggregate", "ecc_uncorrected_aggregate", "sram_threshold_exceeded", "remap_pending", "remap_failed", "remap_correctable", "remap_uncorrectable", "channel_repair_pending", "tpc_repair_pending", "unrepairable_memory", "mig_enabled", "mig_pending", "mig_instances", "fabric_state", "fabric_status", "fabric_health", "bar1_total_mib", "serial"],
            h100.NOT_SUPPORTED,
        ),
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


def blackwell(capabilities: list[str], driver: str, cuda: str) -> Snapshot:
    """An RTX 5090 under a TensorFlow that was built before it."""
    facts = {"name": "NVIDIA GeForce RTX 5090", "compute_capability": "12.0", "architecture": "Blackwell"}
    machine = geforce(**facts)
    (gpu,) = machine["nvml"].gpus  # type: ignore[attr-defined]
    return whole(
        good_target(
            tensorflow=tensorflow(
                built_capabilities=capabilities,
                gpus=[FrameworkGpu(name=facts["name"])],
            )
        ),
        pci=Pci(devices=[h100.pci_device(ADDRESSES[0], device_id="10de:2b85")]),
        nvml=h100.nvml([gpu], driver_version=driver, cuda_version=cuda, pairs=[]),
        nvidia_smi=h100.smi([gpu], driver_version=driver, cuda_version=cuda),
        cuda=h100.cuda([gpu], driver_api_version=cuda),
        kernel=kernel(
            driver,
            driver_version=driver,
            modules=[KernelModule(name=name, version=driver) for name in ("nvidia", "nvidia_uvm")],
            device_nodes=nodes(*NODES[1:]),
        ),
    )


def off_the_bus() -> Snapshot:
    """XID 79: the kernel says so, the device reads as ones, CUDA starts for nobody any more."""
    left = [gpu for gpu in ALL if gpu.pci_address != HERE]
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
        good_target(
            tensorflow=blind(NO_GPU_LOG.format("CUDA_ERROR_UNKNOWN", "unknown error"))
        ),
        pci=Pci(devices=devices),
        nvml=h100.lost_gpu().machine.nvml,
        nvidia_smi=no_smi(15, f"Unable to determine the device handle for GPU {HERE}: GPU is lost."),
        cuda=no_cuda(999, "CUDA_ERROR_UNKNOWN"),
        kernel=kernel(
            log=[
                xid(79, "pid=4711, name=python3, GPU has fallen off the bus."),
                event("fallen-off-bus", f"NVRM: GPU {HERE}: GPU has fallen off the bus.", None, HERE),
                xid(154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
                xid(119, "Timeout after 6s of waiting for RPC response from GPU3 GSP!"),
            ]
        ),
    ) if left else whole()


def lost_without_a_word() -> Snapshot:
    """No Xid, the bus answers; NVML has errors alone for this GPU."""
    unknown = broken("Unknown Error")
    facts = dict.fromkeys(("uuid", "name", "memory_total_mib", "temperature_c", "power_draw_w"), unknown)
    gpus = [h100.gpu(n, **(facts if n == VICTIM else {})) for n in range(COUNT)]
    left = [gpu for gpu in ALL if gpu.pci_address != HERE]
    return whole(
        good_target(tensorflow=seeing(7)),
        nvml=h100.nvml(gpus),
        nvidia_smi=h100.smi(left, exit_code=15, gpu_count=COUNT),
        cuda=h100.cuda(left),
    )


def did_not_start() -> Snapshot:
    """After a reboot the driver cannot bring one GPU up: fewer in NVML than on the bus."""
    left = [gpu for gpu in ALL if gpu.pci_address != HERE]
    return whole(
        good_target(tensorflow=seeing(7)),
        nvml=h100.nvml(left, pairs=[]),
        nvidia_smi=h100.smi(left),
        cuda=h100.cuda(left),
        kernel=kernel(
            log=[event("nvrm", f"NVRM: GPU {HERE}: RmInitAdapter failed! (0x62:0xffff:2477)", None, HERE)]
        ),
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


def with_fault(log: list[object] | None = None, **facts: object) -> Snapshot:
    """These facts on one GPU, as NVML and nvidia-smi both tell them, and these lines in the log."""
    gpus = [h100.gpu(n, **(facts if n == VICTIM else {})) for n in range(COUNT)]
    return whole(nvml=h100.nvml(gpus), nvidia_smi=h100.smi(gpus), kernel=kernel(log=log or []))


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


def hidden(value: str) -> Snapshot:
    return with_target(
        tensorflow=blind(
            NO_GPU_LOG.format("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")
        ),
        environment=Environment(
            variables={"CUDA_VISIBLE_DEVICES": value, "TF_CPP_MIN_LOG_LEVEL": "3"}
        ),
    )


def small_container() -> Snapshot:
    return whole(
        host=in_container(shm_total_mib=64, shm_free_mib=64, memlock_kib=64),
        kernel=kernel(services=[]),
        containers=None,
    )


def wheel_too_new() -> Snapshot:
    """A wheel for glibc 2.29 that somebody unpacked on Ubuntu 18.04."""
    words = "ImportError: /lib/x86_64-linux-gnu/libm.so.6: version `GLIBC_2.29' not found"
    tags = ["cp38-cp38-manylinux_2_29_x86_64"]
    return whole(
        good_target(
            interpreter=interpreter(version="3.8.18", libc="glibc 2.27"),
            packages=packages(dist("nvidia-tensorflow", "1.15.5+nv21.10", wheel_tags=tags)),
            tensorflow=not_imported(words=words),
            loader=Loader(),
        ),
        host=host(os_version="18.04", glibc="2.27"),
    )


def placeholder() -> Snapshot:
    """The registry's name instead of NVIDIA's build."""
    return with_target(
        interpreter=interpreter(version="3.8.18"),
        packages=packages(dist("nvidia-tensorflow", "0.0.1.dev5", files=3)),
        tensorflow=not_imported(words="ModuleNotFoundError: No module named 'tensorflow'"),
    )


def old_system() -> Snapshot:
    return whole(host=host(os_id="centos", os_version="7", glibc="2.12"))


def new_protobuf() -> Snapshot:
    words = "TypeError: Descriptors cannot not be created directly."
    return with_target(
        interpreter=interpreter(version="3.7.16"),
        packages=packages(
            dist("tensorflow", "1.15.5", requires=["protobuf>=3.6.1"]),
            dist("protobuf", "4.24.4"),
            dist("numpy", "1.18.5"),
        ),
        tensorflow=not_imported(words=words),
    )


def old_pynvml() -> Snapshot:
    found = good_packages()
    both = [*found.distributions, dist("pynvml", "11.5.3"), dist("nvidia-ml-py", "12.560.30")]
    return with_target(packages=packages(*both, pynvml_module_version="11.5.3"))


def tensorrt_cudnn(*others: object) -> Snapshot:
    """TensorRT 8.5 from the registry, which brought cuDNN 9."""
    refusal = error("libcudnn.so.8: cannot open shared object file: No such file or directory")
    found = [
        wheel_library("libnvinfer", "libnvinfer.so.8", "", "nvidia-tensorrt", "8.5.3.1", path=refusal),
        wheel_library("libcudnn", "libcudnn.so.9", "9.5.1", "nvidia-cudnn-cu11", "9.5.1.17"),
    ]
    return with_target(
        packages=packages(
            dist("tensorrt", "8.5.3.1", requires=["nvidia-cudnn-cu11"]),
            dist("nvidia-cudnn-cu11", "9.5.1.17"),
            *others,
        ),
        tensorflow=None if not others else old_tensorflow(CANNOT_DLOPEN)["tensorflow"],
        loader=Loader(libraries=[*found, *(cuda_11("libcudnn") if others else [])]),
    )


def crashing_library() -> Snapshot:
    crash = error("loading it died by signal 11 (SIGSEGV)")
    lean = wheel_library(
        "libnvinfer_lean", "libnvinfer_lean.so.10", "", "tensorrt-lean", "10.3.0", path=crash
    )
    found = good_packages()
    return with_target(
        packages=packages(*found.distributions, dist("tensorrt-lean", "10.3.0")),
        loader=Loader(libraries=[*good_libraries(), lean]),
    )


def hollow_horovod() -> Snapshot:
    found = good_packages()
    names = ("tensorflow", "torch", "mxnet")
    return with_target(
        packages=packages(
            *found.distributions,
            dist("horovod", "0.28.1"),
            horovod_extensions=[HorovodExtension(framework=name, present=False) for name in names],
        )
    )


ECC = {"ecc_uncorrected_volatile": 1, "ecc_uncorrected_aggregate": 1}
REMAP = ECC | {"remap_pending": True, "remap_uncorrectable": 1, "recovery_action": "Drain and Reset"}
XID_48 = xid(48, "pid=4711, name=python3, DBE (double bit error) ECC at 0x7f")
XID_63 = xid(63, "Row Remapper: New row (0x7f) marked for remapping, reset gpu to activate.")
XID_64 = xid(64, "Row Remapper: All reserved rows for bank are remapped")
XID_94 = xid(94, "pid=4711, name=python3, Contained: Fb")
XID_95 = xid(95, "pid=4711, name=python3, Uncontained: LTC")
XID_119 = xid(119, "Timeout after 6s of waiting for RPC response from GPU3 GSP!")
# TensorFlow 2.13 was built before Hopper, whatever else is wrong with it.
PTX_ALONE = {"FRM-004": "warn"}

# (row of failure-modes.md and what of it): (the machine, what is told by itself)
ROWS: dict[str, tuple[Callable[[], Snapshot], dict[str, str]]] = {
    "1 mismatch": (mismatch, {"DRV-002": "fail"}),
    "2 nouveau": (lambda: rival("nouveau"), {"PCI-002": "fail"}),
    "2 nova_core": (lambda: rival("nova_core"), {"PCI-002": "fail"}),
    "3 Secure Boot": (secure_boot, {"KRN-002": "fail"}),
    "4 nvidia-uvm": (no_uvm, {"KRN-007": "fail"}),
    "5 permissions": (permissions, {"KRN-006": "fail"}),
    "5 SELinux": (selinux, {"KRN-006": "fail"}),
    "6 in the container": (lost_in_container, {"DRV-001": "fail"}),
    "6 on its host": (about_to_lose, {"CTR-003": "warn"}),
    "7 no runtime": (no_runtime, {"CTR-002": "warn"}),
    "8 fabric manager, Hopper": (no_fabric, {"KRN-011": "fail"}),
    "8 fabric manager, Ampere": (lambda: no_fabric(told=False), {"KRN-011": "fail"}),
    "9 MIG": (mig_without_instances, {"GPU-011": "fail"}),
    "10 system's cuDNN": (lambda: mixed_cudnn("ld.so.cache", LIB), {"LIB-002": "fail"}),
    "10 cuDNN by variable": (
        lambda: mixed_cudnn("LD_LIBRARY_PATH", "/opt/cudnn/lib"),
        {"LIB-002": "fail"},
    ),
    "11 no cuDNN": (no_cudnn, {"LIB-005": "fail"} | PTX_ALONE),
    "11 no cuDNN, named": (no_cudnn_by_its_name, {"LIB-005": "fail"} | PTX_ALONE),
    "11 no cuBLAS": (no_cublas, {"LIB-008": "fail"} | PTX_ALONE),
    "11 nothing": (no_libraries, {"LIB-008": "fail"} | PTX_ALONE),
    "11 no [and-cuda]": (no_and_cuda, {"PKG-013": "fail"}),
    "12 stubs": (stubs, {"DRV-005": "fail"}),
    "12 compat": (compat, {"DRV-005": "fail"}),
    "13 PTX alone": (
        lambda: blackwell(["sm_80", "sm_90", "compute_90"], "570.124.06", "12.8"),
        {"FRM-004": "warn"},
    ),
    "13 PTX newer than the driver": (
        lambda: blackwell(["sm_80", "sm_90", "compute_90"], "550.54.15", "12.4"),
        {"FRM-004": "fail"},
    ),
    "13 no code": (
        lambda: blackwell(["sm_80", "sm_90"], "570.124.06", "12.8"),
        {"FRM-004": "fail"},
    ),
    "14 off the bus": (off_the_bus, {"PCI-004": "fail"}),
    "14 lost without an Xid": (lost_without_a_word, {"GPU-001": "fail"}),
    "14 fewer than on the bus": (did_not_start, {"KRN-013": "fail"}),
    "15 narrow link": (narrow_link, {"PCI-005": "warn"}),
    "15 heat": (
        lambda: with_fault(
            temperature_c=88,
            temperature_margin_c=-1,
            clock_event_reasons=["hw_slowdown", "hw_thermal_slowdown"],
            clock_sm_mhz=345,
        ),
        {"GPU-008": "fail"},
    ),
    "15 heat, held just below": (
        lambda: with_fault(
            temperature_c=86,
            temperature_margin_c=1,
            clock_event_reasons=["sw_thermal_slowdown"],
            clock_sm_mhz=1200,
        ),
        {"GPU-008": "warn"},
    ),
    "15 heat, at the threshold": (
        lambda: with_fault(
            temperature_c=87, temperature_margin_c=0, clock_event_reasons=["sw_thermal_slowdown"]
        ),
        {"GPU-007": "fail"},
    ),
    "15 power brake": (
        lambda: with_fault(
            clock_event_reasons=["hw_slowdown", "hw_power_brake_slowdown"], clock_sm_mhz=345
        ),
        {"GPU-008": "fail"},
    ),
    "15 power cap": (lambda: with_fault(power_limit_w=400.0), {"GPU-009": "warn"}),
    "16 hang": (hung, {"DRV-010": "fail"}),
    "17 uncorrectable": (lambda: with_fault([XID_48], **ECC), {"GPU-002": "fail"}),
    "17 contained": (lambda: with_fault([XID_48, XID_94], **ECC), {"GPU-002": "fail"}),
    "17 remap pending": (
        lambda: with_fault([XID_48, XID_63, XID_95], **REMAP),
        {"GPU-003": "fail"},
    ),
    "17 remap failed": (
        lambda: with_fault([XID_48, XID_64], **(REMAP | {"remap_failed": True})),
        {"GPU-003": "fail"},
    ),
    "17 GSP": (
        lambda: with_fault([XID_119], recovery_action="Reset", reset_required=True),
        {"KRN-008": "fail"},
    ),
    "17 in the log alone": (lambda: with_fault([XID_95]), {"KRN-008": "fail"}),
    "18 empty": (lambda: hidden(""), {"ENV-001": "fail"}),
    "18 minus one": (lambda: hidden("-1"), {"ENV-001": "fail"}),
    "18 no such GPU": (lambda: hidden("8"), {"ENV-001": "fail"}),
    "19 small container": (small_container, {"HOST-008": "warn", "HOST-009": "warn"}),
    "20 wheel for a newer glibc": (wheel_too_new, {"PKG-012": "fail"}),
    "20 placeholder": (placeholder, {"PKG-002": "fail"}),
    "20 old system": (old_system, {"HOST-003": "fail"}),
    "21 protobuf": (new_protobuf, {"PKG-005": "fail"}),
    "22 pynvml": (old_pynvml, {"PKG-006": "warn"}),
    "23 TensorRT's cuDNN": (tensorrt_cudnn, {"PKG-007": "fail"}),
    "23 and TensorFlow's": (
        lambda: tensorrt_cudnn(dist("tensorflow", "2.13.1"), dist("numpy", "1.24.3")),
        {"PKG-007": "fail"} | PTX_ALONE,
    ),
    "24 a library crashes": (crashing_library, {"LIB-007": "warn"}),
    "25 horovod": (hollow_horovod, {"PKG-011": "fail"}),
}


def bare() -> Snapshot:
    """A machine as it comes: the GPUs, and nothing of NVIDIA's driver."""
    nothing = dict.fromkeys(("path", "exit_code", "gpus", "gpu_count", "driver_version"), ABSENT)
    return whole(
        good_target(
            tensorflow=blind("Could not find cuda drivers on your machine, GPU will not be used.")
        ),
        pci=unbound(),
        kernel=unloaded(
            module_files=[], dkms=ABSENT, driver_files=[], driver_packages=[], blacklisted=[]
        ),
        containers=None,
        nvml=replace(h100.no_driver(12, "Shared Library Not Found"), library_path=ABSENT),
        nvidia_smi=NvidiaSmi(**nothing),
        cuda=no_libcuda(),
    )


def no_libcuda() -> CudaDriver:
    words = "libcuda.so.1: cannot open shared object file: No such file or directory"
    names = ("library_path", "library_real_path", "init_code", "init_name", "device_count", "devices")
    return CudaDriver(load_error=words, **dict.fromkeys(names, error(words, "absent")))


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
    facts = no_module()
    return whole(
        pci=Pci(devices=[h100.pci_device(at, device_id="10de:2b85", driver=ABSENT)]),
        kernel=unloaded(
            module_files=[replace(kernel().module_files[0], flavour="proprietary")],  # type: ignore[index]
            log=[
                event("nvrm", f"NVRM: The NVIDIA GPU {at} (PCI ID: 10de:2b85) {words}", None, at),
                event("nvrm", f"nvidia: probe of {at} failed with error -1", None, at),
                event("nvrm", "NVRM: The NVIDIA probe routine failed for 1 device(s)."),
                event("nvrm", "NVRM: None of the NVIDIA devices were initialized."),
            ],
        ),
        **facts,
    )


def started_without(tensorflow_log: str, variables: dict[str, str], **changes: object) -> Snapshot:
    """A container that the engine did not give all that it needs."""
    return whole(
        good_target(tensorflow=blind(tensorflow_log), environment=Environment(variables=variables)),
        host=in_container(),
        containers=None,
        **changes,
    )


def without_gpus() -> Snapshot:
    nothing = dict.fromkeys(("path", "exit_code", "gpus", "gpu_count", "driver_version"), ABSENT)
    return started_without(
        "Could not find cuda drivers on your machine, GPU will not be used.",
        {"NVIDIA_VISIBLE_DEVICES": "void"},
        kernel=kernel(device_nodes=[], driver_files=[], services=[]),
        nvml=replace(h100.no_driver(12, "Shared Library Not Found"), library_path=ABSENT),
        nvidia_smi=NvidiaSmi(**nothing),
        cuda=no_libcuda(),
    )


def without_compute() -> Snapshot:
    return started_without(
        "Could not find cuda drivers on your machine, GPU will not be used.",
        {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"},
        kernel=kernel(services=[]),
        cuda=no_libcuda(),
    )


def without_utility() -> Snapshot:
    """CUDA works, and NVML, nvidia-smi and all that is asked of them are missing."""
    nothing = dict.fromkeys(("path", "exit_code", "gpus", "gpu_count", "driver_version"), ABSENT)
    snapshot = started_without(
        "",
        {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute"},
        kernel=kernel(services=[]),
        nvml=replace(h100.no_driver(12, "Shared Library Not Found"), library_path=ABSENT),
        nvidia_smi=NvidiaSmi(**nothing),
    )
    variables = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute"}
    target = good_target(tensorflow=seeing(8), environment=Environment(variables=variables))
    return replace(snapshot, target=target)


def old_driver(driver: str, cuda: str, name: str, capability: str) -> Snapshot:
    """A TensorFlow of CUDA 12.5 under a driver of CUDA 11 or 10."""
    probes = geforce(name=name, compute_capability=capability, architecture="Ampere")
    (gpu,) = probes["nvml"].gpus  # type: ignore[attr-defined]
    return whole(
        good_target(
            tensorflow=blind(
                "failed to allocate: CUDA_ERROR_UNSUPPORTED: CUDA driver version is insufficient for"
                " CUDA runtime version"
            )
        ),
        pci=probes["pci"],
        nvml=h100.nvml([gpu], driver_version=driver, cuda_version=cuda, pairs=[]),
        nvidia_smi=h100.smi([gpu], driver_version=driver, cuda_version=cuda),
        cuda=h100.cuda([gpu], driver_api_version=cuda),
        kernel=kernel(
            driver,
            driver_version=driver,
            driver_flavour="proprietary",
            modules=[KernelModule(name=name, version=driver) for name in ("nvidia", "nvidia_uvm")],
            device_nodes=nodes(*NODES[1:]),
        ),
    )


def old_gpu() -> Snapshot:
    """Maxwell under a TensorFlow that was built for Pascal and later."""
    facts = {"name": "NVIDIA GeForce GTX 980", "compute_capability": "5.2", "architecture": "Maxwell"}
    probes = geforce(**facts)
    log = (
        "Ignoring visible gpu device (device: 0, name: NVIDIA GeForce GTX 980, pci bus id: 0000:1b:00.0,"
        " compute capability: 5.2) with compute capability 5.2. The minimum required Cuda capability is"
        " 6.0."
    )
    return whole(
        good_target(tensorflow=blind(log)),
        **probes | {"pci": Pci(devices=[h100.pci_device(ADDRESSES[0], device_id="10de:13c0")])},  # type: ignore[operator]
    )


def cpu_build() -> Snapshot:
    return with_target(
        packages=packages(dist("tensorflow-cpu", "2.19.1"), dist("numpy", "2.1.3")),
        tensorflow=blind(cuda_build=False, built_cuda=ABSENT, built_cudnn=ABSENT),
        loader=Loader(),
        environment=Environment(variables={"TF_CPP_MIN_LOG_LEVEL": "2"}),
    )


def one_closed() -> Snapshot:
    """One GPU that this user may not open: NVML says so, CUDA leaves it out."""
    closed = [
        replace(one, usable=False, mode="0600") if one.path == NODES[VICTIM] else one
        for one in nodes()
    ]
    lost = LostGpu(index=VICTIM, error="Insufficient Permissions", code=4, pci_address=HERE)
    left = [gpu for gpu in ALL if gpu.pci_address != HERE]
    return whole(
        good_target(tensorflow=seeing(7)),
        kernel=kernel(device_nodes=closed),
        nvml=h100.nvml(left, gpu_count=COUNT, lost=[lost], pairs=[]),
        nvidia_smi=h100.smi(left, gpu_count=COUNT),
        cuda=h100.cuda(left),
    )


def nothing_at_all() -> Snapshot:
    """No NVIDIA device, and a TensorFlow that has to do without."""
    empty = h100.empty_machine().machine
    return whole(
        good_target(
            tensorflow=blind("Could not find cuda drivers on your machine, GPU will not be used.")
        ),
        **{name: getattr(empty, name) for name in ("pci", "kernel", "nvml", "nvidia_smi", "cuda")},
    )


def no_avx() -> Snapshot:
    died = dead("crashed", "the probe died by signal 4 (SIGILL)")
    return whole(good_target(tensorflow=died), host=host(cpu_flags=["sse4_2"], hypervisor="kvm"))


def one_program_hangs() -> Snapshot:
    """nvidia-smi hangs in the kernel, and a power limit has nothing to do with it."""
    gpus = [h100.gpu(n, power_limit_w=400.0) for n in range(COUNT)]
    return replace(
        whole(nvml=h100.nvml(gpus)),
        machine=replace(
            whole(nvml=h100.nvml(gpus)).machine, nvidia_smi=hung().machine.nvidia_smi
        ),
    )


# What is in no row, and no less real.
OTHERS: dict[str, tuple[Callable[[], Snapshot], dict[str, str]]] = {
    "no driver": (bare, {"KRN-001": "fail"}),
    "no GPU": (nothing_at_all, {"PCI-001": "fail"}),
    "kernel upgraded": (kernel_upgraded, {"KRN-003": "fail"}),
    "wrong flavour": (wrong_flavour, {"KRN-009": "fail"}),
    "all for guests": (
        lambda: whole(pci=unbound("vfio-pci"), kernel=unloaded(), **no_module()),
        {"PCI-002": "fail"},
    ),
    "container without GPUs": (without_gpus, {"ENV-002": "fail"}),
    "container without compute": (without_compute, {"ENV-009": "fail"}),
    "container without utility": (without_utility, {"ENV-009": "fail"}),
    "old driver": (
        lambda: old_driver("470.256.02", "11.4", "NVIDIA GeForce RTX 3080", "8.6"),
        {"FRM-003": "fail"},
    ),
    "very old driver": (
        lambda: old_driver("418.226.00", "10.1", "NVIDIA GeForce RTX 2080", "7.5"),
        {"FRM-003": "fail"},
    ),
    "old GPU": (old_gpu, {"FRM-004": "fail"}),
    "CPU build": (cpu_build, {"FRM-005": "fail"}),
    "one GPU closed": (one_closed, {"KRN-006": "warn"}),
    "no AVX": (no_avx, {"HOST-002": "fail"}),
    "nvidia-smi alone hangs": (one_program_hangs, {"DRV-010": "fail", "GPU-009": "warn"}),
}


def test_every_row_is_tried() -> None:
    assert {int(name.split()[0]) for name in ROWS} == set(range(1, 26))


@pytest.mark.parametrize("name", [*ROWS, *OTHERS])
def test_one_root_cause_is_one_finding(name: str) -> None:
    build, expected = (ROWS | OTHERS)[name]
    results = diagnosed(build())
    assert independent(results) == expected
    for code in expected:
        for finding in results[code].findings:
            assert finding.evidence and finding.remedy is not None and finding.remedy.text


def desktop(target: Document | None = None, **changes: object) -> Snapshot:
    seen = good_target(tensorflow=tensorflow(gpus=[FrameworkGpu(name="NVIDIA GeForce RTX 4080")]))
    return whole(target or seen, **(geforce() | changes))


def one_gpu(name: str, slot: int, **facts: object) -> Snapshot:
    """One data-centre GPU at work in a slot of so many lanes."""
    gpu = h100.gpu(
        0,
        name=name,
        nvlinks=h100.NOT_SUPPORTED,
        pcie_gen=3,
        pcie_gen_max=3,
        **{"pcie_width": 8, "pcie_width_max": 16, "compute_capability": "7.5", **facts},
        **dict.fromkeys(("fabric_state", "fabric_status", "fabric_health"), h100.NOT_SUPPORTED),
    )
    device = h100.pci_device(
        ADDRESSES[0], device_id="10de:1eb8", link_width=8, slot_max_link_width=slot
    )
    return desktop(
        good_target(tensorflow=tensorflow(gpus=[FrameworkGpu(name=name)])),
        pci=Pci(devices=[device]),
        nvml=h100.nvml([gpu], pairs=[]),
        nvidia_smi=h100.smi([gpu]),
        cuda=h100.cuda([gpu]),
    )


def says_little() -> Snapshot:
    """A driver to which nearly everything is "not supported"."""
    said = ("index", "pci_address", "uuid", "name", "compute_capability", "memory_total_mib")
    everything = [name for name in h100.gpu().__struct_fields__ if name not in said]
    gpu = h100.gpu(0, **dict.fromkeys(everything, h100.NOT_SUPPORTED), name="NVIDIA GeForce GTX 1080")
    return desktop(
        nvml=h100.nvml([gpu], pairs=h100.NOT_SUPPORTED),
        nvidia_smi=h100.smi([gpu]),
        cuda=h100.cuda([gpu]),
    )


def wsl() -> Snapshot:
    """The driver is Windows' own: no module, no PCI device, no node but /dev/dxg."""
    probes = geforce()
    (gpu,) = probes["nvml"].gpus  # type: ignore[attr-defined]
    folder = "/usr/lib/wsl/lib"
    return desktop(
        host=host(wsl=True, hypervisor="microsoft", kernel="5.15.167.4-microsoft-standard-WSL2"),
        pci=Pci(devices=[]),
        kernel=unloaded(
            module_files=[],
            dkms=ABSENT,
            driver_packages=[],
            driver_files=[h100.file(name, "1", folder) for name in ("libcuda", "libnvidia-ml")],
            blacklisted=[],
        ),
        nvml=h100.nvml([gpu], library_path=f"{folder}/libnvidia-ml.so.1", pairs=[]),
        cuda=h100.cuda([gpu], library_path=f"{folder}/libcuda.so.1", library_real_path=ABSENT),
        containers=containers(docker(cgroup_driver="cgroupfs")),
    )


def guest() -> Snapshot:
    """A virtual machine with a GPU passed through: its slots are made up."""
    gpu = h100.gpu(0, virtualization="Pass-Through", pcie_width=1, nvlinks=[], pcie_gen=1)
    device = h100.pci_device(ADDRESSES[0], link_width=1, slot_max_link_width=ABSENT)
    seen = good_target(tensorflow=seeing(1))
    return desktop(
        seen,
        host=host(hypervisor="kvm"),
        pci=Pci(devices=[device]),
        nvml=h100.nvml([gpu], pairs=[]),
        nvidia_smi=h100.smi([gpu]),
        cuda=h100.cuda([gpu]),
        kernel=kernel(device_nodes=nodes(*NODES[1:]), services=[]),
    )


def forward_compatible() -> Snapshot:
    """NVIDIA's container of CUDA 12.4 on a driver of 12.2: it brings a newer libcuda."""
    folder = "/usr/local/cuda/compat/lib"
    variables = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility,video"}
    compat = {
        "library_path": f"{folder}/libcuda.so.1",
        "library_real_path": f"{folder}.real/libcuda.so.550.54.15",
        "driver_api_version": "12.4",
    }
    snapshot = whole(
        good_target(tensorflow=seeing(8), environment=Environment(variables=variables)),
        host=in_container(),
        kernel=kernel(services=[]),
        containers=None,
        nvml=h100.nvml(ALL, cuda_version="12.4"),
        nvidia_smi=h100.smi(ALL, cuda_version="12.4"),
        cuda=h100.cuda(ALL, **compat),
    )
    return snapshot


def unprivileged() -> Snapshot:
    """A user who may not read the kernel's log, nor what only root may."""
    closed = Unavailable(unavailable="no-permission")
    return whole(kernel=kernel(log=closed, reboot_required_by=closed))


def mig_in_use() -> Snapshot:
    gpus = [
        h100.gpu(
            n, mig_enabled=True, mig_pending=True, mig_instances=[h100.mig_instance()], nvlinks=[]
        )
        for n in range(COUNT)
    ]
    first = h100.cuda(gpus[:1])
    return whole(
        good_target(tensorflow=seeing(1)),
        nvml=h100.nvml(gpus),
        nvidia_smi=h100.smi(gpus),
        cuda=first,
    )


def from_the_future() -> Snapshot:
    """A driver, a CUDA and a GPU that no table has."""
    driver, cuda = "710.33.01", "14.2"
    gpu = h100.gpu(0, name="NVIDIA R300", compute_capability="13.0", architecture="?", nvlinks=[])
    return whole(
        good_target(
            packages=packages(dist("tensorflow", "3.1.0"), dist("numpy", "3.0.1")),
            tensorflow=tensorflow(
                version="3.1.0",
                built_cuda="14.1.0",
                built_cudnn="11",
                built_capabilities=["sm_130", "compute_130"],
                gpus=[FrameworkGpu(name="NVIDIA R300")],
                libraries=[],
            ),
            loader=Loader(),
        ),
        pci=Pci(devices=[h100.pci_device(ADDRESSES[0], device_id="10de:3aaa")]),
        nvml=h100.nvml([gpu], driver_version=driver, cuda_version=cuda, pairs=[]),
        nvidia_smi=h100.smi([gpu], driver_version=driver, cuda_version=cuda),
        cuda=h100.cuda([gpu], driver_api_version=cuda),
        kernel=kernel(
            driver,
            driver_version=driver,
            modules=[KernelModule(name=name, version=driver) for name in ("nvidia", "nvidia_uvm")],
            device_nodes=nodes(*NODES[1:]),
            services=[Service(name="nvidia-persistenced", installed=True, running=True)],
        ),
    )


# "False alarms to avoid", and other machines on which all is well. That a ratio of TF32 to FP32 of 1 is
# no failure on a GeForce, and what a matrix of zeros does to a rate, are matters of kernels that run.
WELL: dict[str, Callable[[], Snapshot]] = {
    "an 8 × H100 machine": whole,
    "a T4 at x8 in a slot of 8 lanes": lambda: one_gpu("Tesla T4", 8, brand="Tesla"),
    "an L40S at x8 in a slot of 8 lanes": lambda: one_gpu("NVIDIA L40S", 8, compute_capability="8.9"),
    "an idle GeForce at generation 1": desktop,
    "an idle T4 at x8 in a slot that is not known": lambda: replace_slot(),
    "a GPU to which most is not supported": says_little,
    "WSL2": wsl,
    "a virtual machine": guest,
    "forward compatibility in NVIDIA's container": forward_compatible,
    "a user without root": unprivileged,
    "MIG in use": mig_in_use,
    "what no table has": from_the_future,
    "two of eight GPUs chosen": lambda: with_target(
        tensorflow=seeing(2), environment=Environment(variables={"CUDA_VISIBLE_DEVICES": "6,7"})
    ),
    "Secure Boot with a signed module": lambda: whole(host=host(secure_boot=True)),
    "a reboot for other packages": lambda: whole(
        kernel=kernel(reboot_required=True, reboot_required_by=["libc6", "dbus"])
    ),
    "no target": lambda: replace(whole(), target=None),
}


def replace_slot() -> Snapshot:
    snapshot = one_gpu(
        "Tesla T4", 8, utilization_percent=0, clock_event_reasons=["gpu_idle"], performance_state="P8"
    )
    device = h100.pci_device(ADDRESSES[0], link_width=8, slot_max_link_width=ABSENT)
    machine = snapshot.machine
    assert machine.pci is not None
    pci = replace(machine.pci, facts=Pci(devices=[device]))
    return replace(snapshot, machine=replace(machine, pci=pci))


@pytest.mark.parametrize("name", WELL)
def test_where_all_is_well_nothing_is_told(name: str) -> None:
    assert independent(diagnosed(WELL[name]())) == {}


def test_not_supported_is_no_error_and_unknown_error_is() -> None:
    def temperature(fact: Unavailable) -> dict[str, str]:
        return independent(diagnosed(with_fault(temperature_c=fact)))

    assert temperature(h100.NOT_SUPPORTED) == {}
    assert temperature(broken("Unknown Error")) == {"GPU-001": "fail"}
    assert temperature(Unavailable(unavailable="lost", detail="GPU is lost")) == {"GPU-001": "fail"}

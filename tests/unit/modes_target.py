"""Targets that are broken on a healthy machine, or that the machine does not suit."""

from __future__ import annotations

import h100
from h100 import ADDRESSES, NODES
from modes_parts import CANNOT_DLOPEN, DLOPEN, NO_GPU_LOG, geforce, no_cuda
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
from whole import ABSENT, blind, broken, dead, host, kernel, nodes, seeing, whole, with_target

from envcheck.facts.kernel import KernelModule
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment, FrameworkGpu, HorovodExtension, Loader


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


def no_cublas() -> Snapshot:
    return with_target(
        **old_tensorflow(DLOPEN.format("libcublas.so.11"), CANNOT_DLOPEN),
        loader=Loader(libraries=cuda_11("libcublas", "libcublasLt")),
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


def blackwell(capabilities: list[str], driver: str, cuda: str) -> Snapshot:
    """An RTX 5090 under a TensorFlow that was built before it."""
    facts = {
        "name": "NVIDIA GeForce RTX 5090",
        "compute_capability": "12.0",
        "architecture": "Blackwell",
    }
    machine = geforce(**facts)
    (gpu,) = machine["nvml"].gpus  # type: ignore[attr-defined]
    return whole(
        good_target(
            tensorflow=tensorflow(
                built_capabilities=capabilities, gpus=[FrameworkGpu(name=facts["name"])]
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


def hidden(value: str) -> Snapshot:
    return with_target(
        tensorflow=blind(
            NO_GPU_LOG.format("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")
        ),
        environment=Environment(
            variables={"CUDA_VISIBLE_DEVICES": value, "TF_CPP_MIN_LOG_LEVEL": "3"}
        ),
    )


def wheel_too_new() -> Snapshot:
    """A wheel for glibc 2.29 that somebody unpacked on Ubuntu 18.04."""
    words = "ImportError: /lib/x86_64-linux-gnu/libm.so.6: version `GLIBC_2.29' not found"
    return whole(
        good_target(
            interpreter=interpreter(version="3.8.18", libc="glibc 2.27"),
            packages=packages(dist("nvidia-tensorflow", "1.15.5+nv21.10")),
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
    return with_target(packages=packages(*both))


def tensorrt_cudnn() -> Snapshot:
    """TensorRT 8.5 from the registry, which brought cuDNN 9."""
    refusal = error("libcudnn.so.8: cannot open shared object file: No such file or directory")
    found = [
        wheel_library(
            "libnvinfer", "libnvinfer.so.8", "", "nvidia-tensorrt", "8.5.3.1", path=refusal
        ),
        wheel_library("libcudnn", "libcudnn.so.9", "9.5.1", "nvidia-cudnn-cu11", "9.5.1.17"),
    ]
    return with_target(
        packages=packages(
            dist("tensorrt", "8.5.3.1", requires=["nvidia-cudnn-cu11"]),
            dist("nvidia-cudnn-cu11", "9.5.1.17"),
        ),
        tensorflow=None,
        loader=Loader(libraries=found),
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


def cpu_build() -> Snapshot:
    return with_target(
        packages=packages(dist("tensorflow-cpu", "2.19.1"), dist("numpy", "2.1.3")),
        tensorflow=blind(cuda_build=False, built_cuda=ABSENT, built_cudnn=ABSENT),
        loader=Loader(),
        environment=Environment(variables={"TF_CPP_MIN_LOG_LEVEL": "2"}),
    )


def no_avx() -> Snapshot:
    died = dead("crashed", "the probe died by signal 4 (SIGILL)")
    return whole(good_target(tensorflow=died), host=host(cpu_flags=["sse4_2"], hypervisor="kvm"))


def two_tensorflows() -> Snapshot:
    """The CPU build came last, and lies over the other one."""
    return with_target(
        packages=packages(dist("tensorflow", "2.19.1"), dist("tensorflow-cpu", "2.18.0")),
        tensorflow=blind(version="2.18.0", cuda_build=False, built_cuda=ABSENT),
    )


def half_installed() -> Snapshot:
    gone = ["tensorflow/python/_pywrap_tensorflow_internal.so"]
    return with_target(
        packages=packages(dist("tensorflow", "2.19.1", missing=gone, missing_count=1)),
        tensorflow=not_imported(words="ModuleNotFoundError: No module named 'tensorflow.python'"),
    )

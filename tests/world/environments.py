"""Python environments in a made-up machine: distributions, and stand-ins of what they bring."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import libraries
from .contents import Content, Library, Link
from .machine import Machine

HOME = "/opt/tf"
STANDINS = Path(__file__).parent / "standins"
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
SITE = f"{HOME}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def _property(function: str, version: str) -> Library:
    major, minor, patch = version.split(".")[:3]
    return Library(
        "versioned", (f"PROPERTY={function}", f"MAJOR={major}", f"MINOR={minor}", f"PATCH={patch}")
    )


def _pair(function: str, version: str) -> Library:
    major, minor = version.split(".")[:2]
    return Library("versioned", (f"PAIR={function}", f"MAJOR={major}", f"MINOR={minor}"))


def _number(kind: str, function: str, number: int) -> Library:
    return Library("versioned", (f"{kind}={function}", f"NUMBER={number}"))


def cuda_library(project: str, version: str) -> dict[str, Content]:
    """The libraries of one of NVIDIA's wheels ("cublas", "12.5.3.2"), in site-packages."""
    numbers = [int(part) for part in version.split(".")]
    major = numbers[0]
    cudnn = major * (10000 if major > 8 else 1000) + numbers[1] * 100 + numbers[2]
    folder = f"nvidia/{project}/lib"
    made: dict[str, Content] = {
        "cuda_runtime": {
            f"libcudart.so.{major}": _number(
                "POINTER", "cudaRuntimeGetVersion", major * 1000 + numbers[1] * 10
            )
        },
        "cublas": {
            f"libcublas.so.{major}": _property("cublasGetProperty", version),
            f"libcublasLt.so.{major}": _property("cublasLtGetProperty", version),
        },
        "cufft": {"libcufft.so.11": _property("cufftGetProperty", version)},
        "curand": {"libcurand.so.10": _property("curandGetProperty", version)},
        "cusolver": {"libcusolver.so.11": _property("cusolverGetProperty", version)},
        "cusparse": {"libcusparse.so.12": _property("cusparseGetProperty", version)},
        "nvjitlink": {f"libnvJitLink.so.{major}": _pair("nvJitLinkVersion", version)},
        "cuda_nvrtc": {f"libnvrtc.so.{major}": _pair("nvrtcVersion", version)},
        "cuda_cupti": {f"libcupti.so.{major}": _number("POINTER", "cuptiGetVersion", 24)},
        "nccl": {
            "libnccl.so.2": _number(
                "POINTER", "ncclGetVersion", major * 10000 + numbers[1] * 100 + numbers[2]
            )
        },
        "cudnn": {
            f"libcudnn{part}.so.{major}": _number("VALUE", "cudnnGetVersion", cudnn)
            for part in (
                "",
                *(
                    ("_graph", "_ops", "_cnn", "_adv")
                    if major > 8
                    else ("_ops_infer", "_cnn_infer")
                ),
            )
        },
    }.get(project, {})  # type: ignore[assignment]
    if project == "cuda_nvcc":
        return {
            "nvidia/cuda_nvcc/bin/ptxas": "#!/bin/sh\n"
            f"echo 'Cuda compilation tools, release {version[:4]}, V{version}'\n",
            "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc": "BC",
        }
    return {f"{folder}/{name}": content for name, content in made.items()}


@dataclass
class Package:
    """An installed distribution. files: below site-packages."""

    name: str
    version: str
    requires: tuple[str, ...] = ()
    files: dict[str, Content] = field(default_factory=dict)
    gone: tuple[str, ...] = ()  # of the files: recorded, and not on disk
    tag: str = "py3-none-manylinux2014_x86_64"


# TensorFlow 2.18.0's own metadata (envcheck/data/pypi_tf.csv has where from).
CUDA_12_5 = {
    "cublas": "12.5.3.2",
    "cuda_cupti": "12.5.82",
    "cuda_nvcc": "12.5.82",
    "cuda_nvrtc": "12.5.82",
    "cuda_runtime": "12.5.82",
    "cudnn": "9.3.0.75",
    "cufft": "11.2.3.61",
    "curand": "10.3.6.82",
    "cusolver": "11.6.3.83",
    "cusparse": "12.5.1.3",
    "nccl": "2.21.5",
    "nvjitlink": "12.5.82",
}
# Every TensorFlow's wheel holds the header of the cuDNN that it was built with.
CUDNN_HEADER = "tensorflow/include/third_party/gpus/cudnn/include/cudnn_version.h"


def cuda_wheel(project: str, version: str, suffix: str = "cu12") -> Package:
    name = f"nvidia-{project.replace('_', '-')}-{suffix}"
    return Package(name, version, files=cuda_library(project, version))


def tensorflow(version: str = "2.18.0", wheels: dict[str, str] | None = None) -> dict[str, Package]:
    """An environment by ``pip install tensorflow[and-cuda]``; wheels: other versions of NVIDIA's."""
    wheels = CUDA_12_5 if wheels is None else wheels
    pins = tuple(
        f"nvidia-{project.replace('_', '-')}-cu12=={number}; extra == 'and-cuda'"
        for project, number in CUDA_12_5.items()
    )
    needs = (
        "numpy<2.1.0,>=1.26.0",
        "protobuf!=4.21.0,!=4.21.1,<6.0.0dev,>=3.20.3",
        "keras>=3.5.0",
        "ml-dtypes<0.5.0,>=0.4.0",
        "h5py>=3.11.0",
    )
    packages = [
        Package(
            "tensorflow",
            version,
            (*needs, *pins),
            {
                "tensorflow/__init__.py": standin("tensorflow", VERSION=version),
                CUDNN_HEADER: "".join(
                    f"#define CUDNN_{name} {number}\n"
                    for name, number in zip(
                        ("MAJOR", "MINOR", "PATCHLEVEL"),
                        CUDA_12_5["cudnn"].split("."),
                        strict=False,
                    )
                ),
            },
            tag=f"{TAG}-{TAG}-manylinux_2_17_x86_64",
        ),
        Package(
            "numpy",
            "2.0.2",
            files={"numpy/__init__.py": "__version__ = '2.0.2'\n"},
            tag=f"{TAG}-{TAG}-manylinux_2_17_x86_64",
        ),
        Package(
            "protobuf",
            "5.28.3",
            files={"google/protobuf/__init__.py": "__version__ = '5.28.3'\n"},
            tag="py3-none-any",
        ),
        Package(
            "keras",
            "3.6.0",
            ("numpy", "h5py", "ml-dtypes"),
            {"keras/__init__.py": "__version__ = '3.6.0'\n"},
            tag="py3-none-any",
        ),
        Package(
            "ml-dtypes",
            "0.4.1",
            ("numpy>1.20",),
            {"ml_dtypes/__init__.py": ""},
            tag=f"{TAG}-{TAG}-manylinux_2_17_x86_64",
        ),
        Package(
            "h5py",
            "3.12.1",
            ("numpy>=1.19.3",),
            {"h5py/__init__.py": ""},
            tag=f"{TAG}-{TAG}-manylinux_2_17_x86_64",
        ),
        *(cuda_wheel(project, number) for project, number in wheels.items()),
    ]
    return {package.name: package for package in packages}


def torch(version: str = "2.6.0", cuda: str = "12.4") -> dict[str, Package]:
    """PyTorch alone."""
    local = f"+cu{cuda.replace('.', '')}" if cuda else "+cpu"
    packages = [
        Package(
            "torch",
            version,
            ("numpy",),
            {"torch/__init__.py": standin("torch", VERSION=version + local, CUDA=cuda)},
            tag=f"{TAG}-{TAG}-manylinux1_x86_64",
        ),
        Package("numpy", "2.0.2", files={"numpy/__init__.py": "__version__ = '2.0.2'\n"}),
    ]
    return {package.name: package for package in packages}


def standin(name: str, **values: str) -> str:
    text = (STANDINS / f"{name}.py.txt").read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


def install(m: Machine, packages: dict[str, Package], home: str = HOME) -> None:
    """The environment as pip leaves it; envcheck is asked to look at it."""
    python = os.path.realpath(sys.executable)
    site = SITE.replace(HOME, home)
    m.write(
        f"{home}/pyvenv.cfg",
        f"home = {Path(python).parent}\ninclude-system-site-packages = false\n",
    )
    for name in ("python", "python3"):
        m.write(f"{home}/bin/{name}", Link(python))
    for package in packages.values():
        for path, content in _installed(package).items():
            m.write(f"{site}/{path}", content)
    if "--target" not in m.arguments:
        m.arguments += ["--target", home]


def _installed(package: Package) -> dict[str, Content]:
    info = f"{package.name.replace('-', '_')}-{package.version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {package.name}", f"Version: {package.version}"]
    lines += [f"Requires-Dist: {need}" for need in package.requires]
    if any("and-cuda" in need for need in package.requires):
        lines.append("Provides-Extra: and-cuda")
    files: dict[str, Content] = {
        **package.files,
        f"{info}/METADATA": "\n".join(lines) + "\n\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: made-up\n"
        f"Root-Is-Purelib: true\nTag: {package.tag}\n",
        f"{info}/INSTALLER": "pip\n",
    }
    record = "".join(f"{path},{_digest(content)},\n" for path, content in files.items())
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    return {path: content for path, content in files.items() if path not in package.gone}


def _digest(content: Content) -> str:
    if isinstance(content, Library):
        try:
            raw = libraries.built(content).read_bytes()
        except libraries.NoCompiler:
            return ""
    elif isinstance(content, str):
        raw = content.encode()
    else:
        return ""
    digest = hashlib.sha256(raw).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

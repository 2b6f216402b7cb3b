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
COMPILED = f"{TAG}-{TAG}-manylinux_2_17_x86_64"  # a wheel's tag
SITE = f"{HOME}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


# Of NVIDIA's wheels: the libraries, and how each says its version ("{}" is the wheel's major version).
_LIBRARIES = {
    "cuda_runtime": [("libcudart.so.{}", "POINTER", "cudaRuntimeGetVersion")],
    "cublas": [
        ("libcublas.so.{}", "PROPERTY", "cublasGetProperty"),
        ("libcublasLt.so.{}", "PROPERTY", "cublasLtGetProperty"),
    ],
    "cufft": [("libcufft.so.11", "PROPERTY", "cufftGetProperty")],
    "curand": [("libcurand.so.10", "PROPERTY", "curandGetProperty")],
    "cusolver": [("libcusolver.so.11", "PROPERTY", "cusolverGetProperty")],
    "cusparse": [("libcusparse.so.12", "PROPERTY", "cusparseGetProperty")],
    "nvjitlink": [("libnvJitLink.so.{}", "PAIR", "nvJitLinkVersion")],
    "cuda_nvrtc": [("libnvrtc.so.{}", "PAIR", "nvrtcVersion")],
    "cuda_cupti": [("libcupti.so.{}", "POINTER", "cuptiGetVersion")],
    "nccl": [("libnccl.so.2", "POINTER", "ncclGetVersion")],
}


def cuda_library(project: str, version: str) -> dict[str, Content]:
    """The libraries of one of NVIDIA's wheels ("cublas", "12.5.3.2"), in site-packages."""
    if project == "cuda_nvcc":
        return {
            "nvidia/cuda_nvcc/bin/ptxas": "#!/bin/sh\n"
            f"echo 'Cuda compilation tools, release {version[:4]}, V{version}'\n",
            "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc": "BC",
        }
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    numbers = {
        "cuda_runtime": major * 1000 + minor * 10,
        "cuda_cupti": 24,
        "nccl": major * 10000 + minor * 100 + patch,
        "cudnn": major * (10000 if major > 8 else 1000) + minor * 100 + patch,
    }
    libraries = _LIBRARIES.get(project, [])
    if project == "cudnn":
        parts = ("_graph", "_ops", "_cnn", "_adv") if major > 8 else ("_ops_infer", "_cnn_infer")
        libraries = [
            (f"libcudnn{part}.so.{{}}", "VALUE", "cudnnGetVersion") for part in ("", *parts)
        ]
    answers = {
        "PROPERTY": (f"MAJOR={major}", f"MINOR={minor}", f"PATCH={patch}"),
        "PAIR": (f"MAJOR={major}", f"MINOR={minor}"),
    }
    return {
        f"nvidia/{project}/lib/{name.format(major)}": Library(
            "versioned",
            (f"{kind}={function}", *answers.get(kind, (f"NUMBER={numbers.get(project)}",))),
        )
        for name, kind, function in libraries
    }


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
    files: dict[str, Content] = {
        "tensorflow/__init__.py": standin("tensorflow", VERSION=version),
        CUDNN_HEADER: cudnn_header(CUDA_12_5["cudnn"]),
    }
    packages = [
        Package("tensorflow", version, (*needs, *pins), files, tag=COMPILED),
        module("numpy", "2.0.2", tag=COMPILED),
        module("protobuf", "5.28.3", at="google/protobuf"),
        module("keras", "3.6.0", ("numpy", "h5py", "ml-dtypes")),
        Package("ml-dtypes", "0.4.1", ("numpy>1.20",), {"ml_dtypes/__init__.py": ""}, tag=COMPILED),
        Package("h5py", "3.12.1", ("numpy>=1.19.3",), {"h5py/__init__.py": ""}, tag=COMPILED),
        *(cuda_wheel(project, number) for project, number in wheels.items()),
    ]
    return {package.name: package for package in packages}


def module(
    name: str, version: str, requires: tuple[str, ...] = (), at: str = "", tag: str = "py3-none-any"
) -> Package:
    """A distribution of one module, which says its version."""
    place = at or name.replace("-", "_").lower()
    files: dict[str, Content] = {f"{place}/__init__.py": f"__version__ = {version!r}\n"}
    return Package(name, version, requires, files, tag=tag)


def cudnn_header(version: str) -> str:
    names = ("MAJOR", "MINOR", "PATCHLEVEL")
    numbers = zip(names, version.split("."), strict=False)
    return "".join(f"#define CUDNN_{name} {number}\n" for name, number in numbers)


def torch(version: str = "2.6.0", cuda: str = "12.4") -> dict[str, Package]:
    """PyTorch alone."""
    local = f"+cu{cuda.replace('.', '')}" if cuda else "+cpu"
    text = standin("torch", VERSION=version + local, CUDA=cuda)
    tag = f"{TAG}-{TAG}-manylinux1_x86_64"
    return {
        "torch": Package("torch", version, ("numpy",), {"torch/__init__.py": text}, tag=tag),
        "numpy": module("numpy", "2.0.2", tag=Package.tag),
    }


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

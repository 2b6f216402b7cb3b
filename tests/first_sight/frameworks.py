"""What a case changes of the frameworks' stand-ins, and distributions by their names alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from world import environments
from world.contents import Content, Library
from world.environments import COMPILED, CUDNN_HEADER, Package, cuda_library, standin

_WHEEL = re.compile(r"nvidia-(?P<project>[\w-]+)-(?P<suffix>cu\d\d)\Z")
_MODULES = {"protobuf": "google/protobuf"}
_ELEVEN = {  # what CUDA 11's libraries are called, where it is not the name of 12's with another number
    "libcudart.so.11": "libcudart.so.11.0",
    "libcufft.so.11": "libcufft.so.10",
    "libcusparse.so.12": "libcusparse.so.11",
    "libnvrtc.so.11": "libnvrtc.so.11.2",
    "libcupti.so.11": "libcupti.so.11.8",
}
# TensorFlow's libraries of CUDA 12, and what they are called in other versions; - is none there.
_NAMES = """
                     11                 10                 10.0
libcudart.so.12      libcudart.so.11.0  libcudart.so.10.1  libcudart.so.10.0
libcublas.so.12      libcublas.so.11    libcublas.so.10    libcublas.so.10.0
libcublasLt.so.12    libcublasLt.so.11  -                  -
libcufft.so.11       libcufft.so.10     libcufft.so.10     libcufft.so.10.0
libcusolver.so.11    libcusolver.so.11  libcusolver.so.10  libcusolver.so.10.0
libcusparse.so.12    libcusparse.so.11  libcusparse.so.10  libcusparse.so.10.0
libnvJitLink.so.12   -                  -                  -
"""
# Before a stand-in's own text.
_IMPORT = '''"""Changed by a case."""
import ctypes as _ctypes
import glob as _glob
import os as _os
import sys as _sys

_site = _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))
_sys.stderr.write({says!r})
_sys.stderr.flush()
for _name in {loads!r} or sorted(_glob.glob(_site + {pattern!r})):
    try:
        _ctypes.CDLL(_name)
    except OSError as _error:
        _sys.stderr.write("%s\\n" % _error)
_raised = {raises!r}
if _raised:
    import builtins as _builtins
    _kind, _, _words = _raised.partition(": ")
    raise getattr(_builtins, _kind)(_words)
'''
# After it: what becomes of work on a GPU.
_WORK = """


def _fail(*_arguments, **_options):
    import builtins
    import os
    import sys
    kind, _, words = {fails!r}.partition(": ")
    if kind == "abort":
        sys.stderr.write(words + "\\n")
        sys.stderr.flush()
        os.abort()
    raise getattr(builtins, kind)(words)


class _device:
    def __init__(self, name):
        pass

    __enter__ = __exit__ = lambda self, *_: None


float32, float16 = "float32", "float16"
"""


class Built(msgspec.Struct, forbid_unknown_fields=True):
    """How a framework was built, and what becomes of it here."""

    cuda: str = ""  # "" is a build for CPUs
    cudnn: str = ""
    capabilities: list[str] = []
    requires: list[str] = []
    loads: list[
        str
    ] = []  # libraries; of PyTorch and JAX all of NVIDIA's wheels, where none is named
    wheels: bool = True  # whether TensorFlow looks into NVIDIA's wheels
    gpus: bool = True  # whether it sees any
    counts: int = -1  # how many GPUs PyTorch counts, whatever CUDA has; -1: those that CUDA has
    tf32: bool | None = None
    local: bool = True  # whether PyTorch's version says what it was built for, as its wheels' does
    says: str = ""
    raises: str = ""
    lists: str = ""  # what listing its devices raises, and all its work on them (JAX)
    fails: str = ""
    compiling_fails: str = ""


def distribution(text: str) -> Package:
    """ "name version" as a Package: NVIDIA's wheels with their libraries, others with a module's version."""
    name, _, version = text.partition(" ")
    match = _WHEEL.match(name)
    if match:
        project = match.group("project").replace("-", "_")
        made = cuda_library(project, version)
        if match.group("suffix") == "cu11" and project not in ("cudnn", "nccl"):
            made = {_eleven(path): content for path, content in made.items()}
        return Package(name, version, files=made)
    return environments.module(name, version, at=_MODULES.get(name, ""))


def library(text: str) -> Library:
    """ "cudnn 8.9.4" as a library of NVIDIA's that says that version."""
    project, _, version = text.partition(" ")
    return next(one for one in cuda_library(project, version).values() if isinstance(one, Library))


def made(name: str, version: str, built: Built) -> dict[str, Package]:
    """The framework's own package."""
    text, files = _MADE[name](version, built)
    fails = built.lists or built.fails or built.compiling_fails
    if name == "tensorflow":
        built = msgspec.structs.replace(built, loads=built.loads or ["libc.so.6"])
    pattern = "/nvidia/*/lib/lib*.so.*"
    before = _IMPORT.format(
        says=built.says, loads=built.loads, pattern=pattern, raises=built.raises
    )
    after = _WORK.format(fails=fails) + _AFTER[name](built) if fails else ""
    files[f"{name}/__init__.py"] = before + text + after
    return {name: Package(name, version, tuple(built.requires), files, tag=COMPILED)}


def _torch(version: str, built: Built) -> tuple[str, dict[str, Content]]:
    local = f"+cu{built.cuda.replace('.', '')}" if built.cuda else "+cpu"
    if not built.local or "+" in version:
        local = ""
    text = standin("torch", VERSION=version + local, CUDA=built.cuda)
    if built.capabilities:
        text = re.sub(r"_ARCHITECTURES = .*", f"_ARCHITECTURES = {built.capabilities!r}", text)
    if not built.gpus:
        text = text.replace("if _CUDA is None:", "if True:")
    if built.counts >= 0:
        text = text.replace(
            "    def device_count():\n        return _count()",
            f"    def device_count():\n        return {built.counts}",
        )
    if built.tf32 is not None:
        text = text.replace("allow_tf32=False", f"allow_tf32={built.tf32}")
    numbers = tuple(int(part) for part in built.cudnn.split(".")) if built.cudnn else ()
    text += (
        "\n\nclass _C:\n    _cuda_getArchFlags = staticmethod(lambda: ' '.join(_ARCHITECTURES))\n"
        f"    _cudnn = SimpleNamespace(getCompileVersion=lambda: {numbers!r})\n"
    )
    libraries = ("c10", "c10_cuda", "torch", "torch_cpu", "torch_cuda", "torch_python")
    return text, {
        f"torch/lib/lib{name}.so": Library("empty", (f"-Wl,-soname,lib{name}.so",))
        for name in libraries
        if built.cuda or "cuda" not in name
    }


def _tensorflow(version: str, built: Built) -> tuple[str, dict[str, Content]]:
    text = standin("tensorflow", VERSION=version)
    if not built.cuda:
        return text.replace("CPU_ONLY = False", "CPU_ONLY = True"), {}
    text = text.replace(
        'CUDA, CUDNN = "12.5.1", "9"', f'CUDA, CUDNN = "{built.cuda}", "{built.cudnn[0]}"'
    )
    if built.capabilities:
        text = re.sub(r"CAPABILITIES = .*", f"CAPABILITIES = {built.capabilities!r}", text)
    if not built.wheels:
        text = text.replace("places.append(", "(lambda place: None)(")
    if built.tf32 is not None:
        text = text.replace("            return True\n", f"            return {built.tf32}\n", 1)
    text = text.replace("libcudnn.so.9", f"libcudnn.so.{built.cudnn[0]}")
    for name, other in _other_names(built.cuda):
        if other != "-":
            text = text.replace(f'"{name}"', f'"{other}"')
        else:
            text = re.sub(rf'\("\w+", "{re.escape(name)}"\),', "", text)
    if built.cuda.startswith("11.0"):  # the last whose cuSOLVER was still called 10
        text = text.replace("libcusolver.so.11", "libcusolver.so.10")
    if not built.gpus:
        text = text.replace("if not _load():", "if not _load() or True:")
    return text, {CUDNN_HEADER: environments.cudnn_header(built.cudnn)}


def _other_names(cuda: str) -> Iterator[tuple[str, str]]:
    versions, *rows = (line.split() for line in _NAMES.strip().splitlines())
    wanted = cuda if cuda in versions else cuda.partition(".")[0]
    if wanted in versions:
        for name, *others in rows:
            yield name, others[versions.index(wanted)]


def _jax(version: str, built: Built) -> tuple[str, dict[str, Content]]:
    text = standin("jax", VERSION=version)
    return text if built.gpus else text.replace("_SEES_GPUS = True", "_SEES_GPUS = False"), {}


def cuda_half(built: Built) -> dict[str, Content]:
    """What JAX's CUDA half says of its build, in ``_versions.py``."""
    numbers = [int(part) for part in built.cuda.split(".")]
    major, minor, patch = (int(part) for part in built.cudnn.split("."))
    cudnn = major * (10000 if major > 8 else 1000) + minor * 100 + patch
    cuda = numbers[0] * 1000 + numbers[1] * 10
    return {
        "_versions.py": f"def cuda_runtime_build_version():\n    return {cuda}\n"
        f"\n\ndef cudnn_build_version():\n    return {cudnn}\n"
    }


def _eleven(path: str) -> str:
    place = Path(path)
    return str(place.with_name(_ELEVEN.get(place.name, place.name)))


def _after_torch(built: Built) -> str:
    return "\n\nones = _fail\nnn = SimpleNamespace(functional=SimpleNamespace(conv2d=_fail, conv3d=_fail))\n"


def _after_tensorflow(built: Built) -> str:
    ones = "_fail" if built.fails else "lambda *_arguments: None"
    return (
        "\n\ndevice = _device\n\n\ndef function(step, **_options):\n    return _fail\n"
        f"\n\nones = {ones}\n"
    )


def _after_jax(built: Built) -> str:
    listing = "devices = local_devices = default_backend = _fail\n" if built.lists else ""
    return "\n\nnumpy = SimpleNamespace(ones=_fail)\n" + listing


_MADE = {"torch": _torch, "tensorflow": _tensorflow, "jax": _jax}
_AFTER = {"torch": _after_torch, "tensorflow": _after_tensorflow, "jax": _after_jax}
PLAIN: dict[str, Callable[..., Any]] = {
    "tensorflow": environments.tensorflow,
    "torch": environments.torch,
}

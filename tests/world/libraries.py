"""Compiles the stand-in libraries (c/), each once for all machines of a run."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from .contents import Library
from .nvml_library import functions

C = Path(__file__).with_name("c")
# "cuda" lists devices and no more; "computing cuda" has memory and runs kernels, too.
SOURCES = {
    "cuda": ("devices.c",),
    "computing cuda": ("devices.c", "memory.c", "patterns.c", "programs.c"),
    "cublas": ("cublas.c", "cublaslt.c", "product.c"),
    "cupti": ("cupti.c",),
    "nccl": ("nccl.c",),
    "nvml": ("nvml.c",),
    "versioned": ("versioned.c",),
    "empty": ("empty.c",),
}


class NoCompiler(Exception):
    """There is no C compiler on this machine."""


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="envcheck-libraries-")
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    return Path(folder)


@cache
def built(library: Library) -> Path:
    """The compiled file. Raises NoCompiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise NoCompiler("there is no C compiler to make the stand-in libraries with")
    folder = Path(tempfile.mkdtemp(dir=_folder()))
    (folder / "nvml_functions.h").write_text(functions())
    made = folder / "library.so"
    flags = [f"-D{define}" for define in library.defines if not define.startswith("-")]
    flags += [define for define in library.defines if define.startswith("-")]
    always = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-I", str(folder)]
    sources = [str(C / name) for name in SOURCES[library.source]]
    subprocess.run([compiler, *always, *flags, "-o", str(made), *sources], check=True, timeout=900)
    return made

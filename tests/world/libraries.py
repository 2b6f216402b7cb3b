"""Compiles the stand-in libraries, each once for all machines of a run."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from .cuda_library import CUDA
from .machine import Library
from .nvml_library import source as nvml_source

# A library that says a version the way cuDNN, cuBLAS, NCCL and the CUDA runtime do.
_VERSIONED = r"""
#include <stddef.h>
#ifdef VALUE
size_t VALUE(void) { return NUMBER; }
#endif
#ifdef POINTER
int POINTER(int *number) { *number = NUMBER; return 0; }
#endif
#ifdef PROPERTY
int PROPERTY(int kind, int *value)
{
    static const int numbers[] = {MAJOR, MINOR, PATCH};
    *value = numbers[kind];
    return 0;
}
#endif
#ifdef PAIR
int PAIR(int *major, int *minor) { *major = MAJOR; *minor = MINOR; return 0; }
#endif
#ifdef CRASH
__attribute__((constructor)) static void crash(void) { __builtin_trap(); }
#endif
#ifdef NEEDS
void *NEEDS(void);
void *user(void) { return NEEDS(); }
#endif
int stand_in_library;
"""
SOURCES = {"cuda": lambda: CUDA, "nvml": nvml_source, "versioned": lambda: _VERSIONED}


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
    code, made = folder / "library.c", folder / "library.so"
    code.write_text(SOURCES[library.source]())
    flags = [f"-D{define}" for define in library.defines if not define.startswith("-")]
    flags += [define for define in library.defines if define.startswith("-")]
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Werror",
            *flags,
            "-o",
            str(made),
            str(code),
        ],
        check=True,
        timeout=900,
    )
    return made

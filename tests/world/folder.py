"""A machine's libraries in a folder, for LD_LIBRARY_PATH, and what they answer: without a root of its own."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from build_cubin import cubin

from .contents import Library
from .gpus import gpu
from .libraries import NoCompiler, built
from .machine import Machine, cuda_rows, nvml_rows

FILES = {
    "libcuda.so.1": "computing cuda",
    "libnvidia-ml.so.1": "nvml",
    "libcublas.so.12": "cublas",
    "libcublasLt.so.12": "cublas",
    "libcupti.so.12": "cupti",
    "libnccl.so.2": "nccl",
}
COMPUTING = tuple(FILES)[:5]
DRIVER = tuple(FILES)[:2]
# Opcodes of each mode's rate kernel, as envcheck.collector.kernels.cubin reads them.
_OPCODES = {"fp32": 0x223, "tf32": 0x23C, "fp16": 0x23C, "bf16": 0x23C, "int8": 0x237, "fp8": 0xDF3}


def h200(count: int = 1, **values: Any) -> Machine:
    """GPUs that nothing but the kernels uses: what each call about them gives does not move."""
    machine = Machine(f"{count} × NVIDIA H200")
    for index in range(count):
        last = 0xAB + index
        made = gpu(
            index,
            f"0000:{0x83 + index:02x}:00.0",
            uuid=f"abababab-abab-abab-abab-ababababab{last:02x}",
            name="NVIDIA H200",
            memory_mib=143771,
            clock_sm=1755,
            power_mw=698700,
            temperature=61,
            reasons=["sw_power_cap"],
        )
        made.change(**values)
        machine.gpus.append(made)
    return machine


def put(
    folder: Path, names: Sequence[str] = DRIVER, source: str | None = None, *defines: str
) -> Path:
    """The libraries; skips the test where there is no C compiler. ``source``: in place of a name's own."""
    folder.mkdir(exist_ok=True)
    for name in names:
        try:
            shutil.copy(built(Library(source or FILES[name], defines)), folder / name)
        except NoCompiler as error:
            pytest.skip(str(error))
    return folder


def describe(machine: Machine, folder: Path) -> Path:
    """What the libraries answer, in files."""
    (folder / "cubins").mkdir(parents=True, exist_ok=True)
    (folder / "cuda").write_text("\n".join(cuda_rows(machine)) + "\n")
    (folder / "nvml").write_text("\n".join(nvml_rows(machine)) + "\n")
    for mode, opcode in _OPCODES.items():
        (folder / "cubins" / mode).write_bytes(cubin({"rate": [opcode] * 64}))
    return folder


def variables(libraries: Path | str, description: Path | str) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": str(libraries), "SHIM_MACHINE": str(description)}


def later(
    gpu: int, seconds: float, function: str, value: int, key: str = "-", form: str = "I"
) -> str:
    """A row for ``nvml_first``: so long after NVML was loaded, nvmlDeviceGet… begins to give this."""
    data = struct.pack("=" + form, value).hex()
    return f"{gpu + 1} nvmlDeviceGet{function} {key} 0 seconds={seconds} {data}"

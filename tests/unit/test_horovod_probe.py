"""What a Horovod's extension was built with, read from its file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envcheck.collector.packaging import horovod

SYSTEM = next(iter(sorted(Path("/").glob("usr/lib/*-linux-gnu/libz.so.1"))), None)


def extension(folder: Path, *inside: bytes, elf_file: bool = True) -> dict[str, Any]:
    """A file that is a shared library, with these words in it."""
    if SYSTEM is None:
        pytest.skip("no libz.so.1 to make an extension of")
    folder.mkdir(exist_ok=True)
    content = SYSTEM.read_bytes() if elf_file else b"text"
    (folder / "mpi_lib_v2.cpython-311-x86_64-linux-gnu.so").write_bytes(
        content + b"\0".join(inside)
    )
    return horovod.extension("torch", str(folder), "mpi_lib*.so")


@pytest.mark.parametrize(
    ("inside", "operations", "nccl"),
    [
        ([b"N4gloo9transport3tcp6DeviceE"], ["gloo"], None),
        ([b"MPI_Allreduce", b"cudaMemcpyAsync"], ["cuda", "mpi"], None),
        ([b"ncclAllReduce", b"NCCL version 2.19.3+cuda12.2"], ["nccl"], "2.19.3"),
        ([b"NCCL_ALLREDUCE", b"HOROVOD_NCCL"], [], None),
    ],
)
def test_what_it_holds(
    tmp_path: Path, inside: list[bytes], operations: list[str], nccl: str | None
) -> None:
    result = extension(tmp_path / "torch", *inside)
    assert (result["present"], result["operations"]) == (True, operations)
    assert result["nccl"] == nccl if nccl else result["nccl"]["unavailable"] == "absent"


def test_no_library_and_none_at_all(tmp_path: Path) -> None:
    result = extension(tmp_path / "torch", elf_file=False)
    assert result["present"] and result["operations"]["unavailable"] == "error"
    nothing = horovod.extension("torch", str(tmp_path / "nowhere"), "mpi_lib*.so")
    assert nothing == {"framework": "torch", "present": False}

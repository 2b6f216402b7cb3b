"""LIB-011: packages whose compiled half was left out, or built for CPUs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from targets import dist, good_snapshot, judge, packages

from envcheck.collector.cuda import compiler_tools
from envcheck.collector.probes.packages import check_files
from envcheck.collector.runtime.context import Context
from envcheck.facts.base import Unavailable
from envcheck.facts.target import Framework, LinkedFile, Loader, Toolkit, WantedLibrary

EDITABLE = Unavailable(unavailable="absent")


def linked(owner: str, *names: str) -> Loader:
    wants = [WantedLibrary(soname=one, how="needed", path=f"/x/{one}") for one in names]
    return Loader(linked=[LinkedFile(path="/x/_C.so", distribution=owner, wants=wants)])


@pytest.mark.parametrize(
    ("name", "compiled", "wants", "outcome", "command"),
    [
        ("apex", 0, [], "warn", "--build-option=--cuda_ext"),
        ("flash-attn", 0, [], "fail", "FLASH_ATTENTION_SKIP_CUDA_BUILD=FALSE"),
        ("apex", EDITABLE, [], "skipped", ""),
        ("six", 0, [], "skipped", ""),
        ("detectron2", 1, ["libc10.so", "libtorch_cpu.so"], "warn", "FORCE_CUDA=1"),
        ("detectron2", 1, ["libc10.so", "libc10_cuda.so"], "pass", ""),
        ("bitsandbytes", 9, ["libcublas.so.12"], "pass", ""),
        ("detectron2", 1, [], "pass", ""),
        ("dgl", 1, ["libc10.so"], "warn", "-f https://data.dgl.ai/wheels/cu126/repo.html"),
        ("llama-cpp-python", 1, [], "warn", "CMAKE_ARGS=-DGGML_CUDA=on"),
    ],
)
def test_whose_compiled_half_is_missing(
    name: str, compiled: Any, wants: list[str], outcome: str, command: str
) -> None:
    own = packages(dist(name, "1.0", compiled=compiled))
    torch = Framework(name="torch", imported=True, cuda_build=True, built_cuda="12.6")
    snapshot = good_snapshot(packages=own, loader=linked(name, *wants), torch=torch)
    result = judge(snapshot, "LIB-011", "libraries")
    assert result.outcome == outcome
    remedies = [one.remedy for one in result.findings if one.remedy]
    assert bool(remedies) == bool(command)
    assert all(command in one.commands[0] for one in remedies)


@pytest.mark.parametrize(
    ("files", "compiled"),
    [
        (["x/__init__.py", "x/_C.cpython-311.so", "y.so.1"], 2),
        (["x/__init__.py", "x.so/notes"], 0),
        (["__editable___x_finder.py"], None),
    ],
)
def test_what_is_compiled_by_record(tmp_path: Path, files: list[str], compiled: int | None) -> None:
    (tmp_path / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    one = SimpleNamespace(location=str(tmp_path), home=str(tmp_path))
    found = check_files(one)[3]  # type: ignore[no-untyped-call]
    assert found == compiled if compiled is not None else found["unavailable"] == "absent"


@pytest.mark.parametrize(
    ("place", "version", "headers", "installed", "outcome"),
    [
        ("usr", "10.1.243", True, "six", "warn"),
        ("usr", "12.4.131", False, "six", "pass"),
        ("usr", "12.4.131", False, "deepspeed", "warn"),
        ("usr", "12.4.131", True, "deepspeed", "pass"),
        ("", "", True, "deepspeed", "warn"),
        ("", "", True, "six", "skipped"),
    ],
)
def test_the_toolkit_that_extensions_are_compiled_with(
    tmp_path: Path, place: str, version: str, headers: bool, installed: str, outcome: str
) -> None:
    for root, release in {place: version, place and "usr/local/cuda": "12.6.20"}.items():
        if root:
            nvcc = tmp_path / root / "bin/nvcc"
            nvcc.parent.mkdir(parents=True)
            nvcc.write_text(f"#!/bin/sh\necho 'release, V{release}'\n")
            nvcc.chmod(0o755)
    for name in compiler_tools._HEADERS if headers else ():
        (tmp_path / "usr/include").mkdir(parents=True, exist_ok=True)
        (tmp_path / "usr/include" / name).touch()
    context = Context({"PATH": "/usr/bin:/bin"}, root=str(tmp_path))
    found = msgspec.convert(compiler_tools.toolkits(context), list[Toolkit])  # type: ignore[no-untyped-call]
    probes = {
        "packages": packages(dist(installed, "1.0", compiled=0)),
        "loader": Loader(toolkits=found),
        "torch": Framework(name="torch", imported=True, cuda_build=True, built_cuda="12.6"),
    }
    result = judge(good_snapshot(**probes), "LIB-012", "libraries")
    assert result.outcome == outcome
    assert all(one.remedy and one.remedy.commands for one in result.findings)

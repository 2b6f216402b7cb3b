"""What the files of an environment ask for, and where the loader's search for it ends."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world.elf import shared_object

from envcheck.collector.cuda import elf
from envcheck.collector.cuda.elf_content import Content
from envcheck.collector.cuda.loader_search import Search
from envcheck.collector.packaging import linked

SITE = "lib/python3.11/site-packages"


def put(root: Path, name: str, content: bytes = b"", **made: Any) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content or shared_object(**made))
    return path


def install(
    root: Path, name: str, *files: str, tag: str = "cp311-cp311-manylinux_2_28_x86_64"
) -> None:
    home = root / SITE / f"{name}-1.0.dist-info"
    home.mkdir(parents=True, exist_ok=True)
    (home / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (home / "WHEEL").write_text(f"Tag: {tag}\n")
    (home / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def look(root: Path, path: str = "", cache: bytes = b"") -> dict[str, Any]:
    """{file name: its LinkedFile's facts}"""
    put(root, "etc/ld.so.cache", cache or b"\0")
    environ = {"LD_LIBRARY_PATH": path} if path else {}
    context: Any = SimpleNamespace(environ=environ, path=lambda name: str(root) + name)
    program = put(root, "bin/python", needed=["libc.so.6"])
    found = linked.Linked([str(root / SITE)], Search(context, str(program)), 10.0).facts()  # type: ignore[no-untyped-call]
    return {fact["path"].rpartition("/")[2]: fact for fact in found}


def places(fact: dict[str, Any], root: Path) -> list[tuple[str, str, str]]:
    return [
        (one["soname"], one["path"].removeprefix(f"{root}/"), one["origin"])
        if isinstance(one["path"], str)
        else (one["soname"], "absent", ",".join(one["instead"]).replace(f"{root}/", ""))
        for one in fact["wants"]
    ]


def test_the_search_ends_where_the_loaders_does(tmp_path: Path) -> None:
    """RUNPATH counts after LD_LIBRARY_PATH, the cache after both; another package's file as the last."""
    put(
        tmp_path, f"{SITE}/x/_C.so", needed=["libcudart.so.12", "libm.so.6"], runpath="$ORIGIN/../y"
    )
    put(tmp_path, f"{SITE}/y/libcudart.so.12", soname="libcudart.so.12")
    install(tmp_path, "x", "x/_C.so")
    install(tmp_path, "y", "y/libcudart.so.12")
    own = f"{SITE}/x/../y/libcudart.so.12"
    assert places(look(tmp_path)["_C.so"], tmp_path) == [("libcudart.so.12", own, "rpath")]
    other = put(tmp_path, "opt/libcudart.so.12")
    seen = places(look(tmp_path, str(other.parent))["_C.so"], tmp_path)
    assert seen == [("libcudart.so.12", "opt/libcudart.so.12", "LD_LIBRARY_PATH")]
    put(tmp_path, f"{SITE}/x/_C.so", needed=["libcudart.so.12"])
    cache = b"\0libcudart.so.12\0%s\0" % str(other).encode()
    seen = places(look(tmp_path, cache=cache)["_C.so"], tmp_path)
    assert seen == [("libcudart.so.12", "opt/libcudart.so.12", "ld.so.cache")]
    seen = places(look(tmp_path)["_C.so"], tmp_path)
    assert seen == [("libcudart.so.12", f"{SITE}/y/libcudart.so.12", "environment")]


def test_another_major_and_another_machines_file_are_none(tmp_path: Path) -> None:
    put(tmp_path, f"{SITE}/x/_C.so", needed=["libcudnn_ops_infer.so.8", "libtorch_cuda.so"])
    put(tmp_path, f"{SITE}/torch/lib/libc10.so")
    install(tmp_path, "x", "x/_C.so", tag="cp311-cp311-linux_x86_64")
    put(tmp_path, "opt/libcudnn.so.9")
    other = bytearray(shared_object())
    other[18] = 183  # AArch64
    put(tmp_path, "opt/libcudnn_ops_infer.so.8", bytes(other))
    fact = look(tmp_path, str(tmp_path / "opt"))["_C.so"]
    assert places(fact, tmp_path) == [
        ("libcudnn_ops_infer.so.8", "absent", "opt/libcudnn.so.9"),
        ("libtorch_cuda.so", "absent", f"{SITE}/torch/lib/libc10.so"),
    ]
    assert (fact["distribution"], fact["built_here"]) == ("x", True)


def test_who_is_left_out_and_whose_a_file_is(tmp_path: Path) -> None:
    """Frameworks and NVIDIA's libraries have probes of their own; setup.py leaves no RECORD."""
    for name, package in (
        ("torch/lib/libtorch.so", "torch"),
        ("nvidia/libcublas.so.12", "nvidia_cublas"),
    ):
        put(tmp_path, f"{SITE}/{name}", needed=["libcudart.so.12"])
        install(tmp_path, package, name)
    put(tmp_path, f"{SITE}/horovod/mpi_lib.so", needed=["libcudart.so.9.0"])
    put(tmp_path, f"{SITE}/alone.so", needed=["libtorch.so"])
    put(tmp_path, f"{SITE}/plain.so", needed=["libz.so.1"])
    put(tmp_path, f"{SITE}/broken.so", b"\x7fELF\x02\x01\x01")
    home = tmp_path / SITE / "horovod-0.14.1.egg-info"
    home.mkdir()
    (home / "PKG-INFO").write_text("Name: horovod\nVersion: 0.14.1\n")
    seen = look(tmp_path)
    assert set(seen) == {"mpi_lib.so", "alone.so"}
    assert (seen["mpi_lib.so"]["distribution"], seen["mpi_lib.so"]["built_here"]) == (
        "horovod",
        True,
    )
    assert "distribution" not in seen["alone.so"]


def compiled(path: Path, source: str, *options: str) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    path.parent.mkdir(parents=True, exist_ok=True)
    code = path.with_suffix(".c")
    code.write_text(source)
    command = [compiler, "-shared", "-fPIC", "-o", str(path), str(code), *options]
    subprocess.run(command, check=True, timeout=900)
    return path


def test_symbols_that_the_framework_has_not_and_names_in_constants(tmp_path: Path) -> None:
    base = compiled(
        tmp_path / SITE / "torch/lib/libc10.so",
        "void _ZN3c103oldEv(void){} void _ZN3c104bothEv(void){}",
        "-Wl,-soname,libc10.so",
    )
    compiled(tmp_path / SITE / "torch/lib/libtorch.so", "void _ZN5torch3newEv(void){}")
    install(tmp_path, "torch", "torch/lib/libc10.so", "torch/lib/libtorch.so")
    use = "void _ZN3c103oldEv(void); void _ZN3c104bothEv(void);"
    use += "void f(void){ _ZN3c103oldEv(); _ZN3c104bothEv(); }"
    use += 'const char *const names[] = {"libcudnn_ops_infer.so.8", "libz.so.1"};'
    made = compiled(tmp_path / SITE / "flash/libflash.so", use, str(base))
    install(tmp_path, "flash", "flash/libflash.so")
    seen = look(tmp_path)["libflash.so"]
    assert seen["undefined"] == []
    assert [(one["soname"], one["how"]) for one in seen["wants"]] == [
        ("libc10.so", "needed"),
        ("libcudnn_ops_infer.so.8", "named"),
    ]
    compiled(base, "void _ZN3c104bothEv(void){}", "-Wl,-soname,libc10.so")
    assert look(tmp_path)["libflash.so"]["undefined"] == ["_ZN3c103oldEv"]
    whole = made.read_bytes()
    table = int.from_bytes(whole[40:48], "little")  # of the section headers
    for place in (*range(16, 64, 3), *range(table, len(whole), 97)):
        made.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        look(tmp_path)


@settings(max_examples=60)
@given(st.binary(max_size=400), st.integers(0, 63))
def test_what_is_no_elf_file_is_a_value_error(
    tmp_path_factory: Any, tail: bytes, keep: int
) -> None:
    path = tmp_path_factory.mktemp("elf") / "x.so"
    path.write_bytes(shared_object(needed=["libcudart.so.12"])[: 16 + keep] + tail)
    try:
        elf.read(str(path))  # type: ignore[no-untyped-call]
        with Content(str(path)) as content:  # type: ignore[no-untyped-call]
            content.constants(100)
            content.undefined(linked._SYMBOL, 10)
            content.lacking([b"_ZN3c103oldEv"])
    except ValueError:
        pass


def test_a_bundled_cudnn_asks_for_its_parts(tmp_path: Path) -> None:
    put(tmp_path, f"{SITE}/x.libs/libcudnn-74a4c495.so.9.1.0")
    put(tmp_path, f"{SITE}/nvidia/lib/libcudnn_graph.so.9")
    install(tmp_path, "x", "x.libs/libcudnn-74a4c495.so.9.1.0")
    install(tmp_path, "nvidia_cudnn_cu12", "nvidia/lib/libcudnn_graph.so.9")
    (fact,) = look(tmp_path).values()
    found = f"{SITE}/nvidia/lib/libcudnn_graph.so.9"
    assert places(fact, tmp_path) == [("libcudnn_graph.so.9", found, "environment")]

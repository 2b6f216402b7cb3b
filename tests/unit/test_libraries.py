"""NVIDIA's libraries: names, version numbers, the loader's maps, its cache, and who put a file there."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envcheck.collector.cuda import elf, libraries
from envcheck.collector.packaging import origins
from envcheck.collector.packaging.distributions import Distribution
from envcheck.collector.probes import loader
from envcheck.collector.runtime.context import Context


@pytest.mark.parametrize(
    ("decode", "number", "version"),
    [
        (libraries.cuda, 9020, "9.2"),
        (libraries.cuda, 11080, "11.8"),
        (libraries.cuda, 13000, "13.0"),
        (libraries.cuda, 0, None),
        (libraries.cuda, -1, None),
        (libraries.cudnn, 7605, "7.6.5"),
        (libraries.cudnn, 8907, "8.9.7"),
        (libraries.cudnn, 90100, "9.1.0"),
        (libraries.cudnn, 92800, "9.28.0"),
        (libraries.cudnn, 101203, "10.12.3"),
        (libraries.cudnn, 0, None),
        (libraries.cudnn, 2**64 - 1, None),
        (libraries.nccl, 2708, "2.7.8"),
        (libraries.nccl, 2804, "2.8.4"),
        (libraries.nccl, 20908, "2.9.8"),
        (libraries.nccl, 22105, "2.21.5"),
        (libraries.tensorrt, 7102, "7.1.2"),
        (libraries.tensorrt, 8601, "8.6.1"),
        (libraries.tensorrt, 100300, "10.3.0"),
        (libraries.tensorrt, 999, None),
        (libraries.cupti, 28, None),
        (libraries.cupti, 130000, "13.0"),
        (libraries.cupti, 130101, "13.1"),
    ],
)
def test_numbers_become_versions(decode, number: int, version: str | None) -> None:  # type: ignore[no-untyped-def]
    assert decode(number) == version


def cache(entries: list[tuple[str, str]], old: bool = False) -> bytes:
    """An ld.so.cache as ldconfig writes it; old: behind one in the format before glibc 2.2."""
    head = b""
    if old:
        head = b"ld.so-1.7.0\0" + struct.pack("=I", 3) + struct.pack("=iII", 3, 0, 0) * 3
        head += b"\0" * (-len(head) % 8)
    strings, table = b"", b""
    base = 48 + 24 * len(entries)
    for name, path in entries:
        key = base + len(strings)
        strings += name.encode() + b"\0"
        value = base + len(strings)
        strings += path.encode() + b"\0"
        table += struct.pack("=iIIIQ", 0x0303, key, value, 0, 0)
    header = struct.pack(
        "=20sII4s4s12s", b"glibc-ld.so.cache1.1", len(entries), len(strings), b"", b"", b""
    )
    return head + header + table + strings


def library_file(soname: bytes, wide: bool, order: str) -> bytes:
    """The smallest ELF file with a SONAME: headers, one segment that is all of it, a dynamic section."""
    head, entry, pair = (64, 56, 16) if wide else (52, 32, 8)
    word = "Q" if wide else "I"
    dynamic, strings = head + 2 * entry, head + 2 * entry + 3 * pair
    size = strings + 1 + len(soname) + 1
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + b"\0" * 9
    header = struct.pack(
        f"{order}HHI{word}{word}{word}IHHHHHH", 3, 62, 1, 0, head, 0, 0, head, entry, 2, 0, 0, 0
    )
    segments = b""
    for kind, at, length in ((1, 0, size), (2, dynamic, 3 * pair)):
        parts = [kind, 4] if wide else [kind]
        parts += [at, at + 4096, 0, length, length] + ([8] if wide else [4, 8])
        segments += struct.pack(order + ("IIQQQQQQ" if wide else "IIIIIIII"), *parts)
    tags = b"".join(
        struct.pack(order + word * 2, *tag) for tag in ((14, 1), (5, strings + 4096), (0, 0))
    )
    return ident + header + segments + tags + b"\0" + soname + b"\0"


FORMS = [(wide, order) for wide in (True, False) for order in "<>"]


@settings(max_examples=30, deadline=None)
@example((True, ">"), [(128, 128)], 300)  # a segment where no file reaches
@given(
    st.sampled_from(FORMS),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=4),
    st.integers(0, 300),
)
def test_a_damaged_library_has_a_soname_none_or_an_error(
    tmp_path_factory: pytest.TempPathFactory,
    form: tuple[bool, str],
    damage: list[tuple[int, int]],
    length: int,
) -> None:
    content = bytearray(library_file(b"libfoo.so.1", *form))
    for at, byte in damage:
        content[at % len(content)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.so"
    path.write_bytes(content[:length] if damage else content)
    try:
        assert isinstance(elf.soname(path), (str, type(None)))
    except ValueError as error:
        assert "ELF" in str(error)
    except OSError:
        pass  # a seek to where no file goes


def wheel(path: Path) -> origins.WheelLibrary:
    owner = Distribution("nvidia-cudnn-cu12", "9.1.0.70", "", "")
    return origins.WheelLibrary(str(path), libraries.NAMES["libcudnn"], owner)


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def test_origins(tmp_path: Path) -> None:
    inside = touch(tmp_path / "env/lib/site/nvidia/cudnn/lib/libcudnn.so.9")
    (tmp_path / "env/lib64").symlink_to("lib")
    searched = touch(tmp_path / "cuda-12/lib64/libcublas.so.12")
    (tmp_path / "cuda").symlink_to("cuda-12")
    cached = touch(tmp_path / "usr/lib/libcufft.so.11")
    ours = touch(tmp_path / "conda/lib/libnccl.so.2")
    (tmp_path / "conda/conda-meta").mkdir()
    stray = touch(tmp_path / "opt/libcurand.so.10")
    touch(tmp_path / "etc/ld.so.cache").write_bytes(
        cache([("libcufft.so.11", str(cached)), ("libz.so.1", "/lib/libz.so.1")])
    )

    (tmp_path / "links").mkdir()
    behind = touch(tmp_path / "opt/libcusparse.so.12.5")
    (tmp_path / "links/libcusparse.so.12").symlink_to(behind)
    shim = touch(tmp_path / "opt/libcudart.so.12")
    environ = {
        "LD_LIBRARY_PATH": f":{tmp_path}/cuda/lib64;/elsewhere:{tmp_path}/links",
        "LD_PRELOAD": f"libjemalloc.so.2:{shim} {inside}",
    }
    context = Context(environ, root=str(tmp_path))
    found = origins.Origins(context, [wheel(inside)], (str(tmp_path / "conda"), "/usr"))

    assert found.of(str(tmp_path / "env/lib64/site/nvidia/cudnn/lib/libcudnn.so.9")) == {
        "origin": "wheel",
        "distribution": "nvidia-cudnn-cu12",
        "distribution_version": "9.1.0.70",
    }
    assert found.of(str(searched)) == {"origin": "LD_LIBRARY_PATH"}
    assert found.of(str(behind)) == {"origin": "LD_LIBRARY_PATH"}
    assert found.of(str(shim)) == {"origin": "LD_PRELOAD"}
    assert found.of(str(cached)) == {"origin": "ld.so.cache"}
    assert found.of(str(ours)) == {"origin": "conda"}
    assert found.of(str(stray)) == {"origin": "rpath"}
    assert found.of("/usr/lib/x86_64-linux-gnu/libcuda.so.535") == {"origin": "system"}
    assert found.of("/usr/local/cuda/lib64/libcudart.so.12") == {"origin": "rpath"}


@pytest.mark.parametrize(
    ("names", "stub"),
    [
        (["libcuda.so"], True),  # a toolkit's lib64/stubs
        (["libcuda.so", "libcuda.so.1"], False),  # WSL's, where each is a file
        (["libcuda.so>libcuda.so.570.1", "libcuda.so.1"], False),
        (["libcuda.so>/opt/libcuda.so.570.1"], False),
        (["libcuda.so>/opt/stubs/libcuda.so"], True),
    ],
)
def test_a_stub_of_the_driver_in_the_variable(tmp_path: Path, names: list[str], stub: bool) -> None:
    for name, _, link in (name.partition(">") for name in names):
        (tmp_path / name).symlink_to(link) if link else touch(tmp_path / name)
    context = Context({"LD_LIBRARY_PATH": str(tmp_path)})
    found = [one["soname"] for one in loader.on_path(context)]
    assert found == (["libcuda.so"] if stub else [])

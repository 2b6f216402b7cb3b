"""Distributions on disk: names, versions, records, shadows, Horovod's extensions, pynvml's owner."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.collector.probes import packages
from envcheck.collector.runtime.context import Context
from envcheck.facts.target import Distribution, Packages


def install(
    site: Path,
    name: str,
    version: str,
    files: tuple[str, ...] = (),
    record: str | None = "",
    requires: tuple[str, ...] = (),
) -> Path:
    """A distribution as pip leaves it. record: None for no RECORD, else lines to add to it."""
    home = site / f"{name.replace('-', '_')}-{version}.dist-info"
    home.mkdir(parents=True)
    headers = [f"Name: {name}", f"Version: {version}", "Summary: a test"]
    headers += [f"Requires-Dist: {requirement}" for requirement in requires]
    (home / "METADATA").write_text("\n".join(headers) + "\n\nName: not this one\n")
    (home / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\nTag: py2-none-any\n")
    (home / "INSTALLER").write_text("uv\n")
    lines = []
    for file in files:
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} {version}")
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest())
        lines.append(f"{file},sha256={digest.rstrip(b'=').decode()},{path.stat().st_size}")
    if record is not None:
        (home / "RECORD").write_text("\n".join(lines) + "\n" + record)
    return home


def collect(*sys_path: Path) -> tuple[Packages, dict[str, str]]:
    facts = packages.collect(Context({}, params={"sys_path": [str(p) for p in sys_path]}))
    return msgspec.convert(facts.values, Packages), facts.sources


def only(*sys_path: Path) -> Distribution:
    (distribution,) = collect(*sys_path)[0].distributions
    return distribution


def test_a_wheel_is_read_as_it_was_installed(tmp_path: Path) -> None:
    install(
        tmp_path,
        "nvidia-cudnn-cu12",
        "9.1.0.70",
        ("nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cudnn/__init__.py"),
        requires=("nvidia-cublas-cu12", "foo ; extra == 'x'"),
    )
    found = only(tmp_path)
    assert (found.name, found.normalized) == ("nvidia-cudnn-cu12", "nvidia-cudnn-cu12")
    assert found.version == "9.1.0.70"
    assert found.location == str(tmp_path)
    assert found.installer == "uv"
    assert found.requires == ["nvidia-cublas-cu12", "foo ; extra == 'x'"]
    assert (found.files, found.missing_count, found.missing) == (2, 0, [])


def test_missing_files_are_counted_and_the_first_are_named_libraries_first(tmp_path: Path) -> None:
    gone = "".join(f"pkg/gone{i}.h,,\n" for i in range(30)) + "nvidia/libx.so.1,,\n"
    ignored = "pkg/__pycache__/a.cpython-38.pyc,,\npkg/b.pyc,,\n"
    outside = "../../../bin/tool,,\n/nonexistent/absolute,,\n"
    install(
        tmp_path / "lib/python/site",
        "tensorflow",
        "1.0",
        ("tensorflow/__init__.py",),
        gone + ignored + outside,
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tool").write_text("")
    found = only(tmp_path / "lib/python/site")
    assert found.files == 34
    assert found.missing_count == 32
    assert len(found.missing) == 20
    assert found.missing[0] == "nvidia/libx.so.1"
    assert "../../../bin/tool" not in found.missing


@pytest.mark.parametrize(
    ("first", "second", "file", "lost"),
    [
        ("onnxruntime-gpu", "onnxruntime", "onnxruntime/capi/state.so", True),
        ("nvidia-nccl-cu12", "nvidia-nccl-cu11", "nvidia/nccl/lib/libnccl.so.2", True),
        ("opencv-python", "opencv-python-headless", "cv2/cv2.abi3.so", True),  # of no field
        ("keras", "keras-nlp", "tests/a.py", False),  # by mistake in many
        ("keras", "keras-nlp", "shared/__init__.py", False),  # a namespace
    ],
)
def test_of_two_that_bring_a_file_the_disk_says_whose_it_is(
    tmp_path: Path, first: str, second: str, file: str, lost: bool
) -> None:
    install(tmp_path, first, "1.0", (file,))
    install(tmp_path, second, "1.0", (file, "own.py"))
    found = {one.normalized: one.overwritten for one in collect(tmp_path)[0].distributions}
    if lost:
        (fact,) = found.pop(first)
        assert (fact.by, fact.files, fact.example) == (second, 1, file)
    assert not any(found.values())


def test_what_limits_a_frameworks_requirement_is_described(tmp_path: Path) -> None:
    install(tmp_path, "jax", "0.4", requires=("scipy>=1.7",))
    install(tmp_path, "a-user", "1", requires=("scipy<1.11",))
    install(tmp_path, "another", "1", requires=("scipy", "flask<2", "scipy<1; extra == 'x'"))
    install(tmp_path, "transformers", "4.50", requires=("tokenizers<0.22",))
    install(tmp_path, "tokenizers", "0.22")
    names = {one.normalized for one in collect(tmp_path)[0].distributions}
    assert names == {"jax", "a-user", "transformers", "tokenizers"}


def test_eggs_of_setuptools(tmp_path: Path) -> None:
    info = tmp_path / "gast-0.2.2-py3.7.egg-info"
    info.mkdir(parents=True)
    (info / "PKG-INFO").write_text("Name: gast\nVersion: 0.2.2\nRequires-Dist: six\n")
    (tmp_path / "h5py.egg-info").write_text("Name: h5py\nVersion: 2.10\n")
    found = {d.name: d for d in collect(tmp_path)[0].distributions}
    assert {name: d.version for name, d in found.items()} == {"gast": "0.2.2", "h5py": "2.10"}
    assert (found["gast"].requires, found["h5py"].requires) == (["six"], [])


@settings(max_examples=60, deadline=None)
@given(record=st.binary(max_size=300), metadata=st.binary(max_size=300))
def test_any_bytes_make_facts(
    tmp_path_factory: pytest.TempPathFactory, record: bytes, metadata: bytes
) -> None:
    site = tmp_path_factory.mktemp("site")
    home = site / "torch-1.dist-info"
    home.mkdir()
    for name, content in (("RECORD", record), ("METADATA", metadata), ("WHEEL", metadata)):
        (home / name).write_bytes(content)
    from envcheck.collector.facts import dumps

    facts: dict[str, Any] = packages.collect(Context({}, params={"sys_path": [str(site)]})).values
    assert len(msgspec.json.decode(dumps(facts), type=Packages).distributions) == 1

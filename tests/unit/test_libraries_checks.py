"""Checks on the libraries as loaded: each with a bad, a good and a missing set."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import (
    error,
    good_libraries,
    good_snapshot,
    judge,
    not_imported,
    system_library,
    tensorflow,
    wheel_library,
)

from envcheck.facts.target import Framework, Library, Loader
from envcheck.findings.model import CheckResult

CODES = [f"LIB-{number:03d}" for number in (2, 4, 5, 6, 8, 9)]
BLIND: dict[str, Any] = {"gpus": [], "libraries": []}


def on(code: str, *libraries: Library, ld: list[str] | None = None, **probes: Any) -> CheckResult:
    """The check on a target whose loader finds these libraries."""
    probes = {"loader": Loader(ld_library_path=ld or [], libraries=list(libraries))} | probes
    return judge(good_snapshot(**probes), code, "libraries")


# LIB-002


def test_a_wheels_cudnn_that_speaks_with_another_copys_version_is_mixed() -> None:
    """Seen: a libcudnn_graph.so.9 in LD_LIBRARY_PATH before the wheel's own."""
    stray = system_library(
        "libcudnn_graph", "libcudnn_graph.so.9", "9.5.0", path="/opt/ld/libcudnn_graph.so.9"
    )
    own = wheel_library("libcudnn", "libcudnn.so.9", "9.5.0", "nvidia-cudnn-cu12", "9.3.0.75")
    blind = tensorflow(**BLIND)
    result = on("LIB-002", own, stray, tensorflow=blind)
    assert result.outcome == "fail" and "from /opt/ld" in result.findings[0].message
    # another copy that nothing speaks with lies there in peace
    apart = msgspec.structs.replace(stray, version="9.1.0")
    assert on("LIB-002", *good_libraries(), apart, tensorflow=blind).outcome == "pass"


# LIB-005


@pytest.mark.parametrize("more", [True, False])
def test_a_newer_cudnn_leaves_what_else_comes_by_ld_library_path(more: bool) -> None:
    old = system_library(
        "libcudnn", "libcudnn.so.8", "8.0.5", path="/c/libcudnn.so.8", origin="LD_LIBRARY_PATH"
    )
    cublas = [of_ld("libcublas", "libcublas.so.12", "12.1")] if more else []
    built = tensorflow(libraries=[old], built_cudnn="8.9")
    result = on("LIB-005", old, *cublas, ld=["/c"], tensorflow=built)
    (finding,) = result.findings
    assert finding.remedy is not None
    commands = finding.remedy.commands
    assert ("unset LD_LIBRARY_PATH" in commands) != more
    assert any("/nvidia/cudnn/lib" in one for one in commands) == more


# LIB-006

REFUSED = (
    "/x/libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, version libnvJitLink.so.12"
)
DIED = "died by signal 11 (SIGSEGV) while being loaded"


def test_a_crash_is_a_warning_unless_a_framework_needs_that_library() -> None:
    runtime = system_library("libnvinfer", "libnvinfer.so.8", path=error(DIED))
    assert on("LIB-006", runtime, tensorflow=tensorflow(**BLIND)).outcome == "warn"
    needed = system_library("libcudnn", "libcudnn.so.9", path=error(DIED))
    result = on("LIB-006", needed, tensorflow=tensorflow(**BLIND))
    assert result.outcome == "fail" and "signal 11" in result.findings[0].message
    assert on("LIB-006", needed).outcome == "pass"  # TensorFlow did load it


# LIB-009


def of_ld(name: str, soname: str, version: str) -> Library:
    path = f"/usr/local/cuda-12.1/lib64/{soname}"
    return system_library(name, soname, version, path=path, origin="LD_LIBRARY_PATH")


@pytest.mark.parametrize(
    ("words", "name", "outcome"),
    [
        ("_12_1, version libnvJitLink.so.12", "libnvJitLink", "fail"),
        ("cublasLtMatmulAlgoInit", "libcublasLt", "fail"),
        ("cusparseSpMM_preprocess", "libcusparse", "fail"),
        ("_ZN3c10", "libcublas", "fail"),
        ("ncclCommSplit", "libcublas", "pass"),
    ],
)
def test_ld_library_path_breaks_an_import(words: str, name: str, outcome: str) -> None:
    older = of_ld(name, f"{name}.so.12", "12.1")
    torch = not_imported("torch", f"ImportError: x.so: undefined symbol: {words}")
    result = on(
        "LIB-009",
        *good_libraries(),
        older,
        ld=["/usr/local/cuda-12.1/lib64"],
        tensorflow=None,
        torch=torch,
    )
    assert result.outcome == outcome
    if outcome == "fail":
        (finding,) = result.findings
        assert str(older.path) in finding.message
        assert finding.remedy is not None and "unset LD_LIBRARY_PATH" in finding.remedy.commands


# what strangers' loaders may say

WORDS = st.one_of(
    st.text(max_size=60), st.sampled_from([REFUSED, DIED, "", "libcuda.so.1: cannot open"])
)
FACT = st.one_of(
    st.text(max_size=40),
    st.builds(error, WORDS, st.sampled_from(["error", "absent", "timeout", "not-supported"])),
)


@st.composite
def libraries(draw: st.DrawFn) -> Library:
    name = draw(
        st.sampled_from(["libcudnn", "libcudnn_ops", "libcublas", "libcuda", "libnvinfer", "x"])
    )
    return Library(
        name=name,
        how=draw(st.sampled_from(["framework", "dlopen", "wheel"])),
        soname=draw(FACT),
        path=draw(FACT),
        version=draw(FACT),
        origin=draw(st.sampled_from(["wheel", "system", "LD_LIBRARY_PATH"])),
        distribution=draw(st.one_of(FACT, st.just("nvidia-cudnn-cu12"))),
        distribution_version=draw(FACT),
    )


@given(
    st.lists(libraries(), max_size=5),
    st.lists(st.text(max_size=60), max_size=3),
    st.text(max_size=12),
)
@settings(max_examples=30, deadline=None)
def test_foreign_libraries_crash_no_check(
    some: list[Library], lines: list[str], version: str
) -> None:
    facts: Framework = tensorflow(
        libraries=some, log=lines, gpus=[], built_cudnn=version, built_cuda=version, version=version
    )
    snap = good_snapshot(loader=Loader(ld_library_path=lines, libraries=some), tensorflow=facts)
    for code in CODES:
        assert "crashed" not in judge(snap, code, "libraries").reason

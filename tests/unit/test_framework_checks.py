"""Checks on frameworks that are not imported, die or never answer, and what their words mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import (
    ABSENT,
    dist,
    failed,
    good_snapshot,
    judge,
    not_imported,
    packages,
    replace,
    tensorflow,
)

from envcheck.checks.framework.causes import IMPORT, NO_GPU, SIGNALS, explain
from envcheck.facts.base import Probe
from envcheck.facts.host import Host
from envcheck.facts.target import Environment, ErrorFile, Framework
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import CheckResult

VIEW = SnapshotView(good_snapshot())


def on(code: str, framework: Any = None, **probes: Any) -> CheckResult:
    probes = ({} if framework is None else {"tensorflow": framework}) | probes
    return judge(good_snapshot(**probes), code, "framework")


def torch(**changes: Any) -> Framework:
    given: dict[str, Any] = {
        "name": "torch",
        "version": "2.5.1",
        "built_cuda": "12.4",
        "built_cudnn": "9.1.0",
    }
    return tensorflow(**(given | changes))


# FRM-001


@pytest.mark.parametrize(
    ("words", "says", "command"),
    [
        (
            "TypeError: Descriptors cannot not be created directly.\nIf this call came from",
            "protobuf 5.29.1 is too new for it (it needs protobuf<3.21)",
            "'protobuf<3.21'",
        ),
        (
            "AttributeError: module 'numpy' has no attribute 'object'.",
            "numpy 2.1.3 is too new for it (it needs numpy<1.24)",
            "'numpy<1.24'",
        ),
        ("ImportError: numpy.core.multiarray failed to import", "numpy 2.1.3 is too", "'numpy<2'"),
        (
            "ImportError: /lib/libc.so.6: version `GLIBC_2.29' not found (required by /x.so)",
            "needs GLIBC_2.29",
            "ldd --version",
        ),
        (
            "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
            "does not find libcudart.so.12",
            "nvidia-cuda-runtime-cu12",
        ),
        ("ModuleNotFoundError: No module named 'wrapt'", "module wrapt", "pip install wrapt"),
        ("ModuleNotFoundError: No module named 'google.protobuf'", "google.protobuf", "protobuf"),
        (
            "ModuleNotFoundError: No module named 'pkg_resources'",
            "pkg_resources",
            "'setuptools<81'",
        ),
        (
            "ModuleNotFoundError: No module named 'tensorflow.python'",
            "only a part of it is installed",
            "--force-reinstall",
        ),
        ("ImportError: /x.so: undefined symbol: _ZN3foo", "_ZN3foo is missing", "LD_LIBRARY_PATH"),
        ("OSError: /x.so: file too short", "damaged", ""),
        ("ImportError: no module, only a directory of that name is there: /x", "a directory", ""),
    ],
)
def test_known_reasons_of_an_import_failure(words: str, says: str, command: str) -> None:
    result = on("FRM-001", not_imported(words=words))
    (finding,) = result.findings
    assert result.outcome == "fail"
    assert says in finding.message
    assert finding.remedy is not None and command in " ".join(finding.remedy.commands)
    assert finding.evidence[0].value.startswith(words.splitlines()[0][:40])


LIBSTDCXX = "ImportError: /x/libstdc++.so.6: file too short"
SIZE_CHANGED = (
    "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header,"
    " got 88 from PyObject"
)
NUMPY_S = ErrorFile(path="/s/numpy/core/multiarray.py", distribution="numpy")


@pytest.mark.parametrize(
    ("words", "files", "variables", "says", "command"),
    [
        (
            LIBSTDCXX,
            [ErrorFile(path="/x/libstdc++.so.6", named=True, brought_by="LD_LIBRARY_PATH")],
            {"LD_LIBRARY_PATH": "/x:/usr/lib/mine"},
            "LD_LIBRARY_PATH puts /x/libstdc++.so.6 in front",
            "export LD_LIBRARY_PATH=/usr/lib/mine",
        ),
        (
            "ImportError: /s/torch/lib/libc10.so: file too short",
            [
                ErrorFile(
                    path="/s/torch/lib/libc10.so",
                    named=True,
                    distribution="torch",
                    distribution_version="2.13.0",
                )
            ],
            {},
            "libc10.so of torch 2.13.0 is damaged",
            "torch==2.13.0 --force-reinstall",
        ),
        (
            SIZE_CHANGED,
            [NUMPY_S, ErrorFile(path="/s/h5py/__init__.py", distribution="h5py")],
            {},
            "h5py 3.10.0 was compiled for NumPy 1, and numpy 2.1.3 is installed",
            "install 'h5py>=3.11' --upgrade",
        ),
        # without a culprit, or where it is the framework itself, numpy is what does not fit
        (
            "numpy.core.multiarray failed to import",
            [NUMPY_S],
            {},
            "numpy 2.1.3 is too new",
            "'numpy<2'",
        ),
    ],
)
def test_an_error_names_a_file(
    words: str, files: list[ErrorFile], variables: dict[str, str], says: str, command: str
) -> None:
    failed_import = Framework(
        name="tensorflow", imported=False, import_error=words, error_files=files
    )
    there = packages(
        dist("tensorflow", "2.19.1", requires=["h5py>=3.11"]),
        dist("h5py", "3.10.0"),
        dist("numpy", "2.1.3"),
    )
    environment = Environment(variables=variables)
    result = on("FRM-001", failed_import, packages=there, environment=environment)
    (finding,) = result.findings
    assert says in finding.message
    assert finding.remedy is not None and command in " ".join(finding.remedy.commands)


@pytest.mark.parametrize(("limit", "says"), [(350000, "341 MiB"), (-1, "noexec"), (None, "noexec")])
def test_memory_that_a_limit_keeps_from_it(limit: int | None, says: str) -> None:
    words = "ImportError: libtorch_cpu.so: failed to map segment from shared object"
    host = Host() if limit is None else Host(address_space_kib=limit)
    snap = replace(good_snapshot(tensorflow=not_imported(words=words)), "machine", host=host)
    assert says in judge(snap, "FRM-001", "framework").findings[0].message
    died = Probe[Any](outcome="crashed", reason="exited with status 1", evidence="bad_alloc")
    result = judge(replace(snap, "target", tensorflow=died), "FRM-007", "framework")
    assert result.outcome == ("fail" if says == "341 MiB" else "could-not-run")


def test_an_empty_module_of_the_frameworks_name_is_not_the_framework() -> None:
    empty = tensorflow(name="torch", version=ABSENT, file="/w/torch.py")
    assert "/w/torch.py has its name" in on("FRM-001", torch=empty).findings[0].message


@pytest.mark.parametrize(
    ("value", "cuda", "outcome"),
    [
        ("cuda", False, "fail"),
        ("gpu,cpu", False, "fail"),
        ("cuda", True, "pass"),
        ("cpu", False, "pass"),
    ],
)
def test_jax_is_asked_for_a_platform(value: str, cuda: bool, outcome: str) -> None:
    asked = Environment(variables={"JAX_PLATFORMS": value})
    snap = good_snapshot(tensorflow=None, environment=asked, jax=torch(name="jax", cuda_build=cuda))
    assert judge(snap, "FRM-001", "framework").outcome == outcome


@pytest.mark.parametrize(
    ("value", "command"),
    [
        ("--tf_xla_nonsense", "unset TF_XLA_FLAGS"),
        (
            "--tf_xla_auto_jit=2 --tf_xla_nonsense",
            "export TF_XLA_FLAGS=--tf_xla_auto_jit=2",
        ),
    ],
)
@pytest.mark.parametrize("how", ["died by signal 6 (SIGABRT)", "exited with status 1"])
def test_a_flag_that_xla_does_not_know(how: str, value: str, command: str) -> None:
    words = "F parse_flags_from_env.cc:210] Unknown flags in TF_XLA_FLAGS: --tf_xla_nonsense"
    died = Probe[Any](outcome="crashed", reason=f"the probe {how}", evidence=words)
    result = on("FRM-007", died, environment=Environment(variables={"TF_XLA_FLAGS": value}))
    (finding,) = result.findings
    assert "TF_XLA_FLAGS holds --tf_xla_nonsense" in finding.message
    assert finding.remedy is not None and finding.remedy.commands == [command]


# FRM-007


@pytest.mark.parametrize("number", [4, 6, 9, 11, 31])
def test_a_framework_that_dies(number: int) -> None:
    dead = failed(reason=f"the probe died by signal {number} (SIG)")
    result = on("FRM-007", dead)
    (finding,) = result.findings
    assert result.outcome == "fail" and f"signal {number}" in finding.message
    assert SIGNALS.get(number, "not known") in finding.message
    # and the other checks on that framework have nothing to judge
    assert on("FRM-001", dead).outcome == "could-not-run"


def test_a_framework_that_never_answers_is_named_with_the_time() -> None:
    late = Probe[Framework](outcome="timeout", seconds=90.0, reason="no answer within 90 s")
    result = on("FRM-007", late)
    (finding,) = result.findings
    assert result.outcome == "warn" and "longer than the 90 s" in finding.message
    assert any("py-spy" in command for command in finding.remedy.commands)  # type: ignore[union-attr]
    hurried = Probe[Framework](outcome="timeout", seconds=1.0, reason="no answer within 1 s")
    assert on("FRM-007", hurried).outcome == "could-not-run"


# words


@given(st.text(max_size=200))
@settings(max_examples=30, deadline=None)
def test_foreign_words_break_no_explanation(line: str) -> None:
    for table in (IMPORT, NO_GPU):
        words = [line, f"Could not load dynamic library '{line}'"]
        found = explain(VIEW, tensorflow(), table, words)
        assert found is None or found.says
    for words in (line, f"No module named '{line}'", f"version `{line}' not found"):
        result = on("FRM-001", not_imported(words=words))
        assert result.outcome == "fail"

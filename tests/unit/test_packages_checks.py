"""Checks on the target's distributions: each with a bad, a good and a missing set."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import (
    ABSENT,
    PYTHON,
    dist,
    failed,
    good_snapshot,
    judge,
    not_imported,
    packages,
    system_library,
    tensorflow,
)

from envcheck.facts.target import Distribution, Loader
from envcheck.findings.model import CheckResult

CODES = [f"PKG-{number:03d}" for number in (1, 2, 3, 6, 8, 9, 11, 13)]


def on(code: str, *distributions: Distribution, **probes: Any) -> CheckResult:
    """The check on a target with these distributions, whose TensorFlow does not import."""
    probes = {"tensorflow": not_imported(), "packages": packages(*distributions)} | probes
    return judge(good_snapshot(**probes), code, "packages")


# PKG-001


def test_missing_code_fails_and_missing_byte_code_does_not() -> None:
    library = "nvidia/cudnn/lib/libcudnn.so.9"
    broken = dist("nvidia-cudnn-cu12", "9.3.0.75", missing=[library], missing_count=1)
    result = on("PKG-001", broken)
    assert result.outcome == "fail" and library in result.findings[0].message
    remedy = result.findings[0].remedy
    assert remedy is not None
    assert remedy.commands == [
        f"'{PYTHON}' -m pip install nvidia-cudnn-cu12==9.3.0.75 --force-reinstall --no-deps"
    ]
    harmless = [
        "a/__pycache__/b.pyc",
        "tensorflow/include/x.h",
        "numpy/tests/test_a.py",
        "d/README.md",
    ]
    assert on("PKG-001", dist("numpy", "2.1", missing=harmless, missing_count=4)).outcome == "pass"
    assert (
        on("PKG-001", dist("numpy", "2.1", missing=["bin/f2py"], missing_count=1)).outcome == "warn"
    )


# PKG-002


@pytest.mark.parametrize(
    ("name", "version", "outcome"),
    [
        ("nvidia-tensorflow", "0.0.1.dev5", "fail"),
        ("nvidia-tensorrt", "99.0.0", "fail"),
        ("nvidia-tensorflow", "1.15.5+nv23.3", "pass"),
        ("nvidia-tensorflow", "no version", "pass"),
    ],
)
def test_placeholders(name: str, version: str, outcome: str) -> None:
    assert on("PKG-002", dist(name, version)).outcome == outcome


# PKG-003


# PKG-008


# PKG-009


def test_requirements_are_read_for_the_targets_python() -> None:
    torch = dist(
        "torch",
        "2.4.0",
        requires=[
            "nvidia-cudnn-cu12 ==9.1.0.70 ; platform_system == 'Linux' and platform_machine == 'x86_64'",
            "nvidia-cublas-cu12==12.1.3.1 ; platform_machine == 'aarch64'",
            "triton==3.0.0 ; python_version < '3.13'",
            "typing-extensions>=4",
            "numpy<2 ; extra == 'old'",
            "not a requirement!",
        ],
    )
    result = on("PKG-009", torch, dist("nvidia-cudnn-cu12", "9.3.0.75"), dist("numpy", "2.1"))
    (finding,) = result.findings
    assert (result.outcome, finding.subject) == ("warn", "torch")
    assert "nvidia-cudnn-cu12==9.1.0.70 (is 9.3.0.75)" in finding.message
    assert "cublas" not in finding.message and "triton" not in finding.message


# PKG-013

NONE = Loader(libraries=[system_library("libcudnn", "libcudnn.so.9", path=ABSENT)])


def test_cuda_libraries_from_wheels_the_system_or_nowhere() -> None:
    package = dist("tensorflow", "2.19.1")
    blind = tensorflow(gpus=[], libraries=[])
    wheels = on(
        "PKG-013", package, dist("nvidia-cudnn-cu12", "9.3.0.75"), tensorflow=blind, loader=NONE
    )
    assert wheels.outcome == "pass"
    system = Loader(libraries=[system_library("libcudnn", "libcudnn.so.9", "9.3.0")])
    assert on("PKG-013", package, tensorflow=blind, loader=system).outcome == "pass"
    assert on("PKG-013", package, tensorflow=tensorflow(), loader=NONE).outcome == "pass"
    cpu = tensorflow(gpus=[], cuda_build=False)
    assert on("PKG-013", package, tensorflow=cpu, loader=NONE).outcome == "skipped"
    assert (
        on("PKG-013", dist("tensorflow", "2.13.1"), tensorflow=blind, loader=NONE).outcome
        == "skipped"
    )
    assert on("PKG-013", package, tensorflow=blind, loader=failed()).outcome == "could-not-run"


# versions, markers and names that strangers wrote

FUZZ = settings(max_examples=30, deadline=None)


@given(
    st.sampled_from(CODES),
    st.text(min_size=1, max_size=20),
    st.text(max_size=20),
    st.text(max_size=40),
)
@FUZZ
def test_foreign_distributions_crash_no_check(
    code: str, name: str, version: str, text: str
) -> None:
    odd = dist(name, version, requires=[text], missing=[text], missing_count=1)
    known_names = [
        dist(one, version, requires=[text])
        for one in ("tensorflow", "nvidia-cudnn-cu12", "tensorrt")
    ]
    assert "crashed" not in on(code, odd, *known_names, dist("horovod", version)).reason

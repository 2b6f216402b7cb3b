"""The tables of releases, packages and SONAMEs, and how versions in them are compared."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.checks.target import same
from envcheck.data import table
from envcheck.data.packages import cuda_major, placeholder
from envcheck.data.releases import dependencies, releases
from envcheck.data.sonames import component_of, sonames
from envcheck.data.tensorflow_wheels import tensorflow_build, tensorflow_builds

FUZZ = settings(max_examples=30, deadline=None)


def test_every_release_of_the_table_is_read() -> None:
    assert [release.month for release in releases()] == [
        row["release"] for row in table("releases")
    ]
    assert releases()[0].month == "20.06"
    assert releases()[-1].month == "25.02"


def test_dependencies_keep_their_source_and_tell_prose_from_specifiers() -> None:
    rows = dependencies("23.03")
    assert all(row.source for row in rows)
    horovod = next(row for row in rows if row.kind == "doc" and row.name == "nvidia-horovod")
    assert horovod.specifier is not None and "0.27.0+nv23.3" in horovod.specifier
    misprint = next(row for row in rows if row.name == "nvidia-tensorboard")
    assert misprint.specifier is None


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("nvidia-tensorflow", "0.0.1.dev5"),
        ("nvidia_tensorflow", "0.0.1.dev4"),
        ("nvidia-tensorrt", "99.0.0"),
        ("nvidia-cublas-cu13", "0.0.1"),
        ("tensorrt-libs", "9.3.0.post12.dev1"),
    ],
)
def test_placeholders_are_known_by_name_and_version(name: str, version: str) -> None:
    assert placeholder(name, version) is not None


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("nvidia-tensorflow", "1.15.5+nv23.3"),
        ("nvidia-cublas-cu12", "12.5.3.2"),
        ("tensorrt", "8.6.1"),  # a small package that pulls the real libraries
        ("numpy", "0.0.1"),
        ("nvidia-tensorrt", "odd"),
        ("somebody", "99.0.0"),
    ],
)
def test_real_versions_are_no_placeholders(name: str, version: str) -> None:
    assert placeholder(name, version) is None


@pytest.mark.parametrize(
    ("name", "version", "major"),
    [
        ("nvidia-cublas-cu12", "12.5.3.2", 12),
        ("nvidia-curand-cu114", "10.2.5", 11),
        ("nvidia-cublas", "11.1.0.213", 11),
        ("nvidia-cublas", "13.0.2.14", 13),
        ("nvidia-cufft", "10.1.3.191", 11),
        ("nvidia-cufft", "12.0.0.15", 13),
        ("nvidia-cufft", "14.0.0.1", None),  # newer than the table: not known
        ("nvidia-cudnn", "8.0.1.13", None),
        ("numpy", "2.0", None),
        ("nvidia-cufft", "odd", None),
    ],
)
def test_the_cuda_major_of_a_wheel(name: str, version: str, major: int | None) -> None:
    assert cuda_major(name, version) == major


def test_tensorflow_builds_come_in_order_with_their_pins() -> None:
    versions = [build.version for build in tensorflow_builds()]
    assert versions == sorted(versions) and len(versions) == len(table("pypi_tf"))
    build = tensorflow_build("2.15.0")
    assert build is not None
    assert (build.cuda, build.cudnn, build.tensorrt) == ("12.2", "8", True)
    assert "nvidia-cudnn-cu12==8.9.4.25" in [str(pin) for pin in build.and_cuda]
    assert [pin.name for pin in build.tensorrt_pins] == [
        "tensorrt",
        "tensorrt-bindings",
        "tensorrt-libs",
    ]
    assert tensorflow_build("2.15.0.post1") != build
    assert tensorflow_build("2.17.0+nv25.2") is None


def test_sonames_follow_the_cuda_version() -> None:
    assert sonames("10.0")["libcudart"] == "libcudart.so.10.0"
    assert sonames("11.0.3")["libcusolver"] == "libcusolver.so.10"
    assert sonames("11.8")["libcusolver"] == "libcusolver.so.11"
    assert sonames("12.5.1")["libcufft"] == "libcufft.so.11"
    assert sonames("13.0")["libcusparse"] == "libcusparse.so.12"
    assert sonames("9.0") == sonames("") == sonames("cuda") == {}
    assert all(row["source"] for row in table("cuda_sonames"))


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("12.1.0", "12.1.0.26", True),
        ("8.9.7", "8.9.7.29", True),
        ("12.5", "12.5.82", True),
        ("8.9.7", "8.9.6.50", False),
        ("11.8", "12.1.0", False),
        ("11.8.0.062", "11.8.0.62", True),
        ("odd", "odd", True),
        ("odd", "1.0", False),
    ],
)
def test_versions_agree_as_far_as_both_are_written(one: str, other: str, agree: bool) -> None:
    assert same(one, other) is same(other, one) is agree


@given(st.text(max_size=30), st.text(max_size=30))
@FUZZ
def test_foreign_text_breaks_no_table(name: str, version: str) -> None:
    placeholder(name, version)
    cuda_major(f"nvidia-{name}", version)
    tensorflow_build(version)
    sonames(version)
    component_of(name)
    same(name, version)

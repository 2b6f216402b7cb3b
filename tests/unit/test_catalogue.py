"""The stacks that envcheck comes with, how they are found, and that they say what tables and wheels say."""

from __future__ import annotations

import re

import pytest
from catalogued import constraints, for_each
from packaging.requirements import Requirement
from packaging.specifiers import Specifier
from packaging.utils import canonicalize_name
from packaging.version import Version

from envcheck.checks.registry import all_checks
from envcheck.data import rows, table
from envcheck.data.releases import dependencies
from envcheck.exit_codes import UsageError
from envcheck.install.catalogue.load import find, load, names, seed
from envcheck.install.catalogue.model import Release
from envcheck.install.catalogue.pythons import Python


@pytest.mark.parametrize("name", names())
def test_a_stack_is_called_as_its_file_and_refers_to_what_there_is(name: str) -> None:
    stack = load(name)
    assert stack.name == name
    assert set(stack.otherwise) < set(names()) - {name}
    assert set(stack.must_pass) <= {check.code for check in all_checks()}
    assert all(release.source for release in stack.releases)
    newest = [Version(release.version) for release in stack.releases]
    assert newest == sorted(newest, reverse=True)


@pytest.mark.parametrize("name", names())
def test_a_constraint_binds_a_package_once_and_leaves_something(name: str) -> None:
    stack = load(name)
    for release in stack.releases:
        found = [Requirement(text) for text in release.constraints]
        twice = [(r.name, str(r.marker)) for r in found]
        assert len(twice) == len(set(twice)), release.release


@pytest.mark.parametrize(
    ("stack", "asked", "release"),
    [
        ("nvidia-tf1", "23.03", "23.03"),
        ("nvidia-tf1", "23.3", "23.03"),
        ("nvidia-tf1", "1.15.5+nv23.03", "23.03"),
        ("nvidia-tf1", "1.15.5+nv23.3", "23.03"),
        ("nvidia-tf1", "1.15.3+nv20.08", "20.08"),
        ("nvidia-tf1", "1.15.2", "20.06"),  # the only one of that version
        ("tensorflow", "2.21.0", "2.21.0"),
        ("tensorflow", "2.21", "2.21.0"),
        ("tensorflow", "v2.21.0", "2.21.0"),
        ("tensorflow", "2.22.0-rc0", "2.22.0rc0"),
    ],
)
def test_a_release_has_several_names(stack: str, asked: str, release: str) -> None:
    assert find(load(stack), asked).release == release


def test_an_unknown_stack_names_the_nearest_and_all() -> None:
    with pytest.raises(
        UsageError, match='no stack "tensorfow"; did you mean "tensorflow"'
    ) as caught:
        load("tensorfow")
    assert "nvidia-tf1, tensorflow, tensorflow-cpu, tensorflow1, torch" in caught.value.hint
    with pytest.raises(UsageError, match=r'^there is no stack "fastai"$'):
        load("fastai")


def test_every_python_gets_one_pip_exactly() -> None:
    table = rows("seeds", Python)
    for row in table:
        pins = [Requirement(text) for text in row.packages]
        assert "pip" in [pin.name for pin in pins]
        assert all(str(pin.specifier).startswith("==") for pin in pins)
        assert seed(row.version) == list(row.packages)
    assert [row.version for row in table] == [f"3.{minor}" for minor in range(6, 15)]


NVIDIA = load("nvidia-tf1")
MONTHS = {row["release"]: row for row in table("releases")}

by_month = for_each(NVIDIA)


def test_every_month_with_a_wheel_of_tensorflow_1_is_there() -> None:
    wanted = {m: row["wheel_version"] for m, row in MONTHS.items()}
    wanted = {m: version for m, version in wanted.items() if version.startswith("1.15.")}
    assert {r.release: r.version for r in NVIDIA.releases} == wanted
    assert len(wanted) == 33 and "21.01" not in wanted


@by_month
def test_a_month_holds_python_packages_to_what_its_setup_py_asks_for(release: Release) -> None:
    for python in release.python:
        for row in dependencies(release.release):
            if row.kind != "setup.py":
                continue
            if ";" in row.value:
                marker = Requirement(f"{row.name}{row.value}").marker
                assert marker is not None
                if not marker.evaluate({"python_version": python}):
                    continue
            assert row.specifier is not None
            ours = constraints(NVIDIA, release, row.name, python)
            for bound in row.specifier:
                if bound.operator == ">=":
                    continue  # the newest comes anyway
                assert next_after(bound) not in ours, f"{row.name}{bound}"
                assert bound.operator == "<" or bound.version in ours, f"{row.name}{bound}"


def next_after(bound: Specifier) -> str:
    """The lowest version (of three numbers) that an upper bound or a pin refuses."""
    first, second, third = [*Version(bound.version).release, 0, 0][:3]
    if bound.operator == "<":
        return f"{first}.{second}.{third}"
    return f"{first}.{second + 1}.0" if bound.operator == "~=" else f"{first}.{second}.{third + 1}"


@by_month
def test_tensorflow_1_gets_no_protobuf_numpy_or_h5py_that_breaks_it(release: Release) -> None:
    for python in release.python:
        assert "3.20.3" in constraints(NVIDIA, release, "protobuf", python)
        assert "3.21.0" not in constraints(NVIDIA, release, "protobuf", python)
        assert "3.1.0" not in constraints(NVIDIA, release, "h5py", python)
        numpy = constraints(NVIDIA, release, "numpy", python)
        assert "1.24.0" not in numpy
        assert ("1.19.0" in numpy) == (python == "3.6" and release.release > "22")


def test_every_name_that_nvidia_ever_used_comes_from_its_index_alone() -> None:
    (index,) = NVIDIA.indexes
    used = {row["requirement"].partition(" ")[0] for row in table("nvtf_deps")}
    used = {name.replace("<CUDA_MAJMIN>", "116") for name in used}
    used |= {row["name"] for row in table("pypi_nvidia_names")}
    theirs = {n for n in used if re.match("nvidia-|tensorrt|uff|graphsurgeon", n)}
    assert len(theirs) > 100
    assert not [name for name in theirs if not index.claims(name)]
    assert index.claims("nvidia-cudnn-cu118")  # which anybody could register on the public index
    public = {canonicalize_name(name) for name in used - theirs if re.fullmatch(r"[\w-]+", name)}
    assert {"numpy", "protobuf", "gast", "h5py"} <= public
    assert not [name for name in [*public, "nvidia-ml-py"] if index.claims(name)]


TENSORFLOW = load("tensorflow")
CPU = load("tensorflow-cpu")
FIRST = load("tensorflow1")
BUILDS = {row["tensorflow"]: row for row in table("pypi_tf")}


def test_every_build_with_the_extra_is_there() -> None:
    wanted = [version for version, row in BUILDS.items() if row["and_cuda"]]
    assert [r.version for r in reversed(TENSORFLOW.releases)] == wanted
    assert "2.13.1" not in wanted


def test_what_is_known_not_to_work_is_broken_and_says_why() -> None:
    broken = {r.version: r.broken for r in TENSORFLOW.releases if r.broken}
    assert set(broken) == {"2.15.0", "2.16.1"}
    assert "tensorrt-libs" in broken["2.15.0"] and "uninstallable" in BUILDS["2.15.0"]["note"]
    assert "no GPU" in broken["2.16.1"]
    assert not [r for stack in (CPU, FIRST) for r in stack.releases if r.broken]


def test_cudnn_does_not_float_past_the_gpus_that_a_build_names() -> None:
    """From 9.11 on cuDNN has no code below compute capability 7.5."""
    for release in TENSORFLOW.releases:
        pins = BUILDS[release.version]["and_cuda"].split("; ")
        floats = any("cudnn" in pin and "<" in pin for pin in pins)
        ours = constraints(TENSORFLOW, release, "nvidia-cudnn-cu12", "3.11")
        assert ("9.28.0.42" not in ours) is floats and "9.10.2.21" in ours, release.version
    assert floats is False

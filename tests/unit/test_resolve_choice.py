"""What is asked of the resolver, and which file of a version is locked."""

from __future__ import annotations

import random
from typing import Any

import pytest
from packaging.version import Version

from envcheck.install.catalogue.model import Build, Release, Sdist, Stack
from envcheck.install.fit.models import Candidate, Choice
from envcheck.install.index.simple import ProjectFile
from envcheck.install.pythons.wheel_tags import tags
from envcheck.install.wheels import resolve
from envcheck.install.wheels.compiled import NoSolution, Target

ORDER = {
    tag: n for n, tag in enumerate(tags("3.8", "cpython-38-x86_64-linux-gnu", "x86_64", "2.31"))
}
TARGET = Target(minor="3.8", architecture="x86_64", glibc="2.31", interpreter=None)


def sdist(name: str, *requires: str) -> Sdist:
    build = Build(requires=list(requires))
    return Sdist(name=name, version="1", sha256="0", why="no wheel", source="made up", build=build)


def choice(**changes: Any) -> Choice:
    stack: dict[str, Any] = {
        "name": "test",
        "title": "a test's",
        "distribution": "alpha",
        "requirement": "alpha[gpu]=={version}",
        "gpu": True,
        "architectures": ["x86_64"],
        "source": "made up",
        "constraints": ["beta<2"],
    }
    release = Release(
        release="23.03",
        version="1.0+nv23.03",
        python=["3.8"],
        source="made up",
        constraints=["gamma==3"],
        extra_requirements=["delta"],
    )
    return Choice(stack=Stack(**(stack | changes)), candidate=Candidate(release=release))


def file(name: str) -> ProjectFile:
    return ProjectFile(filename=name, url=f"https://index.example/{name}", version=Version("1.0"))


def test_the_catalogues_pins_are_constraints_and_pip_is_a_requirement() -> None:
    assert resolve.requirements(choice(), "3.8")[:2] == ["alpha[gpu]==1.0+nv23.03", "delta"]
    assert [r for r in resolve.requirements(choice(), "3.6") if r.startswith("pip")] == [
        "pip==21.3.1"
    ]
    assert resolve.constraints(choice()) == ["beta<2", "gamma==3"]


BEST_FIRST = [
    "a-1.0-2-cp38-cp38-manylinux_2_31_x86_64.whl",
    "a-1.0-1-cp38-cp38-manylinux_2_31_x86_64.whl",
    "a-1.0-cp38-cp38-manylinux_2_31_x86_64.whl",
    "a-1.0-cp38-cp38-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "a-1.0-cp38-abi3-manylinux2014_x86_64.whl",
    "a-1.0-cp36-abi3-manylinux2014_x86_64.whl",
    "a-1.0-py3-none-manylinux2014_x86_64.whl",
    "a-1.0-py38-none-any.whl",
    "a-1.0-py2.py3-none-any.whl",
    "a-1.0.tar.gz",
]
UNFIT = [
    "a-1.0-cp39-cp39-manylinux2014_x86_64.whl",
    "a-1.0-cp38-cp38-manylinux_2_34_x86_64.whl",
    "a-1.0-cp38-cp38-musllinux_1_1_x86_64.whl",
    "a-1.0-cp38-cp38-manylinux2014_aarch64.whl",
    "a-1.0-cp38-cp38.whl",
]


@pytest.mark.parametrize("count", range(len(BEST_FIRST)))
def test_the_interpreters_favourite_is_locked(count: int) -> None:
    names = BEST_FIRST[count:] + UNFIT
    random.Random(count).shuffle(names)
    best = resolve.best_file(map(file, names), "1.0", ORDER)
    assert best is not None and best.filename == BEST_FIRST[count]


def test_another_version_is_no_choice() -> None:
    assert resolve.best_file([file("a-1.0-py3-none-any.whl")], "1.1", ORDER) is None
    assert resolve.best_file(map(file, UNFIT), "1.0", ORDER) is None


def test_of_two_pins_for_building_the_first_counts() -> None:
    stack = choice(
        sdists=[sdist("gast", "setuptools==59.6.0"), sdist("hvd", "Setuptools==70", "c==1")]
    )
    assert resolve._build_pins(stack.stack) == ["setuptools==59.6.0", "c==1"]


def test_a_python_that_is_to_be_got_has_its_abi() -> None:
    old = resolve._tags(Target(minor="3.7", architecture="x86_64", glibc="2.31", interpreter=None))
    assert "cp37-cp37m-manylinux2014_x86_64" in old
    assert "cp38-cp38-manylinux2014_x86_64" in resolve._tags(TARGET)
    options = TARGET.options()
    assert options[-4:] == ["--python-version", "3.8", "--python-platform", "x86_64-manylinux_2_31"]


@pytest.mark.parametrize(
    ("glibc", "platform"),
    [("2.17", "manylinux_2_17"), ("2.30", "manylinux_2_28"), ("2.99", "manylinux_2_40")],
)
def test_uv_knows_some_levels_of_glibc(glibc: str, platform: str) -> None:
    target = Target(minor="3.8", architecture="aarch64", glibc=glibc, interpreter=None)
    assert target.options()[-1] == f"aarch64-{platform}"
    unknown = Target(minor="3.8", architecture="aarch64", glibc="", interpreter=None)
    assert "--python-platform" not in unknown.options()


def test_no_solution_is_told_with_what_was_kept_out() -> None:
    error = NoSolution(
        "Because there is no version of nvidia-cudnn, it cannot be",
        "error: No solution\n  cause: Because tensorrt is not there.\n"
        "         And because there is no version of nvidia-cudnn.\n\nhint: look again\n",
    )
    said = {"nvidia-cudnn": "0.0.1.dev5 is a placeholder", "tensorrt": "99 is not NVIDIA's"}
    told = resolve._no_solution(error, choice(), TARGET, lambda name: said.get(name, ""))
    assert str(told) == (
        "test 23.03 cannot be resolved for Python 3.8: Because there is no version of nvidia-cudnn, "
        "it cannot be; 99 is not NVIDIA's; 0.0.1.dev5 is a placeholder"
    )
    assert (told.hint, told.exit_code) == ("look again", 3)

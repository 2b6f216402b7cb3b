"""What is asked of the resolver, and which file of a version is locked."""

from __future__ import annotations

import random

import pytest

from envcheck.install.lockfile import LockedFile
from envcheck.install.wheels import resolve
from envcheck.install.wheels.pins import Target

TARGET = Target(minor="3.8", architecture="x86_64", glibc="2.31", interpreter=None)
SELECT = resolve.selector(TARGET)


def file(name: str) -> LockedFile:
    return LockedFile(name=name, url=f"https://index.example/{name}", sha256="0")


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
    best = resolve.best_file(map(file, names), SELECT)
    assert best is not None and best.name == BEST_FIRST[count]


def test_a_python_that_is_to_be_got_has_its_abi() -> None:
    old = Target(minor="3.7", architecture="x86_64", glibc="2.31", interpreter=None)
    for target, abi in ((old, "cp37-cp37m"), (TARGET, "cp38-cp38")):
        one = file(f"a-1.0-{abi}-manylinux2014_x86_64.whl")
        assert resolve.best_file([one], resolve.selector(target)) == one
    options = TARGET.options()
    assert options[-4:] == ["--python-version", "3.8", "--python-platform", "x86_64-manylinux_2_31"]

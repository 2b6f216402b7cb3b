"""Each package from the index it belongs to, no placeholder, and no sdist that the stack does not name."""

from __future__ import annotations

import planned
import pytest

from envcheck.exit_codes import Cannot
from envcheck.install.catalogue.model import Index, Sdist, Stack
from envcheck.install.lockfile import LockedFile
from envcheck.install.network.access import Access
from envcheck.install.network.public_index import PublicIndex
from envcheck.install.request import Request
from envcheck.install.wheels import origin
from envcheck.install.wheels.indexes import Indexes
from envcheck.install.wheels.pins import Pin

NVIDIA = "https://nvidia.example/simple/"
ELSEWHERE = "https://public.example/simple"
GAST = Sdist(name="Gast", version="0.2.2", sha256="a" * 64, why="no wheel", source="made up")
OWN = Index(
    name="nvidia", urls=[NVIDIA], packages=["nvidia-*", "tensorrt"], but_not=["nvidia-ml-py"], source=""
)  # fmt: skip
STACK = planned.stack(distribution="alpha", indexes=[OWN], sdists=[GAST])


def indexes(stack: Stack = STACK) -> Indexes:
    public = PublicIndex(url=ELSEWHERE, origin="a test")
    return Indexes(stack, Request(), public, Access())


def pin(name: str, version: str = "1.0", index: str = ELSEWHERE) -> Pin:
    return Pin(name=name, version=version, index=index, needed_by=[])


def check(*pins: Pin) -> str:
    """What is refused."""
    with pytest.raises(Cannot) as caught:
        origin.check(pins, indexes(STACK))
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_each_from_its_own_index_passes() -> None:
    good = [pin("nvidia-cublas", index=NVIDIA), pin("tensorrt", index=NVIDIA[:-1])]
    origin.check([*good, pin("numpy"), pin("nvidia-ml-py"), pin("tensorrt-cu12")], indexes())


def test_a_claimed_name_from_another_index_is_refused() -> None:
    result = check(pin("numpy"), pin("nvidia-cublas"))
    assert result == (
        f"the nvidia index ({NVIDIA}) has no nvidia-cublas that fits, and {ELSEWHERE} offers 1.0 under that"
        " name; nvidia-cublas is taken from no other index"
    )


@pytest.mark.parametrize("index", [NVIDIA, "", "https://third.example/"])
def test_an_unclaimed_name_from_another_index_is_refused(index: str) -> None:
    result = check(pin("numpy", "99.0", index))
    assert (
        result.startswith("numpy 99.0 comes from ") and "it belongs to the public index" in result
    )


@pytest.mark.parametrize(
    ("name", "version", "index"),
    [
        ("nvidia-tensorrt", "99.0.0", NVIDIA),
        ("nvidia-cudnn", "0.0.1.dev5", NVIDIA),
        ("nvidia-anything", "0.0.1.dev4", NVIDIA),
    ],
)
def test_a_placeholder_is_refused_wherever_it_is(name: str, version: str, index: str) -> None:
    assert f"{name} {version} is a placeholder" in check(pin(name, version, index))


def file(name: str, sha256: str = "a" * 64) -> LockedFile:
    return LockedFile(name=name, url=f"https://x.example/{name}", sha256=sha256)


@pytest.mark.parametrize(
    ("name", "version", "sha256", "why"),
    [
        ("evil", "1.0", "a" * 64, "the stack allows none of this name"),
        ("gast", "0.3.0", "a" * 64, "the stack allows that of 0.2.2 alone"),
        ("gast", "0.2.2", "b" * 64, f"the stack allows the one with {'a' * 64}"),
    ],
)
def test_an_sdist_that_is_not_named_is_refused(
    name: str, version: str, sha256: str, why: str
) -> None:
    with pytest.raises(Cannot, match=why) as caught:
        origin.check_file(pin(name, version), file(f"{name}-{version}.tar.gz", sha256), STACK)
    assert "[[sdists]]" in caught.value.hint


@pytest.mark.parametrize("name", ["other-1.0-py3-none-any.whl", "gas-t.0.2.2.tar.gz", "x.zip"])
def test_the_file_of_another_package_is_refused(name: str) -> None:
    with pytest.raises(Cannot, match="as a file of gast"):
        origin.check_file(pin("gast", "0.2.2"), file(name), STACK)

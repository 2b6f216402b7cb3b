"""Whether a lock that somebody brought is for this machine, and what the next plan's rate rests on."""

from __future__ import annotations

import msgspec
import pytest
from planned import MIB, NVIDIA, PUBLIC, interpreter, lock, package, stack

from envcheck.exit_codes import Cannot
from envcheck.install.wheels.given_lock import check_fits
from envcheck.install.wheels.pip_conf import public_of


def test_a_lock_for_another_machine() -> None:
    brought = lock(
        package("a", "1", 1), package("b", "1", 1, end="-cp38-cp38-manylinux_2_28_x86_64.whl")
    )
    here = msgspec.structs.replace(
        interpreter(), tags=["cp38-cp38-manylinux_2_17_x86_64", "py3-none-any"]
    )
    newer = msgspec.structs.replace(here, tags=["cp38-cp38-manylinux_2_28_x86_64", *here.tags])
    check_fits(brought, newer, "bundle")
    with pytest.raises(Cannot, match=r"b-1-cp38.*manylinux_2_17_x86_64\) cannot take"):
        check_fits(brought, here, "bundle")
    with pytest.raises(Cannot, match=r"is for Python 3.8, and /usr/bin/python3.8 is 3.11.7"):
        check_fits(brought, msgspec.structs.replace(here, version="3.11.7"), "bundle")
    with pytest.raises(Cannot, match="is for x86_64, and this machine's Python is aarch64"):
        check_fits(brought, msgspec.structs.replace(here, architecture="aarch64"), "bundle")


def test_the_public_index_is_what_no_other_claims() -> None:
    assert public_of(stack(), lock()) == PUBLIC
    assert public_of(stack(), lock(package("nvidia-cudnn", "1", MIB, NVIDIA))) == ""

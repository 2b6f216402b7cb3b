"""Whether a lock that somebody brought is for this machine, and what the next plan's rate rests on."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from planned import MIB, NVIDIA, PUBLIC, interpreter, lock, package, stack

from envcheck.exit_codes import Cannot
from envcheck.install import progress
from envcheck.install.progress import Meter
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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    now = [100.0]
    monkeypatch.setattr("envcheck.install.progress.time.monotonic", lambda: now[0])
    return now


def test_the_rate_is_that_of_the_time_in_which_bytes_came(clock: list[float]) -> None:
    shown: list[str] = []
    meter = Meter(shown.append)
    for moment, done in ((100, 0), (105, 1), (110, 50_000_000), (140, 50_000_000)):
        clock[0] = float(moment)
        meter(done, 100_000_000)
    meter.keep()
    assert progress.last_rate() == 5e6
    assert shown[2] == "48 of 95 MiB, 4.8 MiB/s, 10 s left"


def test_little_says_nothing_of_a_rate(clock: list[float]) -> None:
    for fetched, seconds in ((1000, 10.0), (10**9, 0.1)):
        meter = Meter(lambda words: None)
        for size in (1, fetched):
            meter(size, None)
            clock[0] += seconds
        meter.keep()
    assert progress.last_rate() == 0.0

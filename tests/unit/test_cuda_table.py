"""The table of CUDA versions and drivers, and how it is read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from envcheck.data import table
from envcheck.data.capabilities import capability
from envcheck.data.cuda import (
    beyond_table,
    compatible_majors,
    driver_fits,
    newest_cuda_for,
    rows,
    rows_for,
)
from envcheck.data.versions import parse_version

DRIVERS = sorted({row.toolkit_driver for row in rows() if row.toolkit_driver}, key=Version)


def test_every_row_is_sourced_and_readable() -> None:
    assert len(rows()) == len(table("cuda_driver")) > 50
    for row in rows():
        assert row.source and row.compat_driver
        assert not row.toolkit_driver or parse_version(row.toolkit_driver)
    # The reading of an unknown update and of an empty cell leans on this.
    known = [row for row in reversed(rows()) if row.toolkit_driver]
    assert [Version(row.toolkit_driver) for row in known] == sorted(
        Version(row.toolkit_driver) for row in known
    )


@pytest.mark.parametrize(
    ("cuda", "found"),
    [
        ("12.5.1", ["12.5.1"]),
        ("12.5", ["12.5.0"]),
        ("12.5.0.23", ["12.5.0"]),
        ("11.0", ["11.0.2"]),  # the least that was released: 11.0.1 is a release candidate
        ("11.0.167", ["11.0.1"]),  # named by its build number
        ("11.0.194", ["11.0.3", "11.0.2", "11.0.1"]),  # not in the table: all of the minor version
        ("10.1.243", ["10.1"]),
        ("12.7", []),
        ("64_112", []),
        ("", []),
    ],
)
def test_rows_for(cuda: str, found: list[str]) -> None:
    assert [row.cuda for row in rows_for(cuda)] == found


@pytest.mark.parametrize(
    ("cuda", "driver", "how", "needs"),
    [
        ("12.5.1", "555.42.06", "native", "525.60.13"),
        ("12.5.1", "535.54.03", "minor-version", "525.60.13"),
        ("12.5.1", "525.60.12", "too-old", "525.60.13"),
        ("12.3.2", "545.23.08", "minor-version", "525.60.13"),  # its toolkit driver is not known
        ("12.3.2", "470.57.02", "too-old", "525.60.13"),
        ("11.8.0", "450.80.02", "minor-version", "450.80.02"),
        # For 11.0 either column: the compatibility minimum is above the toolkit's own driver.
        ("11.0.3", "450.51.06", "native", "450.51.06"),
        ("11.0.3", "450.51.05", "too-old", "450.51.06"),
        ("11.0.3", "450.80.02", "native", "450.51.06"),
        ("11.1.1", "450.80.02", "minor-version", "450.80.02"),
        ("11.0.194", "450.51.05", "not-known", "450.51.06"),
        ("11.0.194", "450.80.02", "native", "450.51.06"),
        ("11.0.194", "440.33", "too-old", "450.51.06"),
        # A branch alone stands for all its drivers.
        ("13.1.0", "580.65.06", "minor-version", "580"),
        ("13.0.0", "580.65.06", "native", "580"),
        ("13.0.0", "575.57.08", "too-old", "580"),
        # No minor-version compatibility before 11.
        ("10.2", "418.43", "too-old", "440.33"),
        ("10.1", "418.43", "native", "418.39"),
        ("12.7", "565.57.01", "not-known", ""),
        ("12.5.1", "nonsense", "not-known", ""),
        ("tensorflow", "535.54.03", "not-known", ""),
    ],
)
def test_driver_fits(cuda: str, driver: str, how: str, needs: str) -> None:
    fit = driver_fits(cuda, driver)
    assert (fit.how, fit.needs) == (how, needs)
    assert fit.fits == {"native": True, "minor-version": True, "too-old": False}.get(how)
    assert (fit.cuda, fit.driver) == (cuda, driver)


@pytest.mark.parametrize(
    ("driver", "cuda", "majors"),
    [
        ("535.54.03", "12.2.0", [12, 11]),
        ("450.80.02", "11.0.3", [11]),
        ("450.51.06", "11.0.3", []),
        ("418.43", "10.1", []),
        ("390.157", None, []),
        ("nonsense", None, []),
    ],
)
def test_what_a_driver_runs(driver: str, cuda: str | None, majors: list[int]) -> None:
    newest = newest_cuda_for(driver)
    assert (newest and newest.cuda) == cuda
    assert list(compatible_majors(driver)) == majors


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([row.cuda for row in rows()]),
    st.sampled_from(DRIVERS),
    st.sampled_from(DRIVERS),
)
def test_a_newer_driver_never_fits_less(cuda: str, one: str, other: str) -> None:
    order = {"too-old": 0, "not-known": 1, "minor-version": 2, "native": 3}
    older, newer = sorted((one, other), key=Version)
    assert order[driver_fits(cuda, older).how] <= order[driver_fits(cuda, newer).how]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(DRIVERS))
def test_what_a_driver_runs_natively_fits_it(driver: str) -> None:
    newest = newest_cuda_for(driver)
    assert newest is not None and driver_fits(newest.cuda, driver).how == "native"


@settings(max_examples=30, deadline=None)
@given(
    st.text(max_size=20) | st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,4}){0,4}", fullmatch=True),
    st.text(),
)
def test_any_text_is_judged_and_nothing_is_made_up(cuda: str, driver: str) -> None:
    fit = driver_fits(cuda, driver)
    assert fit.how == "not-known" or (rows_for(cuda) and parse_version(driver))
    assert newest_cuda_for(driver) is None or parse_version(driver)
    assert isinstance(beyond_table(driver), bool)


def test_capabilities() -> None:
    assert capability("9.0").first_cuda == "11.8"  # type: ignore[union-attr]
    assert capability("6.1").last_cuda == "12.9"  # type: ignore[union-attr]
    assert capability("99.9") is None
    assert all(row["source"] and row["architecture"] for row in table("capabilities"))

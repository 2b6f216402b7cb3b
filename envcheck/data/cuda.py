"""Which CUDA a driver runs: NVIDIA's table of toolkit drivers and of minor-version compatibility."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Literal, NamedTuple

import msgspec
from packaging.version import Version

from .. import data
from .versions import parse_version

_COLUMNS = {
    "version": "cuda",
    "toolkit_driver": "toolkit_driver_linux_min",
    "compat_driver": "minor_version_compat_linux_min",
}
How = Literal["native", "minor-version", "too-old", "not-known"]


class CudaRow(msgspec.Struct, frozen=True, rename=_COLUMNS):
    """One CUDA release and its oldest drivers, as written; "" where no source was seen."""

    version: Version  # "12.5.1"
    label: str  # "Update 1"
    toolkit_driver: str  # shipped with the toolkit: it has everything that this CUDA has
    compat_driver: str  # runs it by minor-version compatibility; may be a branch alone ("580")
    note: str
    source: str

    @property
    def cuda(self) -> str:
        return str(self.version)

    @property
    def minor(self) -> str:
        """The CUDA version as people name it and the driver reports it: "12.5"."""
        return f"{self.version.major}.{self.version.minor}"


class DriverFit(NamedTuple):
    """Whether a driver runs a CUDA version, and how.

    how: "native": the driver is at least the toolkit's own; "minor-version": it runs it by minor-version
    compatibility (PTX that is newer than the driver does not run); "too-old": it does not run it;
    "not-known": the table does not say, which is never a pass.
    """

    how: How
    cuda: str  # as asked
    driver: str  # as asked
    needs: str  # the oldest driver that runs this CUDA at all; "" where the table has none
    source: str

    @property
    def fits(self) -> bool | None:
        """True or False; None where it is not known."""
        return {"native": True, "minor-version": True, "too-old": False, "not-known": None}[
            self.how
        ]


def rows() -> tuple[CudaRow, ...]:
    """The table, newest CUDA first."""
    return data.rows("cuda_driver", CudaRow)


@lru_cache(maxsize=256)
def rows_for(cuda: str) -> tuple[CudaRow, ...]:
    """The rows that stand for a CUDA version, newest first; none where the table does not have it.

    "12.5.1" and "12.5.1.007" have one row; "12.5" stands for the least update of that minor version that
    was released (a release candidate was not). An update that the table does not have stands for all
    rows of its minor version: judge it by all.
    """
    asked = parse_version(cuda)
    if asked is None:
        return ()
    minor = tuple(row for row in rows() if row.version.release[:2] == (asked.major, asked.minor))
    if len(asked.release) <= 2:
        released = tuple(row for row in minor if not row.label.startswith("RC"))
        return (released or minor)[-1:]
    exact = tuple(
        row
        for row in minor
        if row.version.release == asked.release[:3] or cuda.strip() in row.label
    )
    return exact[:1] or minor


def driver_fits(cuda: str, driver: str) -> DriverFit:
    """Whether this driver runs this CUDA: at least *either* of the table's two columns.

    For CUDA 11.0 the compatibility minimum is above the toolkit's own driver, so neither column alone
    decides. Versions are compared as versions; a bare branch ("580") stands for all of its drivers.
    """
    found = rows_for(cuda)
    version = parse_version(driver)
    if not found or version is None:
        return DriverFit("not-known", cuda, driver, "", "")
    how: How
    if all(_reaches(version, row.toolkit_driver) for row in found):
        how = "native"
    elif all(_reaches(version, row.toolkit_driver, row.compat_driver) for row in found):
        how = "minor-version"
    elif any(_may_reach(version, row) for row in found):
        how = "not-known"
    else:
        how = "too-old"
    newest = found[0]
    needs = _oldest(newest.toolkit_driver, newest.compat_driver)
    return DriverFit(how, cuda, driver, needs, newest.source)


@lru_cache(maxsize=256)
def newest_cuda_for(driver: str) -> CudaRow | None:
    """The newest CUDA whose toolkit's own driver is not newer than this one: what it runs natively."""
    version = parse_version(driver)
    if version is None:
        return None
    return next((row for row in rows() if _reaches(version, row.toolkit_driver)), None)


@lru_cache(maxsize=256)
def beyond_table(driver: str) -> bool:
    """Whether the driver's branch is newer than the table's newest: it may run a CUDA not listed."""
    version = parse_version(driver)
    newest = max(Version(row.toolkit_driver) for row in rows() if row.toolkit_driver)
    return version is not None and version.major > newest.major


@lru_cache(maxsize=256)
def compatible_majors(driver: str) -> tuple[int, ...]:
    """The CUDA majors of which the driver runs every minor version, newest first: (12, 11)."""
    version = parse_version(driver)
    if version is None:
        return ()
    majors = dict.fromkeys(row.version.major for row in rows() if has_minor_compatibility(row))
    return tuple(
        major
        for major in majors
        if all(
            _reaches(version, row.toolkit_driver, row.compat_driver)
            for row in rows()
            if row.version.major == major
        )
    )


def has_minor_compatibility(row: CudaRow) -> bool:
    """Whether the row's CUDA knows minor-version compatibility at all, which came with CUDA 11."""
    return row.version.major >= 11


@cache
def first_compatible_driver() -> str:
    """The oldest driver with minor-version compatibility for any CUDA: "450.80.02"."""
    return min((row.compat_driver for row in rows() if has_minor_compatibility(row)), key=Version)


def _reaches(driver: Version, *minima: str) -> bool:
    """Whether the driver is at least one of these; an empty one is never reached."""
    return any(minimum and driver >= Version(minimum) for minimum in minima)


def _may_reach(driver: Version, row: CudaRow) -> bool:
    """Whether the row leaves it open that the driver runs its CUDA."""
    if row.toolkit_driver:
        return _reaches(driver, row.toolkit_driver, row.compat_driver)
    earlier = [
        other.toolkit_driver
        for other in rows()
        if other.minor == row.minor and other.version < row.version and other.toolkit_driver
    ]
    return not earlier or _reaches(driver, earlier[0], row.compat_driver)


def _oldest(*versions: str) -> str:
    return min((version for version in versions if version), key=Version, default="")

"""NVIDIA's monthly TensorFlow releases, 20.06 to 25.02, and what is known of their wheels' dependencies."""

from __future__ import annotations

import re
from functools import cache

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from . import rows

_COLUMNS = {
    "month": "release",
    "wheel": "wheel_version",
    "image_tf1": "tag_tf1",
    "compat_branches": "compat_driver_branches",
}


class MonthlyRelease(msgspec.Struct, frozen=True, rename=_COLUMNS):
    """One month. Versions as the documents print them; "" is not known."""

    month: str  # "23.03"
    image_tf1: str  # the container with TensorFlow 1
    cuda: str
    cudnn: str
    # By forward compatibility: "450.51" is branch 450 from 450.51 on, "418.xx" any of 418.
    compat_branches: tuple[str, ...]
    cell_sources: str
    wheel_python: str  # "3.6(file);3.8(README)"
    wheel: Version | None = None  # of nvidia-tensorflow; None: no wheel that month

    @property
    def sources(self) -> dict[str, str]:
        """Column → where its value is from: {"min_driver": "TFRN"}."""
        pairs = (part.partition("=") for part in self.cell_sources.split(";"))
        return {column.strip(): source.strip() for column, _, source in pairs if column.strip()}


class Dependency(
    msgspec.Struct,
    frozen=True,
    rename={"first": "first_release", "last": "last_release", "name": "requirement"},
):
    """What one source says that nvidia-tensorflow of some months depends on, or came with.

    kind: "rule" and "setup.py" are requirements of the wheel; "installed", "doc", "pip log" and "wheel"
    are what somebody saw beside it.
    """

    first: str
    last: str
    kind: str
    name: str
    value: str
    extra: str
    source: str

    @property
    def specifier(self) -> SpecifierSet | None:
        """That of ">=3.6.1,<4.0.0" or of "==0.27.0+nv23.03"; None for prose and bare versions."""
        text = re.split(r"[;(]", self.value)[0].strip()
        try:
            return SpecifierSet(text) if text[:1] in tuple("<>=!~") else None
        except InvalidSpecifier:
            return None


def month_key(month: str) -> tuple[int, int]:
    """ "23.03" as a sortable (year, month). Raises ValueError."""
    year, _, number = month.partition(".")
    return int(year), int(number)


def releases() -> tuple[MonthlyRelease, ...]:
    """Every month of releases.csv, oldest first."""
    return rows("releases", MonthlyRelease)


@cache
def dependencies(month: str) -> tuple[Dependency, ...]:
    """Every row of nvtf_deps.csv that covers this month."""
    key = month_key(month)
    every = rows("nvtf_deps", Dependency)
    return tuple(row for row in every if month_key(row.first) <= key <= month_key(row.last))


def branches(cell: str) -> tuple[str, ...]:
    """The driver branches of "418.xx;440.30"; none of an empty cell, which is not known."""
    return tuple(part.strip() for part in cell.split(";") if part.strip())


@cache
def wheel_pythons() -> tuple[str, ...]:
    """The Pythons that any nvidia-tensorflow has wheels for, lowest first."""
    found = {python for one in releases() for python in re.findall(r"3\.\d+", one.wheel_python)}
    return tuple(sorted(found, key=Version))

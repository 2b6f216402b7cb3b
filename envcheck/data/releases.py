"""NVIDIA's monthly TensorFlow releases, 20.06 to 25.02, and what is known of their wheels' dependencies.

Sources: releases.csv (each month's TensorFlow container or wheel; ``cell_sources`` says which cell
comes from where), releases_sister.csv (same-month containers that share its base image) and
nvtf_deps.csv. An empty cell means that no source was seen: it reads as "", and the product says
"not known" there.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from . import table
from .versions import parse_version


class MonthlyRelease(msgspec.Struct, frozen=True):
    """One month. Versions as the documents print them; "" is not known."""

    month: str  # "23.03"
    wheel: Version | None  # of nvidia-tensorflow; None: no wheel that month
    image_tf1: str  # the container with TensorFlow 1
    image_tf2: str
    tf1: str
    tf2: str
    python: str
    cuda: str
    cublas: str
    cudnn: str
    nccl: str
    tensorrt: str
    dali: str  # of the wheel where it differs from the container's
    horovod: str
    notes: str
    # Facts of the container, whose image carries a libcuda for older drivers; not of the wheel:
    ubuntu: str
    min_driver: str
    # By forward compatibility: "450.51" is branch 450 from 450.51 on, "418.xx" any of 418.
    compat_branches: tuple[str, ...]
    min_capability: str
    sources: dict[str, str]  # column → where its value is from: {"min_driver": "TFRN"}

    @property
    def libraries_known(self) -> bool:
        """At least one library's version has a source of its own."""
        return any((self.cuda, self.cublas, self.cudnn, self.nccl, self.tensorrt))


class Dependency(msgspec.Struct, frozen=True):
    """What one source says that nvidia-tensorflow of some months depends on, or came with.

    kind: "rule" and "setup.py" are requirements of the wheel; "installed", "doc", "pip log" and "wheel"
    are what somebody saw beside it. ``specifier`` is None where the value is not a PEP 440 specifier.
    """

    first: str
    last: str
    kind: str
    name: str
    value: str
    extra: str
    source: str
    specifier: SpecifierSet | None


def month_key(month: str) -> tuple[int, int]:
    """ "23.03" as a sortable (year, month). Raises ValueError."""
    year, _, number = month.partition(".")
    return int(year), int(number)


@cache
def releases() -> tuple[MonthlyRelease, ...]:
    """Every month of releases.csv, oldest first."""
    return tuple(_release(row) for row in table("releases"))


def by_wheel(version: str | Version) -> MonthlyRelease | None:
    """The month whose nvidia-tensorflow wheel has this version; ``+nv23.03`` equals ``+nv23.3``."""
    wanted = parse_version(version)
    if wanted is None:
        return None
    return next((release for release in releases() if release.wheel == wanted), None)


def by_month(month: str) -> MonthlyRelease | None:
    """The release of "23.03", or of "23.3"."""
    wanted = month_key(month)
    return next((release for release in releases() if month_key(release.month) == wanted), None)


def month_of(version: str | Version) -> str | None:
    """The month that a version's local part names: "23.03" for ``1.15.5+nv23.3``; None without one."""
    parsed = parse_version(version)
    found = re.fullmatch(r"nv(\d{2})\.(\d{1,2})(?:\..*)?", (parsed and parsed.local) or "")
    if found is None or not 1 <= int(found[2]) <= 12:
        return None
    return f"{found[1]}.{int(found[2]):02d}"


def nearest(version: str | Version) -> MonthlyRelease | None:
    """The wheel release closest in time to the month that the version names; None without a month."""
    month = month_of(version)
    if month is None:
        return None
    year, number = month_key(month)

    def distance(release: MonthlyRelease) -> tuple[int, int]:
        at_year, at_number = month_key(release.month)
        months = (at_year - year) * 12 + at_number - number
        return abs(months), months

    return min((release for release in releases() if release.wheel is not None), key=distance)


@cache
def sister(month: str) -> dict[str, str]:
    """What same-month containers say of ``month``: to be shown as "same-month base image" only."""
    return next((dict(row) for row in table("releases_sister") if row["release"] == month), {})


@cache
def dependencies(month: str) -> tuple[Dependency, ...]:
    """Every row of nvtf_deps.csv that covers this month."""
    key = month_key(month)
    return tuple(
        row for row in _all_dependencies() if month_key(row.first) <= key <= month_key(row.last)
    )


def rule(month: str, name: str) -> Dependency | None:
    """The rule by which the month's wheel requires the distribution ``name``, if it is known."""
    wanted = canonicalize_name(name)
    rows = (row for row in dependencies(month) if row.kind == "rule")
    return next((row for row in rows if wanted in _names(row)), None)


def allows(dependency: Dependency, built: str, installed: str | Version) -> bool | None:
    """Whether a rule such as ``~= <maj>.<min>`` lets ``installed`` stand beside a build with ``built``.

    None where the rule is not of that form, or a version cannot be read.
    """
    found = re.match(r"(>=|~=)\s*<maj>\.<min>", dependency.value)
    version, base = parse_version(installed), parse_version(built)
    if found is None or version is None or base is None:
        return None
    return version in SpecifierSet(f"{found[1]}{base.major}.{base.minor}", prereleases=True)


@cache
def _all_dependencies() -> tuple[Dependency, ...]:
    return tuple(
        Dependency(
            first=row["first_release"],
            last=row["last_release"],
            kind=row["kind"],
            name=row["requirement"],
            value=row["value"],
            extra=row["extra"],
            source=row["source"],
            specifier=_specifier(row["value"]),
        )
        for row in table("nvtf_deps")
    )


def _names(row: Dependency) -> set[str]:
    """The distribution names that a row stands for; a rule may leave the CUDA suffix open."""
    name = row.name.partition(" ")[0]
    if "<CUDA_MAJMIN>" in name:
        return {
            canonicalize_name(name.replace("<CUDA_MAJMIN>", f"11{minor}")) for minor in range(9)
        }
    return {canonicalize_name(name)}


def _release(row: dict[str, str]) -> MonthlyRelease:
    return MonthlyRelease(
        month=row["release"],
        wheel=parse_version(row["wheel_version"]),
        image_tf1=row["tag_tf1"],
        image_tf2=row["tag_tf2"],
        tf1=row["tf1_upstream"],
        tf2=row["tf2_upstream"],
        python=row["python"],
        cuda=row["cuda"],
        cublas=row["cublas"],
        cudnn=row["cudnn"],
        nccl=row["nccl"],
        tensorrt=row["tensorrt"],
        dali=row["wheel_dali"] or row["dali"],
        horovod=row["wheel_horovod"] or row["horovod"],
        notes=row["notes"],
        ubuntu=row["ubuntu"],
        min_driver=row["min_driver"],
        compat_branches=branches(row["compat_driver_branches"]),
        min_capability=row["min_cc"],
        sources=_sources(row["cell_sources"]),
    )


def branches(cell: str) -> tuple[str, ...]:
    """The driver branches of "418.xx;440.30"; none of an empty cell, which is not known."""
    return tuple(part.strip() for part in cell.split(";") if part.strip())


def _sources(cell: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in cell.split(";"))
    return {column.strip(): source.strip() for column, _, source in pairs if column.strip()}


def _specifier(value: str) -> SpecifierSet | None:
    """The specifier of ">=3.6.1,<4.0.0" or of "==0.27.0+nv23.03"; None for prose and bare versions."""
    text = re.split(r"[;(]", value)[0].strip()
    if not text or text[0] not in "<>=!~":
        return None
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None

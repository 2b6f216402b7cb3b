"""NVIDIA's TensorFlow containers, as the tables of releases have them: two flavours, a release a month.

The tables are envcheck/data's ``releases.csv`` and ``releases_sister.csv``. An empty value means that no
source was seen: it is shown as "not known", and nothing is decided by what the sisters say in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal

import msgspec

from ...data import releases as months
from ...exit_codes import UsageError

Flavour = Literal["tf1", "tf2"]
FLAVOURS: tuple[Flavour, ...] = ("tf1", "tf2")
OWN = "image"  # the stack of an image that its user names


class ImageRelease(msgspec.Struct, frozen=True, kw_only=True):
    """One month's container. "" and () are not known."""

    release: str  # "23.03"
    reference: str  # "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    tensorflow: str  # upstream's version
    python: str
    ubuntu: str
    cuda: str
    min_driver: str  # the oldest driver that needs no compat libcuda
    # Older ones for data-centre GPUs: "450.51" is branch 450 from 450.51 on, "418.xx" any of 418.
    compat_branches: tuple[str, ...]
    min_capability: str  # the least compute capability
    sister: dict[str, str] = {}  # what the same month's base image says of what is not known here
    source: str  # of its values


class ImageStack(msgspec.Struct, frozen=True, kw_only=True):
    """One flavour of NVIDIA's containers; or the stack of an image of one's own, without releases."""

    name: str  # "ngc-tf1", "image"
    title: str
    flavour: Literal["tf1", "tf2", ""]  # "" of one's own
    must_pass: list[str] = []  # checks of the doctor without which it is not installed
    environment: dict[str, str] = {}  # what the container is started with
    architectures: list[str] = []  # that the tables are about
    cpu_flags: list[str] = []  # that its code uses unasked
    releases: list[ImageRelease] = []  # newest first


def flavours() -> list[ImageStack]:
    """ngc-tf1 (20.06 to 23.03) and ngc-tf2 (20.06 to 25.02)."""
    return [stack(flavour) for flavour in FLAVOURS]


@cache
def stack(flavour: Flavour) -> ImageStack:
    number = flavour.removeprefix("tf")
    return ImageStack(
        name=f"ngc-{flavour}",
        title=f"NVIDIA's container with TensorFlow {number}",
        flavour=flavour,
        must_pass=["FRM-001", "FRM-002"],  # it imports, and it sees every GPU
        architectures=["x86_64"],
        cpu_flags=["avx"],
        releases=[
            _release(month, flavour)
            for month in reversed(months.releases())
            if _tag(month, flavour)
        ],
    )


def own() -> ImageStack:
    """The stack of an image that its user names: it need not have TensorFlow at all."""
    return ImageStack(name=OWN, title="an image of your own", flavour="")


def unlisted(reference: str, tag: str) -> ImageRelease:
    """The release of an image of which no table says anything."""
    return ImageRelease(
        release=tag,
        reference=reference,
        tensorflow="",
        python="",
        ubuntu="",
        cuda="",
        min_driver="",
        compat_branches=(),
        min_capability="",
        source="",
    )


def by_reference(reference: str) -> tuple[ImageStack, ImageRelease] | None:
    """NVIDIA's release behind a reference, whatever digest it ends in; None where it is another image."""
    tagged = reference.partition("@")[0]
    for each in flavours():
        for release in each.releases:
            if release.reference == tagged:
                return each, release
    return None


def _tag(month: months.MonthlyRelease, flavour: Flavour) -> str:
    return month.image_tf1 if flavour == "tf1" else month.image_tf2


def _release(month: months.MonthlyRelease, flavour: Flavour) -> ImageRelease:
    own = {
        "TensorFlow": month.tf1 if flavour == "tf1" else month.tf2,
        "Python": month.python,
        "Ubuntu": month.ubuntu,
        "CUDA": month.cuda,
        "driver": month.min_driver,
        "compat branches": ", ".join(month.compat_branches),
        "compute capability": month.min_capability,
    }
    return ImageRelease(
        release=month.month,
        reference=_tag(month, flavour),
        tensorflow=own["TensorFlow"],
        python=month.python,
        ubuntu=month.ubuntu,
        cuda=month.cuda,
        min_driver=month.min_driver,
        compat_branches=month.compat_branches,
        min_capability=month.min_capability,
        sister={name: value for name, value in _sister(month, flavour).items() if not own[name]},
        source=_source(month),
    )


def _sister(month: months.MonthlyRelease, flavour: Flavour) -> dict[str, str]:
    """What the other containers of the month say; their TensorFlow is always the second."""
    row = months.sister(month.month)
    said = {
        "driver": row.get("min_driver", ""),
        "compat branches": ", ".join(months.branches(row.get("compat_driver_branches", ""))),
        "compute capability": row.get("min_cc", ""),
        "CUDA": row.get("cuda", ""),
        "TensorFlow": row.get("tf2_upstream", "") if flavour == "tf2" else "",
        "Python": row.get("python", ""),
        "Ubuntu": row.get("ubuntu", ""),
    }
    return {name: value for name, value in said.items() if value}


def _source(month: months.MonthlyRelease) -> str:
    columns = ("min_driver", "compat", "min_cc", "cuda", "python", "ubuntu")
    cells = [f"{name}={month.sources[name]}" for name in columns if name in month.sources]
    return "releases.csv" + (f" ({', '.join(cells)})" if cells else "")


def among(name: str, flavour: str) -> list[ImageStack]:
    """The stacks of this name and flavour, "" for any. Raises UsageError where there is none."""
    known = flavours()
    names = [stack.name for stack in known]
    if name and name not in names:
        raise UsageError(
            f'no stack "{name}" among the containers: there are {" and ".join(names)}',
            "--flavour tf1 or tf2 names one; --image REF takes any other image",
        )
    left = [stack for stack in known if flavour in ("", stack.flavour) and name in ("", stack.name)]
    if not left:
        raise UsageError(f"--flavour {flavour} is not {name}: name one of both")
    return left


def find(left: Sequence[ImageStack], release: str) -> list[ImageRelease]:
    """The releases of that name: one of each stack at most. Raises UsageError, naming the nearest."""
    found = [one for stack in left for one in stack.releases if _is(one, release)]
    if not found:
        raise _no_release(left, release)
    return found


def _is(release: ImageRelease, asked: str) -> bool:
    """By "23.03", "23.3", or its tag: "23.03-tf1-py3"."""
    wanted = _month(asked)
    tag = release.reference.rpartition(":")[2]
    return asked == tag or (wanted is not None and months.month_key(release.release) == wanted)


def _month(text: str) -> tuple[int, int] | None:
    try:
        year, number = months.month_key(text)
    except ValueError:
        return None
    return (year, number) if 1 <= number <= 12 else None


def _no_release(left: Sequence[ImageStack], asked: str) -> UsageError:
    wanted = _month(asked)
    names = {release.release for stack in left for release in stack.releases}
    if wanted is None:
        ordered = sorted(names, key=months.month_key)
        near = f"a release is a month, {ordered[0]} to {ordered[-1]}"
    else:
        near = f"the nearest: {' and '.join(_nearest(names, wanted))}"
    elsewhere = [
        f"--flavour {stack.flavour} has it"
        for stack in flavours()
        if any(_is(release, asked) for release in stack.releases)
    ]
    among = f"{left[0].name} has" if len(left) == 1 else "the containers have"
    return UsageError(
        f'{among} no release "{asked}"; {near}',
        "; ".join([*elsewhere, "`envcheck releases --mode container` shows all of them"]),
    )


def _nearest(names: Iterable[str], wanted: tuple[int, int]) -> list[str]:
    """The two months nearest in time, the older first."""

    def in_months(name: str) -> int:
        year, number = months.month_key(name)
        return year * 12 + number

    at = wanted[0] * 12 + wanted[1]
    near = sorted(sorted(names, key=in_months), key=lambda name: abs(in_months(name) - at))
    return sorted(near[:2], key=in_months)

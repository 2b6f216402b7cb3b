"""NVIDIA's containers with TensorFlow, PyTorch and JAX, as the tables have them: a release a month.

The tables are envcheck/data's ``releases.csv`` and ``containers.csv``. An empty value means that no source
was seen: it is shown as "not known".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

import msgspec

from ...data import releases as months
from ...data import table
from ...exit_codes import UsageError

Flavour = Literal["tf1", "tf2", "torch", "jax"]
FRAMEWORKS: dict[Flavour, str] = {
    "tf1": "TensorFlow 1",
    "tf2": "TensorFlow 2",
    "torch": "PyTorch",
    "jax": "JAX",
}
_UNNAMED: tuple[Flavour, ...] = ("tf2", "tf1")  # where none is named, the first that fits
_REGISTRY = "nvcr.io/nvidia"
OWN = "image"  # the stack of an image that its user names


class ImageRelease(msgspec.Struct, frozen=True, kw_only=True):
    """One month's container. "" and () are not known."""

    release: str  # "23.03"
    reference: str  # "nvcr.io/nvidia/tensorflow:23.03-tf1-py3"
    framework: str = ""  # upstream's version
    python: str = ""
    ubuntu: str = ""
    cuda: str = ""
    min_driver: str = ""  # the oldest driver that needs no compat libcuda
    # Older ones for data-centre GPUs: "450.51" is branch 450 from 450.51 on, "418.xx" any of 418.
    compat_branches: tuple[str, ...] = ()
    min_capability: str = ""  # the least compute capability
    source: str = ""  # of its values


class ImageStack(msgspec.Struct, frozen=True, kw_only=True):
    """One flavour of NVIDIA's containers; or the stack of an image of one's own, without releases."""

    name: str  # "ngc-tf1", "image"
    title: str
    flavour: Literal["tf1", "tf2", "torch", "jax", ""]  # "" of one's own
    must_pass: list[str] = []  # checks of the doctor without which it is not installed
    environment: dict[str, str] = {}  # what the container is started with
    architectures: list[str] = []  # that the tables are about
    cpu_flags: list[str] = []  # that its code uses unasked
    releases: list[ImageRelease] = []  # newest first

    @property
    def framework(self) -> str:
        """ "TensorFlow", "PyTorch"; "" of one's own, which need not have any."""
        return FRAMEWORKS[self.flavour].split()[0] if self.flavour else ""


def flavours() -> list[ImageStack]:
    """All of NVIDIA's."""
    return [stack(flavour) for flavour in FRAMEWORKS]


@cache
def stack(flavour: Flavour) -> ImageStack:
    found = [*_monthly(flavour), *_listed(flavour)]
    return ImageStack(
        name=f"ngc-{flavour}",
        title=f"NVIDIA's container with {FRAMEWORKS[flavour]}",
        flavour=flavour,
        must_pass=["FRM-001", "FRM-002"],  # it imports, and it sees every GPU
        architectures=["x86_64"],
        cpu_flags=["avx"] if flavour in _UNNAMED else [],
        releases=sorted(found, key=lambda one: months.month_key(one.release), reverse=True),
    )


def own() -> ImageStack:
    """The stack of an image that its user names: it need not have a framework at all."""
    return ImageStack(name=OWN, title="an image of your own", flavour="")


def by_reference(reference: str) -> tuple[ImageStack, ImageRelease] | None:
    """NVIDIA's release behind a reference, whatever digest it ends in; None where it is another image."""
    tagged = reference.partition("@")[0]
    for each in flavours():
        for release in each.releases:
            if release.reference == tagged:
                return each, release
    return None


def _monthly(flavour: Flavour) -> Iterator[ImageRelease]:
    """Those of releases.csv, which says of each cell where it is from."""
    columns = ("min_driver", "compat", "min_cc", "cuda", "python", "ubuntu")
    for row, month in zip(table("releases"), months.releases(), strict=True):
        if reference := row.get(f"tag_{flavour}", ""):
            cells = [f"{name}={month.sources[name]}" for name in columns if name in month.sources]
            source = "releases.csv" + (f" ({', '.join(cells)})" if cells else "")
            own = {**row, "framework": row[f"{flavour}_upstream"], "source": source}
            yield _release(reference, own)


def _listed(flavour: Flavour) -> Iterator[ImageRelease]:
    """Those of containers.csv, a source a row."""
    for row in table("containers"):
        if row["stack"] == flavour:
            yield _release(f"{_REGISTRY}/{row['tag']}", row)


def _release(reference: str, row: Mapping[str, str]) -> ImageRelease:
    same = ("release", "framework", "python", "ubuntu", "cuda", "min_driver", "source")
    return ImageRelease(
        **{name: row[name] for name in same},
        reference=reference,
        compat_branches=months.branches(row["compat_driver_branches"]),
        min_capability=row["min_cc"],
    )


def among(flavour: Flavour | Literal[""]) -> list[ImageStack]:
    """The stacks of this flavour; "" for those of which the first that fits is taken."""
    return [stack(one) for one in ([flavour] if flavour else _UNNAMED)]


def find(stacks: Sequence[ImageStack], release: str) -> list[ImageRelease]:
    """The releases of that name: one of each stack at most. Raises UsageError."""
    found = [one for stack in stacks for one in stack.releases if _is(one, release)]
    if not found:
        names = sorted({one.release for stack in stacks for one in stack.releases})
        others = [
            one.name for one in flavours() if any(_is(each, release) for each in one.releases)
        ]
        raise UsageError(
            f'there is no container "{release}" among {" and ".join(sorted(one.name for one in stacks))}: a'
            f" release is a month, {names[0]} to {names[-1]}",
            f"{others[0]} has it" if others else "`envcheck releases --mode container` shows all",
        )
    return found


def _is(release: ImageRelease, asked: str) -> bool:
    """By "23.03", "23.3", or its tag: "23.03-tf1-py3"."""
    try:
        month = months.month_key(asked)
    except ValueError:
        return asked == release.reference.rpartition(":")[2]
    return months.month_key(release.release) == month

"""NVIDIA's containers, judged for one machine: as a table for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ...reports.page import Page
from ..fit.models import ImageCandidate, ImageFit, Refusal
from .release_table import NOT_KNOWN, about, as_json, fits, nothing, table, three

SCHEMA = 1

_COLUMNS = ("RELEASE", "FITS", "DRIVER", "CAPABILITY", "CUDA", "TF", "PYTHON")
_DECIDING = ("driver", "compat branches", "compute capability")


class ImageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One month's container. "" is not known. ``fits``: "if-named": only when its user names it;
    "perhaps": nothing speaks against it, and not everything is known of the machine."""

    release: str
    reference: str
    fits: str  # "yes", "no", "if-named", "perhaps"
    driver: str  # the oldest that needs no compat libcuda
    compat_branches: list[str]  # older ones for data-centre GPUs; empty: not known
    capability: str  # the least compute capability
    cuda: str
    tensorflow: str
    python: str
    ubuntu: str
    sister: dict[str, str]  # what the same month's base image says of what is not known here
    refusals: list[Refusal] = []
    notes: list[str] = []


class ImageRows(msgspec.Struct, frozen=True, kw_only=True):
    """One flavour."""

    name: str
    flavour: str
    title: str
    newest_that_fits: str  # "" where none does
    releases: list[ImageRow]


class ImageChosen(msgspec.Struct, frozen=True, kw_only=True):
    """What a command would take, and into which engine; ``refused`` says why it would take nothing."""

    command: str = "envcheck install --mode container"
    stack: str = ""
    release: str = ""
    reference: str = ""
    engine: str = ""
    reasons: list[str] = []
    refused: str = ""
    hint: str = ""


class ImageReleases(msgspec.Struct, frozen=True, kw_only=True):
    """The whole matrix."""

    schema: int
    mode: str
    machine: str
    chosen: ImageChosen
    others: list[ImageChosen]  # the commands that name a flavour, and what they would take
    stacks: list[ImageRows]


def build(
    machine: str,
    judged: Iterable[ImageFit],
    chosen: ImageChosen,
    others: Sequence[ImageChosen] = (),
) -> ImageReleases:
    return ImageReleases(
        schema=SCHEMA,
        mode="container",
        machine=machine,
        chosen=chosen,
        others=list(others),
        stacks=[_stack(one) for one in judged],
    )


def render_json(releases: ImageReleases) -> str:
    return as_json(releases)


def render(
    releases: ImageReleases,
    *,
    everything: bool = False,
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
) -> str:
    """The tables, each with what its short words mean; ``everything``: all releases."""
    page = Page(width=width, colour=colour, utf8=utf8)
    page.paragraph((releases.machine or "a machine of which nothing is known", "heading"))
    for stack in releases.stacks:
        page.blank()
        table(page, _COLUMNS, stack, _values, everything=everything, more=_told)
    page.blank()
    _choice(page, releases)
    return page.text()


def _stack(judged: ImageFit) -> ImageRows:
    best = judged.best
    return ImageRows(
        name=judged.stack.name,
        flavour=judged.stack.flavour,
        title=judged.stack.title,
        newest_that_fits="" if best is None else best.release.release,
        releases=[_row(candidate) for candidate in judged.candidates],
    )


def _row(candidate: ImageCandidate) -> ImageRow:
    release = candidate.release
    return ImageRow(
        release=release.release,
        reference=release.reference,
        fits=fits(candidate),
        driver=release.min_driver,
        compat_branches=list(release.compat_branches),
        capability=release.min_capability,
        cuda=release.cuda,
        tensorflow=release.tensorflow,
        python=release.python,
        ubuntu=release.ubuntu,
        sister=release.sister,
        refusals=candidate.refusals,
        notes=candidate.notes,
    )


def _values(row: ImageRow) -> tuple[str, ...]:
    told = (row.driver, row.capability, three(row.cuda), row.tensorflow, row.python)
    return (row.release, row.fits.replace("-", " "), *(text or NOT_KNOWN for text in told))


def _told(shown: Sequence[ImageRow]) -> dict[str, str]:
    return _compat(shown) | _sisters(shown)


def _compat(rows: Sequence[ImageRow]) -> dict[str, str]:
    """The compat branches, which no column is wide enough for."""
    return about(
        rows,
        [
            [f"data-centre GPUs may have driver branches {', '.join(row.compat_branches)}, too"]
            if row.compat_branches
            else []
            for row in rows
        ],
    )


def _sisters(rows: Sequence[ImageRow]) -> dict[str, str]:
    """What decides about a driver, where only the same month's base image says it."""
    told = []
    for row in rows:
        values = [f"{name} {row.sister[name]}" for name in _DECIDING if name in row.sister]
        says = f"same-month base image, not confirmed: {'; '.join(values)}"
        told.append([says] if {"driver", "compat branches"} & row.sister.keys() else [])
    return about(rows, told)


def _choice(page: Page, releases: ImageReleases) -> None:
    for one in [releases.chosen, *releases.others]:
        if not one.refused:
            page.command(one.command)
            into = f" into {one.engine}" if one.engine else ""
            page.paragraph(
                ("would install", ""),
                (one.reference, "pass"),
                (f"{into.strip()}:" if into else "since", ""),
                ("; ".join(one.reasons) + ".", ""),
                indent=2,
            )
    if releases.chosen.refused:
        nothing(page, releases.chosen, hint=not releases.others)

"""The releases that could be installed, judged for one machine: as a table for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from ...reports.page import Page
from ..fit.gpu_rules import needed_driver
from ..fit.models import Candidate, Refusal, StackFit
from ..pythons.interpreter import number
from .release_table import NOT_KNOWN, as_json, fits, nothing, table, three

SCHEMA = 1

_COLUMNS = ("RELEASE", "FITS", "PYTHON", "CUDA", "DRIVER")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One release. "" is not known. ``fits``: "if-named": only when its user names it; "perhaps":
    nothing speaks against it, and not everything is known of the machine."""

    release: str
    version: str
    fits: str  # "yes", "no", "if-named", "perhaps"
    python: list[str]
    cuda: str
    cudnn: str
    tensorrt: str
    driver: str  # the oldest that runs its CUDA
    interpreter: str = ""  # the one that it would get
    python_to_get: str = ""
    refusals: list[Refusal] = []
    notes: list[str] = []


class StackRows(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    gpu: bool
    newest_that_fits: str  # "" where none does
    releases: list[Row]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What a command would take; ``refused`` says why it would take nothing."""

    command: str = "envcheck install"
    stack: str = ""
    release: str = ""
    python: str = ""  # the interpreter, or the version that would be got
    reasons: list[str] = []
    refused: str = ""
    hint: str = ""


class Releases(msgspec.Struct, frozen=True, kw_only=True):
    """The whole matrix. ``otherwise`` is taken where the index of ``chosen`` does not answer; ``others`` are
    the commands that name a stack, and what they would take."""

    schema: int
    machine: str
    chosen: Chosen
    otherwise: Chosen | None
    others: list[Chosen]
    stacks: list[StackRows]


def build(
    machine: str,
    stacks: Iterable[StackFit],
    chosen: Chosen,
    otherwise: Chosen | None,
    others: Sequence[Chosen] = (),
) -> Releases:
    return Releases(
        schema=SCHEMA,
        machine=machine,
        chosen=chosen,
        otherwise=otherwise,
        others=list(others),
        stacks=[_stack(judged) for judged in stacks],
    )


def render_json(releases: Releases) -> str:
    return as_json(releases)


def render(
    releases: Releases,
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
        values = partial(_values, gpu=stack.gpu)
        table(page, _COLUMNS, stack, values, everything=everything)
    page.blank()
    _choice(page, releases)
    return page.text()


def _stack(judged: StackFit) -> StackRows:
    best = judged.best
    return StackRows(
        name=judged.stack.name,
        title=judged.stack.title,
        gpu=judged.stack.gpu,
        newest_that_fits="" if best is None else best.release.release,
        releases=[_row(candidate, judged.stack.gpu) for candidate in judged.candidates],
    )


def _row(candidate: Candidate, gpu: bool) -> Row:
    release, refusals = candidate.release, candidate.refusals
    return Row(
        release=release.release,
        version=release.version,
        fits=fits(candidate),
        python=release.python,
        cuda=release.cuda,
        cudnn=release.cudnn,
        tensorrt=release.tensorrt,
        driver=needed_driver(release.cuda) if gpu else "",
        interpreter="" if candidate.interpreter is None else candidate.interpreter.path,
        python_to_get=candidate.python_to_get,
        refusals=refusals,
        notes=candidate.notes,
    )


def _values(row: Row, gpu: bool) -> tuple[str, ...]:
    return (
        row.release,
        row.fits.replace("-", " "),
        pythons(row.python) or NOT_KNOWN,
        three(row.cuda) or (NOT_KNOWN if gpu else "none"),
        row.driver or (NOT_KNOWN if gpu else "none"),
    )


def pythons(minors: Sequence[str]) -> str:
    """ "3.9–3.12" for four minor versions, "3.8, 3.10" for two apart."""
    ranges: list[list[str]] = []
    for minor in sorted(minors, key=number):
        if ranges and number(minor)[1] == number(ranges[-1][-1])[1] + 1:
            ranges[-1].append(minor)
        else:
            ranges.append([minor])
    return ", ".join(f"{these[0]}–{these[-1]}" if len(these) > 1 else these[0] for these in ranges)


def _choice(page: Page, releases: Releases) -> None:
    chosen, otherwise = releases.chosen, releases.otherwise
    for one in [chosen, *releases.others]:
        if not one.refused:
            page.command(one.command)
            _taken(page, one, otherwise if one is chosen else None)
    if chosen.refused:
        nothing(page, chosen, hint=not releases.others)


def _taken(page: Page, chosen: Chosen, otherwise: Chosen | None) -> None:
    words = [("would install", ""), (f"{chosen.stack} {chosen.release}", "pass")]
    if chosen.python:
        words.append((f"on {chosen.python}", ""))
    if otherwise is not None:
        instead = "nothing" if otherwise.refused else f"{otherwise.stack} {otherwise.release}"
        words.append((f"if its index answers, else {instead}", ""))
    why = "; ".join(chosen.reasons)
    last, style = words[-1]
    words[-1] = (f"{last}:" if why else f"{last}.", style)
    page.paragraph(*words, (f"{why}." if why else "", ""), indent=2)

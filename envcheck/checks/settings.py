"""Settings of programs and of the kernel: what they are called, how they are changed, which are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..data.settings import WrongSetting, wrong_settings
from ..facts.base import ProgramSetting
from ..facts.view import SnapshotView
from .system_commands import on_system
from .verdicts import Cause, Finding, Remedy, Subject, about, about_file, word

ENVIRONMENT = "environment"  # a setting's source
Conditions = Mapping[
    str, Callable[[], Any]
]  # what each is of, for the sentence; nothing: it does not hold


def table_causes(check: str) -> dict[WrongSetting, Cause]:
    """The causes of a check that are rows of settings.csv."""
    return {
        row: Cause(
            row.key,
            row.severity,  # type: ignore[arg-type]  # the table's test knows them
            row.headline,
            row.sentence,
            source=row.source,
        )
        for row in wrong_settings(check)
    }


def in_words(one: ProgramSetting) -> str:
    """ "NCCL_P2P_DISABLE=1 (in /etc/nccl.conf)" """
    place = "" if one.source == ENVIRONMENT else f" (in {one.source})"
    return f"{one.name}={one.value}{place}"


def about_setting(one: ProgramSetting) -> list[Subject]:
    """The variable, or the file that has a setting of another kind."""
    return about_file(one.source) if "." in one.name else about("variable", one.name)


def change_setting(one: ProgramSetting, text: str, value: str = "") -> Remedy:
    """How to set it to something else, or to nothing, where it was set."""
    if one.source != ENVIRONMENT:
        line = f"{one.name}={value}" if value else ""
        how = f"write {line}" if line else f"take the line {one.name} out"
        return Remedy(f"{text}: {how} in {one.source}.", [f"sudoedit {word(one.source)}"])
    command = f"export {one.name}={word(value)}" if value else f"unset {one.name}"
    return Remedy(f"{text}, also where a job's script or an image sets it.", [command])


def wrong_here(
    view: SnapshotView,
    causes: Mapping[WrongSetting, Cause],
    fact: str,
    settings: Iterable[ProgramSetting],
    conditions: Conditions,
) -> Iterator[Finding]:
    """What is found of a check's rows; ``fact``: where the settings stand in the Snapshot."""
    judged: set[str] = set()
    for row, cause in causes.items():
        for one in settings:
            if one.name in judged or not row.fits(one):
                continue
            here = [conditions[name]() for name in row.when]
            if not all(here):
                continue
            judged.add(one.name)
            advice = change_setting(one, row.remedy.rstrip("."), row.value)
            if row.commands:
                advice = Remedy(row.remedy, list(_commands(view, row, one)))
            yield cause.found(
                about_setting(one),
                [view.evidence(fact, in_words(one))],
                advice=advice,
                setting=in_words(one),
                value=one.value,
                place=one.source,
                here=here[-1] if here and isinstance(here[-1], str) else "",
            )


def _commands(view: SnapshotView, row: WrongSetting, one: ProgramSetting) -> Iterator[str]:
    """ "@WHAT" stands for the system's own commands."""
    for command in row.commands:
        if command.startswith("@"):
            yield from on_system(view, command[1:])
        else:
            yield command.replace("{place}", word(one.source))

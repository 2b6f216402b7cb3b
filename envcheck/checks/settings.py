"""Settings of programs and of the kernel: what they are called, how they are changed, which are wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..facts.base import ProgramSetting
from ..facts.view import SnapshotView
from .system_commands import on_system
from .verdicts import DeclaredRow, Finding, Params, Remedy, Subject, about, about_file, word

ENVIRONMENT = "environment"  # a setting's source
# What each is of: {here} of the sentence, or a mapping of parameters; nothing: it does not hold.
Conditions = Mapping[str, Callable[[], Any]]


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
    rows: Iterable[DeclaredRow],
    fact: str,
    settings: Iterable[ProgramSetting],
    conditions: Conditions,
) -> Iterator[Finding]:
    """What is found of a check's rows; ``fact``: where the settings stand in the Snapshot."""
    judged: set[str] = set()
    for row in rows:
        for one in settings:
            if one.name in judged or not _fits(row, one):
                continue
            here = [conditions[name]() for name in row.when]
            if not all(here):
                continue
            judged.add(one.name)
            params: Params = {"variable": one.name, "value": one.value, "place": one.source}
            params |= {"setting": in_words(one), "here": ""}
            for more in here:
                named = {"here": more} if isinstance(more, str) else {}
                params |= more if isinstance(more, dict) else named
            advice = change_setting(one, row.cause.remedy.rstrip("."), row.value)
            if row.steps:
                advice = Remedy(row.cause.remedy, list(_commands(view, row.steps, params)))
            yield row.cause.found(
                about_setting(one),
                [view.evidence(fact, in_words(one))],
                advice=advice,
                **params,
            )


def _fits(row: DeclaredRow, one: ProgramSetting) -> bool:
    if row.pattern == "missing":  # what it names
        return one.name in row.names and one.missing
    whole = re.fullmatch(row.pattern, one.value.strip(), re.IGNORECASE)
    return one.name in row.names and whole is not None


def _commands(view: SnapshotView, steps: Iterable[str], params: Params) -> Iterator[str]:
    """ "@WHAT" stands for the system's own commands."""
    for step in steps:
        if step.startswith("@"):
            yield from on_system(view, step[1:])
            continue
        for name in ("place", "variable", "right"):
            step = step.replace(f"{{{name}}}", word(str(params.get(name, ""))))
        yield step

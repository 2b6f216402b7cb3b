"""Looks at the machines before a roll-out: a Snapshot of each, and which Pythons it has."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ... import json_text
from ...facts import snapshot as snapshots
from ...install.pythons import probe
from .. import folder as fleet_folder
from ..engines import Asked
from ..engines.ansible import CONTENT, Event, Inventory, run_playbook
from ..engines.ansible_collect import ask
from ..engines.collecting import Members
from ..folder import FleetFolder, Member
from .planning import Surveyed, interpreters

DEADLINE = 120.0  # seconds that a machine may take for its Snapshot

_PYTHONS = CONTENT / "pythons.yml"
_NO_PYTHONS = "what Pythons it has could not be asked"


def look(folder: FleetFolder, inventory: Inventory, say: Callable[[str], None]) -> list[Surveyed]:
    """Every machine of the inventory, in its order; only where asked. Raises EnvcheckError."""
    say("asking the machines what they are")
    asked = Members(folder, Asked(["--level=quick"], DEADLINE), lambda member: None)
    with asked.roster("ansible"):
        ask(asked, inventory, say)
    members = list(asked.found.values())
    answered = [member.name for member in members if member.outcome == "answered"]
    say("asking the machines for their Pythons")
    pythons = _pythons(inventory, answered) if answered else {}
    return [_surveyed(folder, member, pythons) for member in members]


def added(inventory: Inventory, group: str, tree: Mapping[str, Any], folder: Path) -> Inventory:
    """The user's inventory and a group of ours, written into a file of that directory."""
    path = folder / f"{group}.yaml"
    path.write_bytes(msgspec.json.format(msgspec.json.encode({group: tree})) + b"\n")
    return inventory._replace(sources=[*inventory.sources, str(path)])


class _PythonsAnswer(msgspec.Struct):
    """What our action says of a machine: each Python's path, and its answer."""

    pythons: list[tuple[str, str]]


def _pythons(inventory: Inventory, names: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """What each machine answered about its Pythons."""
    found: dict[str, list[tuple[str, str]]] = {}

    def on_event(event: Event) -> None:
        if event.event == "result" and event.state == "ok":
            with suppress(json_text.NotReadable):
                answer = json_text.read(event.answer.encode(), _PythonsAnswer)
                found[event.host] = answer.pythons

    with tempfile.TemporaryDirectory(prefix="envcheck-") as folder:
        tree: dict[str, Any] = {"hosts": {name: {} for name in names}}
        asked = added(inventory, "envcheck_answered", tree, Path(folder))
        variables = {
            "envcheck_hosts": "envcheck_answered",
            "envcheck_python_script": probe.script(),
        }
        run_playbook(_PYTHONS, asked, variables, on_event)
    return found


def _surveyed(
    folder: FleetFolder, member: Member, pythons: Mapping[str, list[tuple[str, str]]]
) -> Surveyed:
    if member.outcome != "answered":
        return Surveyed(member.name, None, [], member.reason or member.outcome)
    try:
        snapshot = snapshots.load(fleet_folder.read(folder.file(member.name)))
    except snapshots.SnapshotError as error:
        return Surveyed(member.name, None, [], str(error))
    if member.name not in pythons:
        return Surveyed(member.name, None, [], _NO_PYTHONS)
    return Surveyed(member.name, snapshot, interpreters(member.name, pythons[member.name]))

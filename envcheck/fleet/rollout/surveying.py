"""Looks at the machines before a roll-out: a Snapshot of each, and which Pythons it has."""

from __future__ import annotations

import base64
from collections.abc import Callable

from ...facts import snapshot as snapshots
from ...install.pythons import probe
from .. import folder as fleet_folder
from ..engines import Asked
from ..engines.ansible import Inventory
from ..engines.ansible_collect import ask
from ..engines.collecting import Members
from ..engines.relay import one_line
from ..folder import FleetFolder, Member
from .planning import Surveyed, interpreters

DEADLINE = 120.0  # seconds that a machine may take
_MARK = b"\n@envcheck python "


def look(folder: FleetFolder, inventory: Inventory, say: Callable[[str], None]) -> list[Surveyed]:
    """Every machine of the inventory, in its order; only where asked. Raises EnvcheckError."""
    script = base64.b64encode(probe.script().encode()).decode()
    pythons = f"SCRIPT=$(echo {script} | base64 -d); {one_line('pythons.sh')}"
    asked = _Survey(folder, Asked(["--level=quick"], DEADLINE, afterwards=pythons))
    with asked.roster("ansible"):
        ask(asked, inventory, say)
    return [asked.surveyed(member) for member in asked.found.values()]


class _Survey(Members):
    """After a machine's Snapshot, each of its Pythons' path and answer follows."""

    def __init__(self, folder: FleetFolder, asked: Asked) -> None:
        super().__init__(folder, asked, lambda member: None)
        self._pythons: dict[str, list[list[str]]] = {}

    def keep(self, name: str, groups: list[tuple[str, str]], answer: bytes) -> None:
        snapshot, *pythons = answer.split(_MARK)
        texts = (one.decode("utf-8", "replace").partition("\n") for one in pythons)
        self._pythons[name] = [[path, printed] for path, _, printed in texts]
        super().keep(name, groups, snapshot)

    def surveyed(self, member: Member) -> Surveyed:
        if member.outcome != "answered":
            return Surveyed(member.name, None, [], member.reason or member.outcome)
        try:
            snapshot = snapshots.load(fleet_folder.read(self.folder.file(member.name)))
        except snapshots.SnapshotError as error:
            return Surveyed(member.name, None, [], str(error))
        return Surveyed(
            member.name, snapshot, interpreters(member.name, self._pythons[member.name])
        )

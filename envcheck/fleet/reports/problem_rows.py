"""The table that a fleet's page begins with: a row for each problem, those of one place first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...reports.html import PageSection
from ...reports.plain import devices_named
from .. import hosts
from ..model import FleetResult, ProblemGroup, SharedFault
from . import words
from .sections import STATES, names_of


def problem_table(result: FleetResult, pages: Mapping[str, str]) -> PageSection:
    """pages: {machine: the address of its page}."""
    rows = [_of_group(group, result, pages) for group in result.groups]
    joined = [fault for row in rows for fault in row["places"]]
    of_places = [_of_place(fault) for fault in result.shared if fault not in joined]
    rows = [*of_places, *sorted(rows, key=lambda row: not row["places"])]
    data = {"rows": rows, "words": words}
    return PageSection("problems", "What is wrong", "fleet.html", data, str(len(rows)))


def _of_group(group: ProblemGroup, result: FleetResult, pages: Mapping[str, str]) -> dict[str, Any]:
    devices = {
        devices_named(map(words.short_device, problem.devices))
        for machine in result.machines
        if machine.name in group.machines
        for problem in machine.problems
        if (problem.code, problem.cause) == (group.code, group.cause)
    }
    state = "broken" if group.level == "fail" else "degraded" if group.degrades else "warned"
    return _names(group.machines) | {
        "state": STATES[state],
        "group": group,
        "since": words.minute(group.first_seen),
        "page": pages.get(group.machines[0], "") if len(group.machines) == 1 else "",
        "devices": devices.pop() if len(devices) == 1 else "",
        "places": [
            fault
            for fault in result.shared
            if (fault.about, fault.code) == ("problem", group.code)
            and set(fault.machines) <= set(group.machines)
        ],
    }


def _of_place(fault: SharedFault) -> dict[str, Any]:
    """What the machines of a place have in common, where it is no group of its own."""
    kinds = {"silence": "silent", "slow": "degraded", "problem": "broken"}
    row = {"state": STATES[kinds[fault.about]], "fault": fault, "group": None, "places": []}
    return _names(fault.machines) | row | dict.fromkeys(("page", "devices", "since"), "")


def _names(machines: Sequence[str]) -> dict[str, Any]:
    short, folded = names_of(machines), hosts.folded(machines)
    return {"names": short, "all_names": folded if folded != short else ""}

"""What a network run says of the machines of a fleet, as problems beside those of their Snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from msgspec.structs import replace

from ... import __version__
from ...exit_codes import UsageError
from ...findings.states import State
from .. import hosts
from ..folder import NETWORK
from ..model import JudgedMachine, MachineProblem
from . import running
from .causes import CAUSE, CHECK, CODE
from .model import SCHEMA, NetworkFinding, NetworkResult
from .result import result

_STATES: tuple[State, ...] = get_args(State)
_OF_FINDING = ("cause", "level", "degrades", "message", "remedy", "commands")


def judged(folder: Path) -> NetworkResult | None:
    """The result of the directory's network.json; None where there is none. What cannot be judged is a
    result that says why."""
    file = folder / NETWORK
    if not file.exists():
        return None
    try:
        return result(running.read(file))
    except UsageError as error:
        why = f"{NETWORK} cannot be read: {str(error).removeprefix(f'{file}: ')}"
    except Exception as error:  # noqa: BLE001 - whatever is in that file, the machines are judged
        why = f"envcheck crashed on {NETWORK}: {type(error).__name__}: {error}"
    nothing: Any = {key: [] for key in ("findings", "silent", "machines", "together")}
    nothing |= {"schema": SCHEMA, "envcheck": __version__}
    return NetworkResult(verdict=why, outcome="could-not-run", **nothing)


def with_network(machines: Sequence[JudgedMachine], found: NetworkResult) -> list[JudgedMachine]:
    """The machines with what is named of them, and those that have no Snapshot."""
    every = {one.name: one for one in machines}
    for rates in found.machines:
        why = f"there is no Snapshot of it, only {NETWORK} has it"
        only = JudgedMachine(name=rates.name, state="silent", reason=why, verdict="silent")
        every.setdefault(rates.name, only)
    for one in found.findings:
        for name in every.keys() & one.machines:
            every[name] = _with(every[name], one)
    return [every[name] for name in hosts.natural(every)]


def _with(machine: JudgedMachine, found: NetworkFinding) -> JudgedMachine:
    own: State = "healthy"
    own = "broken" if found.level == "fail" else "degraded" if found.degrades else own
    state = min(own, machine.state, key=_STATES.index)
    before = f"{machine.verdict}; " if state == machine.state else f"{state}: "
    several = bool(CAUSE[found.cause].cases)
    problem = MachineProblem(
        code=CODE,
        title=CHECK.title,
        headline=f"{'two machines' if several else 'a machine'} {found.headline}",
        kind=" ".join([CODE, found.cause, *(sorted(found.machines) if several else [])]),
        **{name: getattr(found, name) for name in _OF_FINDING},
    )
    return replace(
        machine,
        state=state,
        verdict=f"{before}{found.headline}",
        problems=[*machine.problems, problem],
    )

"""From what all pairs did to causes: the machine, the pair, the direction, the rail. Pure."""

from __future__ import annotations

import msgspec

from .clocks import clocks
from .failures import damaged, failing, hanging
from .judged import Judged
from .links import links
from .model import NetworkRun
from .rates import slow_machines, slow_pairs, slow_rails

# In this order: of a machine that is named, the later ones see no pair.
_STEPS = (hanging, failing, damaged, clocks, slow_machines, slow_rails, slow_pairs, links)


def judge(run: NetworkRun) -> Judged:
    """What is wrong."""
    suspects: set[str] = set()
    if len(run.passes) > 1:
        suspects = judge(msgspec.structs.replace(run, passes=run.passes[:1])).bad
    found = Judged(run, _silent(run), suspects)
    for step in _STEPS:
        step(found)
    return found


def _silent(run: NetworkRun) -> dict[str, str]:
    """Machines that reported no pair in the first pass, and why."""
    found = {}
    first = run.passes[0]
    for member in first.members:
        answer = first.answers.get(member.name)
        if answer is None:
            found[member.name] = member.reason
        elif not answer.pairs:
            found[member.name] = answer.reason or "no other machine was there"
    return found

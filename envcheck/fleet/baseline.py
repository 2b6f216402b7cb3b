"""What a healthy fleet looks like, kept as a profile: for each product, facts that are equal and rates. Pure.

Machines that are not healthy, slower than the others, or with a warning that most others do not have are left
out: the profile's first lines say which, and why. Each machine that was kept fits the profile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .. import safe_text
from ..attributes.profile_writing import (
    RULES,
    comment,
    is_writable,
    pair,
    sections,
    table,
    values_of,
)
from ..attributes.registry import NAME, PRODUCTS
from ..attributes.values import GPUS
from ..reports.sections import together
from . import hosts
from .baseline_rates import rate_tables
from .model import FleetResult, JudgedMachine
from .products import FEW, products

_HEAD = (
    """\
# A baseline: what healthy machines of a fleet have in common, for each product.
# `envcheck doctor --expect FILE` and `envcheck fleet doctor --expect FILE` compare machines with it.
"""
    + RULES
)
_RARE = 0.25  # of a product's machines


class FleetBaseline(NamedTuple):
    """text: the profile. kept: the machines that it is made of. left_out: the others, and why."""

    text: str
    kept: list[str]
    left_out: list[tuple[str, str]]


def baseline(result: FleetResult) -> FleetBaseline:
    slow = {
        one.machine: f"slower than the others: {one.words}, {one.below:.0%} below the median"
        for one in reversed(result.rate_outliers)
    }
    warned = _warned(result.machines)
    left_out: list[tuple[str, str]] = []
    kept: dict[str, list[JudgedMachine]] = {}
    for machine in result.machines:
        gpus = next((one.value for one in machine.attributes if one.key == GPUS), "")
        why = _why_not(machine) or slow.get(machine.name, "") or warned.get(machine.name, "")
        why = why or ("" if gpus else "it has no GPU")
        if why or not is_writable(gpus, "text"):
            left_out.append((machine.name, why or "its GPUs have no names"))
        else:
            kept.setdefault(gpus, []).append(machine)
    parts = [_head(left_out, len(result.machines))]
    for name in sorted(kept, key=lambda name: (-len(kept[name]), name)):
        machines = kept[name]
        about = f"{len(machines)} machines: {hosts.folded(one.name for one in machines)}"
        parts.append(table(f"[[{PRODUCTS}]]", safe_text.one_line(about), [pair(NAME, name, "")]))
        found = values_of((one.name, one.attributes) for one in machines)
        parts += [*sections(found, hosts.folded, f"{PRODUCTS}."), *rate_tables(machines)]
    names = [machine.name for machines in kept.values() for machine in machines]
    return FleetBaseline("\n".join(filter(None, parts)), names, left_out)


def _why_not(machine: JudgedMachine) -> str:
    return {
        "healthy": "",
        "problems": machine.verdict,
        "could-not-look": machine.reason or "some checks could not run",
        "unanswered": machine.reason or machine.answer.replace("-", " "),
    }[machine.state]


def _warned(machines: Iterable[JudgedMachine]) -> dict[str, str]:
    """Healthy machines with a warning that few of their product have: {machine: why}."""
    found: dict[str, str] = {}
    for members in products([one for one in machines if one.state == "healthy"]).values():
        codes = {one.name: {problem.code for problem in one.problems} for one in members}
        counted = Counter(code for of_one in codes.values() for code in of_one)
        for name, of_one in codes.items():
            rare = sorted(code for code in of_one if counted[code] <= _RARE * len(members))
            if rare and len(members) >= FEW:
                found[name] = f"it has warnings that most others do not have: {', '.join(rare)}"
    return found


def _head(left_out: Sequence[tuple[str, str]], count: int) -> str:
    lines = [f"# Made of {count - len(left_out)} of {count} machines."]
    why = together((reason, name) for name, reason in left_out)
    lines += ["# Left out:"] if why else []
    lines += [comment(f"{hosts.folded(names)}: {reason}", "  ") for reason, names in why.items()]
    return _HEAD + "\n".join(lines) + "\n"

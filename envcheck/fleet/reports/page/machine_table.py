"""All machines in one table: complete without a script, sorted and filtered by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ....reports.plots.svg import text
from ...hosts import natural_key
from ...model import JudgedMachine
from .looks import link, look, said, severity, shortened

_ITS_OWN = ("operating system", "kernel", "driver", "image")
_SAID = 400  # characters: the machine's page has all


def table(machines: Sequence[JudgedMachine], odd: Mapping[str, Sequence[str]]) -> str:
    """The worst first. odd: by name, in what a machine is odd."""
    several_products = len({machine.product for machine in machines if machine.product}) > 1
    told = Counter(place for machine in machines for place in set(machine.groups))
    everywhere = {place for place, count in told.items() if count == len(machines)}
    places = {machine.name: _places(machine, everywhere) for machine in machines}
    placed = any(places.values())
    columns = ["Machine", "State", "What"]
    columns += ["Product"] if several_products else []
    columns += ["Place"] if placed else []
    head = "".join(f'<th scope="col">{one}</th>' for one in columns)
    rows = []
    for machine in sorted(machines, key=lambda one: (severity(one), natural_key(one.name))):
        state = look(machine)
        words = said(machine, odd.get(machine.name, ()))
        cells = [
            f'<th scope="row">{link(machine, machine.name)}</th>',
            f'<td><span class="shape {state.letter}">{state.word}</span></td>',
            f"<td>{text(shortened(words, _SAID))}</td>",
        ]
        cells += [f"<td>{text(machine.product)}</td>"] if several_products else []
        cells += [f"<td>{text(places[machine.name])}</td>"] if placed else []
        kind = state.letter + (" o" if machine.name in odd else "")
        rows.append(f'<tr data-state="{kind}">{"".join(cells)}</tr>')
    kind = f"columns{len(columns)}"
    return (
        f'<table class="machines {kind}" id="all"><thead><tr>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>"
    )


def _places(machine: JudgedMachine, everywhere: set[tuple[str, str]]) -> str:
    """Without those that tell no machine from another, and without what its own page tells."""
    names = [
        name
        for kind, name in machine.groups
        if (kind, name) not in everywhere and kind not in _ITS_OWN
    ]
    return ", ".join(dict.fromkeys(names))

"""What a healthy fleet looks like, kept as a profile: for each product, facts that are equal and rates. Pure.

A machine that is not healthy is left out, and so is one that is slower than the others, or of which a check
warns that passes on most of them: the profile's first lines say which, and why. What the rest does not agree
on is left out, too, with a comment; so each machine that was kept fits the profile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .. import safe_text
from ..attributes.bounds import fits, mistake
from ..attributes.named import NAMED
from ..attributes.profile_writing import pair, table
from ..attributes.readers import least_of_built_in
from ..attributes.registry import COUNT, MEMORY, NAME, PRODUCTS, SECTIONS, Key, Kind
from ..attributes.values import GPUS, NONE
from ..facts.profile import Value
from . import hosts
from .baseline_rates import rate_tables
from .model import FleetResult, JudgedMachine
from .products import FEW, products

_HEAD = """\
# A baseline: what healthy machines of a fleet have in common, for each product.
# `envcheck doctor --expect FILE` and `envcheck fleet doctor --expect FILE` hold machines against it.
# What is left out is not looked at: take out what may differ. A list wants any of its items;
# numbers and versions may be bounds, in quotes: ">= 8", ">= 570, < 580". "570" is any 570.x.
"""
_LONGEST = 300  # characters of a value
_RARE = 0.25  # of a product's machines
_COMMENTS = 40  # of a section


class FleetBaseline(NamedTuple):
    """text: the profile. kept: the machines that it is made of. left_out: the others, and why."""

    text: str
    kept: list[str]
    left_out: list[tuple[str, str]]


class _Told(NamedTuple):
    """What the machines of a product tell: {key: {machine: {device: value}}}."""

    machines: list[str]
    values: dict[str, dict[str, dict[str, str]]]

    def of(self, key: str) -> dict[str, dict[str, str]]:
        return self.values.get(key, {})


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
        if why or not _is_writable(gpus, "text"):
            left_out.append((machine.name, why or "its GPUs have no names"))
        else:
            kept.setdefault(gpus, []).append(machine)
    parts = [_head(left_out, len(result.machines))]
    for name in sorted(kept, key=lambda name: (-len(kept[name]), name)):
        parts += _product(name, kept[name])
    return FleetBaseline(
        "\n".join(filter(None, parts)),
        [machine.name for these in kept.values() for machine in these],
        left_out,
    )


def _why_not(machine: JudgedMachine) -> str:
    if machine.state == "healthy":
        return ""
    return {
        "problems": machine.verdict,
        "could-not-look": machine.reason or "envcheck could not look everywhere",
        "unanswered": machine.reason or machine.answer.replace("-", " "),
    }[machine.state]


def _warned(machines: Iterable[JudgedMachine]) -> dict[str, str]:
    """Healthy machines with a warning that few of their product have: {machine: why}."""
    found: dict[str, str] = {}
    for these in products([one for one in machines if one.state == "healthy"]).values():
        codes = {one.name: {problem.code for problem in one.problems} for one in these}
        counted = Counter(code for of_one in codes.values() for code in of_one)
        for name, of_one in codes.items():
            rare = sorted(code for code in of_one if counted[code] <= _RARE * len(these))
            if rare and len(these) >= FEW:
                found[name] = f"it has warnings that most others have not: {', '.join(rare)}"
    return found


def _head(left_out: Sequence[tuple[str, str]], count: int) -> str:
    lines = [f"# Made of {count - len(left_out)} of {count} machines."]
    why: dict[str, list[str]] = {}
    for name, reason in left_out:
        why.setdefault(reason, []).append(name)
    if why:
        lines.append("# Left out:")
    for reason, names in why.items():
        lines.append(_comment(f"{hosts.folded(names)}: {reason}", "  "))
    return _HEAD + "\n".join(lines) + "\n"


def _comment(text: str, indent: str = "") -> str:
    """One line, whatever a Snapshot says."""
    return f"# {indent}{safe_text.one_line(text)[:_LONGEST]}"


def _product(name: str, machines: list[JudgedMachine]) -> Iterator[str]:
    told = _all_told(machines)
    comment = f"{len(machines)} machines: {hosts.folded(machine.name for machine in machines)}"
    yield table(f"[[{PRODUCTS}]]", safe_text.one_line(comment), [pair(NAME, name, "")])
    for section, content in SECTIONS.items():
        if content.many:
            yield from _devices(section, content.comment, content.keys, told)
        else:
            lines = [line for key in content.keys for line in _one(section, key, told)]
            yield table(f"[{PRODUCTS}.{section}]", content.comment, lines)
    for section, named in NAMED.items():
        yield table(f"[{PRODUCTS}.{section}]", named.comment, _named(section, named.kind, told))
    yield from rate_tables(machines)


def _all_told(machines: Iterable[JudgedMachine]) -> _Told:
    told = _Told([], {})
    for machine in machines:
        told.machines.append(machine.name)
        for one in machine.attributes:
            of_machine = told.values.setdefault(one.key, {}).setdefault(machine.name, {})
            of_machine[one.device] = one.value
    return told


def _one(section: str, key: Key, told: _Told) -> Iterator[str]:
    """The line of a fact that all machines have alike, or a comment."""
    values = {name: these.get("", "") for name, these in told.of(f"{section}.{key.name}").items()}
    yield from _line(key, values, len(told.machines))


def _line(key: Key, values: Mapping[str, str], of: int) -> Iterator[str]:
    """values: {who: what}."""
    different = set(values.values())
    if different <= {NONE} and key.kind != "text":
        return  # it is nowhere
    if len(different) > 1:
        yield _comment(f"{key.name}: not the same on all: {_camps(values)}")
    elif len(values) < of:
        if values:
            yield _comment(f"{key.name}: told of {len(values)} of {of} only")
    else:
        value = different.pop()
        if not _is_writable(value, key.kind):
            yield _comment(f"{key.name}: what is told of it can be no value of a profile")
        else:
            yield pair(key.name, _typed(value, key), key.comment or _words(key))


def _words(key: Key) -> str:
    return "" if key.words.lower() == key.name.replace("_", " ") else key.words


def _camps(values: Mapping[str, str]) -> str:
    """ "535.104.05 on 38, 535.129.03 on gpu[05,07]"."""
    counted = Counter(values.values()).most_common()
    told = []
    for value, count in counted[:4]:
        who = [name for name, one in values.items() if one == value]
        named = ", ".join(who) if any(" " in one for one in who) else hosts.folded(who)
        told.append(f"{value[:80]} on {named if count <= 3 else count}")
    return ", ".join(told) + (f" and {len(counted) - 4} more" if len(counted) > 4 else "")


def _typed(value: str, key: Key) -> Value:
    """An attribute's value as a profile has it."""
    if key.kind == "switch":
        return value == "on"
    if key.kind == "number":
        number = float(value)
        if key.name == MEMORY:
            return f">= {least_of_built_in(number)}"
        return int(number) if number.is_integer() else number
    return value


def _is_writable(value: str, kind: Kind) -> bool:
    """Whether a profile can hold it, and whoever has it fits that."""
    if not value.isprintable() or len(value) > _LONGEST:
        return False
    if kind == "switch":
        return value in ("on", "off")
    plain: float | str = value
    if kind == "number":
        try:
            plain = float(value)
        except ValueError:
            return False
    return not mistake(plain, kind) and fits(plain, plain, kind)


def _devices(section: str, comment: str, keys: Iterable[Key], told: _Told) -> Iterator[str]:
    """A table for each name; where machines have not the same devices, a comment."""
    counts = told.of(f"{section}.{COUNT}")
    if not counts:
        return
    whole = {name: these.get("", "") for name, these in counts.items()}
    if len(set(whole.values())) > 1 or len(whole) < len(told.machines):
        yield _comment(f"{section}: not the same on all: {_camps(whole)}") + "\n"
        return
    names = told.of(f"{section}.{NAME}")
    for called in sorted({value for these in names.values() for value in these.values()}):
        if not _is_writable(called, "text"):
            continue
        places = {
            (machine, device)
            for machine, these in names.items()
            for device, value in these.items()
            if value == called
        }
        count = len(places) // len(told.machines)
        lines = [pair(NAME, called, ""), pair(COUNT, count, "")]
        for key in keys:
            values = {
                f"{machine} {device}": value
                for machine, these in told.of(f"{section}.{key.name}").items()
                for device, value in these.items()
                if (machine, device) in places
            }
            lines += _line(key, values, len(places))
        yield table(f"[[{PRODUCTS}.{section}]]", comment, lines)


def _named(section: str, kind: Kind, told: _Told) -> list[str]:
    keys = sorted(key for key in told.values if key.startswith(f"{section}."))
    looked_at = {name for key in keys for name in told.of(key)}
    if not keys:
        return []
    if len(looked_at) < len(told.machines):
        return [_comment(f"looked at on {len(looked_at)} of {len(told.machines)} only")]
    lines, differ = list[str](), list[str]()
    for called in keys:
        name = called.removeprefix(f"{section}.")
        values = {one: told.of(called).get(one, {}).get("", NONE) for one in told.machines}
        same = set(values.values())
        if len(same) > 1:
            differ.append(_comment(f"{name}: not the same on all: {_camps(values)}"))
        elif _is_writable(value := same.pop(), kind) and _is_name(name):
            lines.append(pair(name, value, ""))
    more = [f"# and {len(differ) - _COMMENTS} more that differ"] if len(differ) > _COMMENTS else []
    return [*lines, *differ[:_COMMENTS], *more]


def _is_name(name: str) -> bool:
    return name.isprintable() and len(name) <= 80 and not set(name) & {'"', "\\"}

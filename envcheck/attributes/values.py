"""The attributes of a machine and its target, from a Snapshot alone.

They are the keys of profiles: "driver.version", "gpus.vbios" of each GPU, "packages.torch". What fluctuates
(temperatures, clocks of now, free memory) is no key, and nothing that belongs to one machine alone (names,
serial numbers, UUIDs) is a value. What was looked for and is not there has the value "none". A package that
a target does not have, a library, a parameter or a setting is left out: where a machine has any key of that
section, the section was looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ..facts.base import Unavailable, known
from ..facts.gpu import Gpu
from ..facts.missing import CannotJudge
from ..facts.view import SnapshotView
from .model import Attribute
from .named import NAMED, of_one_machine
from .readers import Fact, adapter_name, adapters, interfaces, memory_built_in
from .registry import MEMORY, NAME, SECTIONS, Key

NONE = "none"
GPUS, NICS = "gpus.count", "nics.count"
_MOST_DEVICES = 512  # of a kind: a Snapshot may come from anybody
_LONGEST = 2000

# {section: [(the attribute's key, the table's)]}, once for all machines
_KEYS = {
    name: tuple((f"{name}.{key.name}", key) for key in section.keys)
    for name, section in SECTIONS.items()
}


def attributes(view: SnapshotView) -> list[Attribute]:
    """Every key of a profile that this machine has a value for."""
    found: list[Attribute] = []
    for name, section in SECTIONS.items():
        if not section.many:
            found += _of(view, _KEYS[name], "")
    found += _gpus(view)
    found += _nics(view)
    for one in interfaces(view)[:_MOST_DEVICES]:
        found += _of(one, _KEYS["interfaces"], one.name[:_LONGEST])
    found += _named(view)
    return found


def gpu_called(gpu: Gpu, position: int) -> str:
    """ "GPU 3": nvidia-smi's index, else its place among them."""
    index = known(gpu.index)
    return f"GPU {position if index is None else index}"


def gpus_of(view: SnapshotView) -> list[Gpu]:
    try:
        return view.gpus[:_MOST_DEVICES]
    except CannotJudge:
        return []


def shown(fact: Fact, key: Key) -> str:
    """A fact as an attribute's value; "" for what is not known."""
    if isinstance(fact, Unavailable):
        return NONE if fact.unavailable == "absent" else ""
    if fact is True or fact is False:
        return "on" if fact else "off"
    if key.name == MEMORY:
        fact = memory_built_in(fact)
    text = f"{fact:.10g}" if isinstance(fact, float) else str(fact)
    return "" if len(text) > _LONGEST or ("<" in text and of_one_machine(text)) else text


def _of(thing: object, keys: Iterable[tuple[str, Key]], device: str) -> Iterator[Attribute]:
    for called, key in keys:
        value = shown(key.fact(thing), key)
        if value:
            yield Attribute(key=called, words=key.words, value=value, device=device)


def _gpus(view: SnapshotView) -> Iterator[Attribute]:
    gpus = gpus_of(view)
    if gpus:
        names = Counter(known(gpu.name) or "unknown" for gpu in gpus)
        yield Attribute(key=GPUS, words="GPUs", value=_counted(names))
    for position, gpu in enumerate(gpus):
        yield from _device("gpus", gpu, gpu_called(gpu, position), known(gpu.name) or "unknown")


def _nics(view: SnapshotView) -> Iterator[Attribute]:
    devices = adapters(view)
    if isinstance(devices, Unavailable):
        return
    names = Counter(adapter_name(device) or "unknown" for device in devices)
    yield Attribute(key=NICS, words="adapters for RDMA", value=_counted(names) or NONE)
    for device in devices[:_MOST_DEVICES]:
        yield from _device("nics", device, device.name[:_LONGEST], adapter_name(device))


def _device(section: str, thing: object, called: str, name: str) -> Iterator[Attribute]:
    yield Attribute(key=f"{section}.{NAME}", words="name", value=name[:_LONGEST], device=called)
    yield from _of(thing, _KEYS[section], called)


def _counted(names: Counter[str]) -> str:
    return ", ".join(f"{count} × {name}" for name, count in sorted(names.items())[:8])


def _named(view: SnapshotView) -> Iterator[Attribute]:
    for section, named in NAMED.items():
        found = named.facts(view)
        for name, value in () if isinstance(found, Unavailable) else found.items():
            if value:
                yield Attribute(key=f"{section}.{name}", words=named.words % name, value=value)

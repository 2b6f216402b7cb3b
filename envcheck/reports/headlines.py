"""What is wrong, in a phrase each: "GPU 3 is throttled by heat"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ..facts.base import known
from ..facts.snapshot import Snapshot
from ..facts.view import or_else, view_of
from ..findings.model import Level
from ..findings.subjects import Subject, about, joined
from .plain import ranges, roots
from .results import ReportedResult

# A headline that begins with one of these says something of devices, and follows their name.
OF_SEVERAL = {"is": "are", "was": "were", "has": "have", "does": "do", "needs": "need"}

# Results whose findings become headlines; a consequence belongs to its cause.
_OUTCOMES = ("fail", "warn", "could-not-run")

# A device that the Snapshot does not list keeps its name where that is short.
_SHORT = 24

# More devices than these are counted.
_NAMED = 4


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    level: Level
    text: str
    degrades: bool = False


def headlines(results: Iterable[ReportedResult], snapshot: Snapshot) -> list[Headline]:
    """What was found, the same of several devices as one: failures first, and of these what others follow
    from."""
    results = list(results)
    gpus = gpu_indices(snapshot)
    explains = Counter(roots(results).values())
    found: dict[tuple[Level, bool, str, str], list[Subject]] = {}
    for result in results:
        if result.outcome in ("fail", "warn") and not result.findings:
            found[(result.outcome, False, result.code, result.title)] = []
        for finding in result.findings if result.outcome in _OUTCOMES else ():
            text = finding.headline or finding.message
            key = (finding.level, finding.degrades, result.code, text)
            package = about("package", str(finding.params.get("package") or ""))
            found.setdefault(key, []).extend(finding.subjects or package)
    lines = [
        Headline(code=code, level=level, text=phrase(text, subjects, gpus), degrades=degrades)
        for (level, degrades, code, text), subjects in found.items()
    ]
    return sorted(lines, key=lambda one: (one.level != "fail", -explains[one.code]))


def phrase(text: str, subjects: Iterable[Subject], gpus: Mapping[str, int | None]) -> str:
    """A headline, with what it is about where it says something of devices, or of "a package". ``gpus``:
    nvidia-smi's index of each GPU by its PCI address, None where only the bus knows it."""
    verb, _, rest = text.partition(" ")
    subjects = list(subjects)
    if verb in ("a", "an"):
        things = dict.fromkeys(one.text for one in subjects if not one.address)
        return f"{text} ({' and '.join(things)})" if 0 < len(things) <= 2 else text
    if verb not in OF_SEVERAL:
        return text
    named = _addresses(subjects, gpus)
    if not named:
        names = joined(subjects)
        return f"{names if 0 < len(names) <= _SHORT else 'a GPU'} {text}"
    several = len(named) > 1
    return f"{_named(named, gpus)} {OF_SEVERAL[verb] if several else verb} {rest}"


def devices_of(subjects: Iterable[Subject], gpus: Mapping[str, int | None]) -> str:
    """The GPUs as ``phrase`` calls them; "" where it is about none."""
    named = _addresses(subjects, gpus)
    return _named(named, gpus) if named else ""


def _addresses(subjects: Iterable[Subject], gpus: Mapping[str, int | None]) -> list[str]:
    addresses = {subject.address for subject in subjects}
    return [address for address in gpus if address in addresses]


def _named(about: list[str], gpus: Mapping[str, int | None]) -> str:
    """ "GPU 3", "GPUs 0–3, 5", "all 8 GPUs", "both GPUs", "the GPU at 0000:61:00.0", "12 GPUs" """
    if len(about) == len(gpus) > 1:
        return "both GPUs" if len(about) == 2 else f"all {len(about)} GPUs"
    indices = [index for index in (gpus[address] for address in about) if index is not None]
    if len(indices) == len(about):
        return f"GPU{'' if len(indices) == 1 else 's'} {ranges(sorted(indices))}"
    if len(about) > _NAMED:
        return f"{len(about)} GPUs"
    return f"the GPU{'' if len(about) == 1 else 's'} at {', '.join(about)}"


def gpu_indices(snapshot: Snapshot) -> dict[str, int | None]:
    """nvidia-smi's index of each GPU of the machine, by PCI address; those of the bus alone have none."""
    found: dict[str, int | None] = {}
    for gpu in or_else(lambda: view_of(snapshot).gpus, None) or []:
        if address := known(gpu.pci_address):
            found[address] = known(gpu.index)
    nvml, pci = snapshot.machine.nvml, snapshot.machine.pci
    for lost in nvml.facts.lost if nvml is not None and nvml.facts is not None else ():
        if address := known(lost.pci_address):
            found.setdefault(address, lost.index)
    for device in (known(pci.facts.devices) or ()) if pci is not None and pci.facts else ():
        if device.kind == "gpu":
            found.setdefault(device.address, None)
    return found

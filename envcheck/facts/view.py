"""A Snapshot as checks like to read it: facts that are there, or the reason why a check cannot judge."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

import msgspec

from .base import Facts, Probe, Unavailable, known
from .evidence import Evidence
from .gpu import Gpu
from .missing import CannotJudge, CouldNotRun, NeedsRoot, Skip
from .profile import Profile
from .recording import once
from .snapshot import MACHINE_SECTIONS, Document, Snapshot

T = TypeVar("T")
NO_TARGET = "no target environment was looked at (--target)"

_MISSING: dict[str, tuple[type[CannotJudge], str]] = {
    "not-collected": (Skip, "not in this snapshot"),
    "absent": (Skip, "there is none here"),
    "not-supported": (Skip, "not supported here"),
    "lost": (CouldNotRun, "the GPU did not answer"),
    "timeout": (CouldNotRun, "no answer in time"),
}


def need(value: T | Unavailable, what: str) -> T:
    """The value of a fact that the check cannot do without; raises CannotJudge where there is none."""
    if not isinstance(value, Unavailable):
        return value
    raise _cannot_judge(value, what)


def _cannot_judge(missing: Unavailable, what: str) -> CannotJudge:
    detail = f" ({missing.detail.splitlines()[0]})" if missing.detail else ""
    if missing.unavailable == "no-permission":
        return NeedsRoot(what)
    if missing.unavailable == "error":
        return CouldNotRun(f"{what}: {missing.detail or 'an error'}")
    kind, words = _MISSING[missing.unavailable]
    return kind(f"{what}: {words}{detail}")


def facts_of(probe: Probe[T] | None, what: str) -> T:
    """A probe's facts; raises Skip where it was not asked for, CouldNotRun where it failed."""
    if probe is None:
        raise Skip(f"{what}: not in this snapshot")
    if probe.facts is None and probe.outcome == "timeout":
        # What it wrote until then is no reason.
        took = probe.reason or f"no answer within {probe.seconds:.0f} s"
        raise CouldNotRun(f"{what}: {took}; --deadline SECONDS gives it longer")
    if probe.facts is None:
        words = probe.evidence.strip().splitlines()
        raise CouldNotRun(
            f"{what}: {probe.reason or probe.outcome}"
            + (f" ({words[-1].strip()})" if words else "")
        )
    return probe.facts


def facts_or(probe: Probe[T] | None, empty: type[T]) -> T:
    """A probe's facts; where there are none, ``empty``, whose every fact is "not collected"."""
    return empty() if probe is None or probe.facts is None else probe.facts


def or_else(read: Callable[[], T], otherwise: T) -> T:
    """What it reads; ``otherwise`` where that cannot be judged."""
    try:
        return read()
    except CannotJudge:
        return otherwise


def fact(probe: Probe[Any] | None, name: str) -> Any:
    """The value of one of a probe's facts; None where the probe or the fact is missing, for any reason."""
    return None if probe is None or probe.facts is None else known(getattr(probe.facts, name))


class SnapshotView:
    """Read access to one Snapshot. Everything here is pure."""

    def __init__(self, snapshot: Snapshot, profile: Profile | None = None) -> None:
        """profile: what the machine must be, where a profile is given."""
        self.snapshot, self.profile = snapshot, profile
        self.computed: dict[object, Any] = {}  # by `once`

    def equal(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What a pure function (``key``) of the Snapshot gives, computed or known (`sharing`)."""
        return compute()

    @property
    def machine(self) -> Document:
        return self.snapshot.machine

    @property
    def target(self) -> Document:
        """The target's document; raises Skip where no target was looked at."""
        if self.snapshot.target is None:
            raise Skip(NO_TARGET)
        return self.snapshot.target

    @property
    def inside(self) -> Document:
        """The target's document where that is a container; raises Skip otherwise."""
        if not is_container(self.target):
            raise Skip("the target is not a container")
        return self.target

    @property
    @once
    def seen(self) -> Document:
        """The machine as the target's processes see it: what a container's document has comes first."""
        target = self.snapshot.target
        if target is None:
            return self.machine
        fields = msgspec.structs.asdict(target)  # which is not recorded as read
        own = {
            name: probe
            for name, probe in fields.items()
            if name in MACHINE_SECTIONS and probe is not None
        }
        return msgspec.structs.replace(self.machine, **own) if own else self.machine

    def has(self, section: str) -> bool:
        """Whether one of the documents has this section; "profile": whether one was given."""
        if section == "profile":
            return self.profile is not None
        documents = (self.snapshot.machine, self.snapshot.target)
        return any(getattr(one, section, None) is not None for one in documents)

    @property
    @once
    def gpus(self) -> list[Gpu]:
        """The GPUs that the driver knows: NVML's facts, completed by nvidia-smi's (same PCI address)."""
        return driver_gpus(self.machine)

    @property
    @once
    def seen_gpus(self) -> list[Gpu]:
        """As ``gpus``, of what the target's processes see of the machine."""
        return self.gpus if self.seen is self.machine else driver_gpus(self.seen)

    def evidence(self, path: str, value: object = None) -> Evidence:
        """The Evidence for a fact by its path, "machine.SECTION.FIELD[.…]", with its source.

        "seen.…" is the target's own section where it has one, else the machine's. ``value`` replaces the
        fact's own value where that is long or nested.
        """
        document, section, *rest = path.split(".")
        if document == "seen":
            own = getattr(self.snapshot.target, section, None) is not None
            document = "target" if own else "machine"
            path = ".".join([document, section, *rest])
        probe: Any = getattr(getattr(self.snapshot, document), section, None)
        source = ""
        found: Any = None
        if probe is not None:
            field = rest[0].partition("[")[0] if rest else ""
            source = probe.sources.get(field, probe.sources.get("*", ""))
            found = getattr(probe.facts, field, None) if probe.facts is not None else probe.reason
        return Evidence(path, show(found if value is None else value), source)

    def gpu_evidence(self, gpu: Gpu, field: str) -> Evidence:
        """The Evidence for one GPU's fact, from whichever of NVML and nvidia-smi has it."""
        for section in ("nvml", "nvidia_smi"):
            probe: Any = getattr(self.machine, section)
            for position, candidate in self._gpus_by_address[section].get(gpu.pci_address, ()):
                if known(getattr(candidate, field)) is None:
                    continue
                source = probe.sources.get(f"gpus.{field}", probe.sources.get("gpus", ""))
                return Evidence(
                    f"machine.{section}.gpus[{position}].{field}",
                    show(getattr(candidate, field)),
                    source or probe.sources.get("*", ""),
                )
        return Evidence(f"machine.nvml.gpus.{field}", show(getattr(gpu, field)))

    @property
    @once
    def _gpus_by_address(self) -> dict[str, dict[object, list[tuple[int, Gpu]]]]:
        """For NVML and nvidia-smi: the GPUs at each PCI address, with their places in the list."""
        places: dict[str, dict[object, list[tuple[int, Gpu]]]] = {}
        for section in ("nvml", "nvidia_smi"):
            found = places.setdefault(section, {})
            for position, gpu in enumerate(_gpu_list(getattr(self.machine, section)) or []):
                found.setdefault(gpu.pci_address, []).append((position, gpu))
        return places


_latest: SnapshotView | None = None


def view_of(snapshot: Snapshot) -> SnapshotView:
    """The view on this very Snapshot: the same for checks and report, so that GPUs are put together once."""
    found = _latest
    return found if found and found.snapshot is snapshot else use(SnapshotView(snapshot))


def view_with(snapshot: Snapshot, profile: Profile | None) -> SnapshotView:
    """The same, held against this profile, or none."""
    found = view_of(snapshot)
    return found if found.profile is profile else use(SnapshotView(snapshot, profile))


def use(view: SnapshotView) -> SnapshotView:
    """From now on it is the view on its Snapshot."""
    global _latest
    _latest = view
    return view


def is_container(document: Document | None) -> bool:
    return document is not None and document.location.startswith(("image:", "container:"))


def driver_gpus(document: Document) -> list[Gpu]:
    """The GPUs of a document's driver: NVML's facts, completed by nvidia-smi's (same PCI address)."""
    nvml = _gpu_list(document.nvml)
    smi = _gpu_list(document.nvidia_smi)
    if nvml is None and smi is None:
        if document.nvml is None:
            facts_of(document.nvidia_smi, "GPUs")
        raise CouldNotRun("neither NVML nor nvidia-smi could list the GPUs")
    if nvml is None or smi is None:
        return cast(list[Gpu], nvml if smi is None else smi)
    others = {gpu.pci_address: gpu for gpu in smi if known(gpu.pci_address)}
    merged = [_merge(gpu, others.pop(gpu.pci_address, None)) for gpu in nvml]
    return merged + list(others.values())


def show(value: object) -> str:
    """A fact's value as one short line."""
    if isinstance(value, Unavailable):
        return value.unavailable + (f": {value.detail}" if value.detail else "")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(show(item) for item in value) or "none"
    if isinstance(value, Facts):
        return msgspec.json.encode(value).decode()
    return str(value)


def _gpu_list(probe: Any) -> list[Gpu] | None:
    if probe is None or probe.facts is None:
        return None
    return cast("list[Gpu] | None", known(probe.facts.gpus))


def _merge(first: Gpu, second: Gpu | None) -> Gpu:
    """``first`` with its missing facts taken from ``second``; a lost fact stays lost."""
    if second is None:
        return first
    filled = {
        field: getattr(second, field)
        for field, value in zip(Gpu.__struct_fields__, msgspec.structs.astuple(first), strict=True)
        if isinstance(value, Unavailable) and value.unavailable not in ("lost", "error", "timeout")
    }
    return msgspec.structs.replace(first, **filled)

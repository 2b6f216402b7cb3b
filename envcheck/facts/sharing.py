"""Many Snapshots: what is equal in them is decoded once, and what follows from it is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, fields, replace

from . import snapshot as snapshots
from .base import Probe
from .micro_kernels import LevelRun, MicroKernels, ModeRun, Signature
from .profile import Profile
from .recording import FIELDS, SECTIONS, RecordedDocument, count_as_read, read_by
from .snapshot import Document, Snapshot
from .view import SnapshotView, use

T = TypeVar("T")
# {function: {fields of documents that it read: {their contents: result}}}
_Results = dict[Hashable, dict[frozenset[str], dict[Hashable, Any]]]
_LARGEST = 1 << 20  # bytes of a Snapshot of which anything is kept
_MOST = 8  # of the contents of a section, of a function's results, and of sets of what it reads
_MOST_SIGNATURES = 256


def _with(record: Any, **types: Any) -> Any:
    """A record like this one, of which some fields have other types."""
    new: list[Any] = []
    for one in fields(record):
        default: Any = {"default": one.default, "default_factory": one.default_factory}
        new.append((one.name, types.get(one.name, one.type), msgspec.field(**default)))
    return msgspec.defstruct(f"_{record.__name__}", new, kw_only=True, gc=False)


# The bits that products gave are the larger part of a Snapshot, and are the same on all equal GPUs.
_Mode: Any = _with(ModeRun, signatures=msgspec.Raw)
_Run: Any = _with(LevelRun, modes=list[_Mode])
_MicroKernels: Any = _with(MicroKernels, runs=list[_Run])
_SIGNATURES = msgspec.json.Decoder(list[Signature])
_OF_SECTION = {
    one.name: msgspec.json.Decoder(one.type) for one in fields(Document) if one.name in SECTIONS
} | {"micro_kernels": msgspec.json.Decoder(Probe[_MicroKernels] | None)}
_Undecoded: Any = _with(Document, **dict.fromkeys(SECTIONS, msgspec.Raw))
_AROUND = FIELDS - SECTIONS
_Snapshot: Any = _with(Snapshot, machine=_Undecoded, target=_Undecoded | None)


class ManySnapshots:
    """Keeps the latest contents of each section, and what was computed from them."""

    def __init__(self) -> None:
        self._sections: dict[str, dict[bytes, Any]] = {name: {} for name in SECTIONS}
        self._signatures: dict[bytes, list[Signature]] = {}
        self._results: _Results = {}

    def load(self, data: bytes, profile: Profile | None = None) -> Snapshot:
        """As `snapshots.load`; `view_of` the Snapshot then knows what it shares. Raises SnapshotError."""
        if len(data) > _LARGEST:
            return snapshots.load(data)
        try:
            whole = msgspec.json.decode(data, type=_Snapshot)
            machine, in_machine = self._document(whole.machine)
            target, in_target = self._document(whole.target)
        except Exception:  # noqa: BLE001 - decoding the whole says what is wrong, and where
            return snapshots.load(data)
        found = Snapshot(**asdict(whole) | {"machine": machine, "target": target})
        snapshots.check(found)
        contents = {name: (in_machine.get(name), in_target.get(name)) for name in FIELDS}
        present = frozenset(in_machine), frozenset(in_target)
        around = found.schema, found.redacted, found.simulated, present
        use(_SharingView(found, profile, self._results, around, contents))
        return found

    def _document(self, undecoded: Any) -> tuple[Any, dict[str, Hashable]]:
        """The document, and what distinguishes the content of each of its fields."""
        if undecoded is None:
            return None, {}
        values = asdict(undecoded)
        contents: dict[str, Hashable] = {name: values[name] for name in _AROUND}
        for name, kept in self._sections.items():
            raw = values[name]
            if isinstance(raw, msgspec.Raw):
                digest = contents[name] = blake2b(raw, digest_size=16).digest()
                if digest not in kept:
                    _keep(kept, digest, self._section(name, raw), _MOST)
                values[name] = kept[digest]
        return RecordedDocument(**values), contents

    def _section(self, name: str, raw: msgspec.Raw) -> Any:
        probe = _OF_SECTION[name].decode(raw)
        if name != "micro_kernels" or probe is None or probe.facts is None:
            return probe
        facts = probe.facts
        for run in facts.runs:
            for mode in run.modes:
                mode.signatures = self._equal_signatures(mode.signatures)
            run.modes = [ModeRun(**asdict(mode)) for mode in run.modes]
        facts.runs = [LevelRun(**asdict(run)) for run in facts.runs]
        return replace(probe, facts=MicroKernels(**asdict(facts)))

    def _equal_signatures(self, raw: Any) -> list[Signature]:
        if not isinstance(raw, msgspec.Raw):
            return []
        text = bytes(raw)
        if text not in self._signatures:
            _keep(self._signatures, text, _SIGNATURES.decode(text), _MOST_SIGNATURES)
        return self._signatures[text]


class _SharingView(SnapshotView):
    """Of one Snapshot among many. contents: what distinguishes each field of its documents; around: the
    same of what is read without being recorded."""

    def __init__(
        self,
        snapshot: Snapshot,
        profile: Profile | None,
        results: _Results,
        around: Hashable,
        contents: dict[str, tuple[Hashable, Hashable]],
    ) -> None:
        super().__init__(snapshot, profile)
        self._results, self._around, self._contents = results, around, contents
        self._of: dict[frozenset[str], Hashable] = {}

    def equal(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Known where an earlier Snapshot's is, and all that was read there is equal here."""
        known = self._results.setdefault(key, {})
        for read, results in known.items():
            content = self._content(read)
            if content in results:
                count_as_read(read)
                found: T = results[content]
                return found
        found, now = read_by(compute)
        read = frozenset(now)
        if read in known or len(known) < _MOST:
            _keep(known.setdefault(read, {}), self._content(read), found, _MOST)
        return found

    def _content(self, names: frozenset[str]) -> Hashable:
        found = self._of.get(names)
        if found is None:
            found = self._around, *(self._contents[name] for name in sorted(names))
            self._of[names] = found
        return found


def _keep(kept: dict[Any, Any], key: Hashable, value: object, most: int) -> None:
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]

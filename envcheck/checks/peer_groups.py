"""Peers: GPUs of one name in one machine, of which one may differ from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from ..facts.base import known
from ..facts.gpu import Gpu
from ..facts.missing import Skip
from ..facts.view import SnapshotView
from ..findings.subjects import gpu_subject
from .gpus import lost_gpus

V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True)
class Unlike(Generic[V]):
    """A GPU with another value than its peers. usual: most peers' value; None where no value is."""

    gpu: Gpu
    value: V
    usual: V | None
    peers: list[tuple[Gpu, V]]

    @property
    def told(self) -> str:
        """ "most of its 7 peers", or what each of the others has, where none is in the majority."""
        others = [(gpu, value) for gpu, value in self.peers if gpu is not self.gpu]
        if self.usual is not None:
            alike = sum(value == self.usual for _gpu, value in others)
            return f"{alike} of its {len(others)} peers" if len(others) > 1 else "its peer"
        return ", ".join(f"{gpu_subject(gpu).text}: {value}" for gpu, value in others[:7])


@lru_cache(maxsize=1)  # for all checks on the same Snapshot
def groups(view: SnapshotView) -> list[list[Gpu]]:
    """The machine's physical GPUs that answer, by name, of each name that two or more have.

    Raises CannotJudge where there are none: GPUs of other names and virtual ones have no peers.
    """
    named: dict[str, list[Gpu]] = {}
    lost = lost_gpus(view)
    for gpu in view.gpus:
        name = known(gpu.name)
        if name and id(gpu) not in lost and not is_vgpu(gpu):
            named.setdefault(name, []).append(gpu)
    peers = [gpus for gpus in named.values() if len(gpus) > 1]
    if not peers:
        raise Skip("no two GPUs of one name to compare")
    return peers


def is_vgpu(gpu: Gpu) -> bool:
    return (known(gpu.virtualization) or "").upper() == "VGPU"


def unlike(gpus: list[Gpu], value: Callable[[Gpu], V | None]) -> Iterator[Unlike[V]]:
    """The GPUs whose value differs from that of more than half; all of them where none is so common.

    A GPU whose value is not known is no peer.
    """
    told = [(gpu, found) for gpu in gpus if (found := value(gpu)) is not None]
    counts = Counter(found for _gpu, found in told)
    if len(counts) < 2:
        return
    most, number = counts.most_common(1)[0]
    usual = most if 2 * number > len(told) else None
    for gpu, found in told:
        if found != usual:
            yield Unlike(gpu, found, usual, told)


def of_many_makers(gpu: Gpu) -> bool:
    """Whether boards of this name come from many makers, each with firmware and limits of its own."""
    words = f"{known(gpu.brand) or ''} {known(gpu.name) or ''}".lower()
    return "geforce" in words or "titan" in words or "graphics device" in words

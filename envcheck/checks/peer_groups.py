"""Peers: GPUs of one name in one machine, of which one may differ from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..facts.recording import once
from .gpus import lost_gpus
from .reading import Gpu, Skip, SnapshotView, known


class Outlier(NamedTuple):
    """A GPU with another value than its peers. usual: the majority's value; None without a majority.

    peer: one of the GPUs with the usual value.
    """

    gpu: Gpu
    value: object
    usual: object
    peer: Gpu | None


@once
def groups(view: SnapshotView) -> list[list[Gpu]]:
    """The machine's physical GPUs that answer, by name, if at least two have that name.

    Raises CannotJudge if there are none: GPUs of other names and virtual ones have no peers.
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


def outliers(gpus: list[Gpu], value: Callable[[Gpu], object]) -> Iterator[Outlier]:
    """The GPUs whose value differs from the majority's; all of them without a majority.

    A GPU whose value is None is not compared.
    """
    values = [(gpu, found) for gpu in gpus if (found := value(gpu)) is not None]
    counts = Counter(found for _gpu, found in values)
    if len(counts) < 2:
        return
    most, number = counts.most_common(1)[0]
    usual = most if 2 * number > len(values) else None
    peer = next((gpu for gpu, found in values if found == usual), None)
    for gpu, found in values:
        if found != usual:
            yield Outlier(gpu, found, usual, peer)


def of_many_makers(gpu: Gpu) -> bool:
    """Whether boards of this name come from many makers, each with firmware and limits of its own."""
    words = f"{known(gpu.brand) or ''} {known(gpu.name) or ''}".lower()
    return "geforce" in words or "titan" in words or "graphics device" in words

"""Whether a GPU's memory is as fast as its product's."""

from __future__ import annotations

from ...data.bandwidth import memory_line, published_memory
from ..declared import declared_causes
from ..gpu.link import pci_device
from ..reading import Skip, SnapshotView
from ..verdicts import Evidence, Passed, Verdicts, check
from .common import Measured, each_gpu_run, gb_s, several, spread_of, usual

CAUSE = declared_causes(__name__)

WAYS = ("copy", "read")
_CACHED = 4  # times the L2 cache: smaller areas are read from it
_PUBLISHED = 0.5  # of what is published: below it is slow, whatever the product
_PEERS = 0.85  # of what its peers reach


@check("MEM-002")
def memory_bandwidth(view: SnapshotView) -> Verdicts:
    runs: list[tuple[Measured, float]] = []

    def collect(one: Measured) -> Verdicts:
        rates = [rate for way in WAYS if (rate := one.rate(way))]
        if not rates:
            yield one.why_not("copy")
        elif one.value("read", "MiB") < _CACHED * one.value("device", "L2_MiB"):
            raise Skip(f"{one.called} has too little free memory to tell it from its cache")
        else:
            runs.append((one, max(rates)))

    yield from each_gpu_run(view, "memory", collect)
    healthy = []
    for one, best in runs:
        against, source = _slow(view, one, best, runs)
        if against:
            trials = [one.seen.trial(way) for way in WAYS]
            shown = [Evidence("envcheck.bandwidth", against, source)]
            yield one.found(CAUSE["slow-memory"], trials, shown, rate=gb_s(best), against=against)
        else:
            healthy.append((one, best))
    if healthy:
        shared = healthy[0][0].shared
        published = {published_memory(one.name) for one, _rate in healthy}
        of = published.pop() if len(published) == 1 else None
        more = f" ({shared}: not judged)" if shared else f", of {gb_s(of)} published" if of else ""
        rates = spread_of([rate for _one, rate in healthy])
        yield Passed(f"{several([one for one, _rate in healthy])}{rates}{more}")


def _slow(
    view: SnapshotView, one: Measured, best: float, runs: list[tuple[Measured, float]]
) -> tuple[str, str]:
    """What it is slower than, and where that is from; "" where it is not."""
    if one.shared:
        return "", ""
    device = pci_device(view, one.gpu) if one.gpu else None
    line = memory_line(device.device_id) if device else None
    published = published_memory(one.name) if one.name else None
    peers = usual(one, runs)
    if line is not None and best < line.gb_s:
        more = f", {gb_s(published)} are published" if published else ""
        return f"DCGM passes from {gb_s(line.gb_s)} on{more}", line.source
    if line is None and published is not None and best < _PUBLISHED * published:
        return f"{gb_s(published)} are published", "envcheck/data/gpus.csv"
    if peers is not None and best < _PEERS * peers[0]:
        return f"its {peers[1]} peers reach {gb_s(peers[0])}", "its peers' runs"
    return "", ""

"""Copies between host and GPU: pinned and pageable memory, each way and both, and from each NUMA node."""

import contextlib
import time

from .running import records
from .shared.transfers import host_memory, speed
from .shared.transfers.device import TransferDevice
from .shared.transfers.pattern import area_size, copied
from .shared.transfers.pattern_ptx import RESULT

SYSTEM = "links"
DOCUMENT = "machine"
GPUS = 1
EACH_GPU = True
ALONE = True
DEADLINE = 30.0

_MOST_NODES = 8
_SEED = 12345


def run(_framework, params, tell):
    device = TransferDevice()
    facts = device.evidence()
    if facts["integrated"]:
        raise records.NotApplicable("the GPU shares the host's memory: no link is between them")
    size = area_size(params)
    until = time.monotonic() + params["seconds"] / 2.0
    nodes = host_memory.nodes()
    own = host_memory.node_of(device.address)
    near = [node for node in nodes if node.number == own]
    with tell.trial("device") as trial:
        trial.update(facts)
        trial["nodes"] = len(nodes)
        if own is not None:
            trial["node"] = own
        if near:
            trial["runs_near"] = host_memory.run_on(near[0])
    watch = speed.watch(params, device)
    with device.areas(size, size, RESULT.size) as (first, second, result):
        _pinned(device, size, (first, second, result), watch, tell)
        _pageable(device, size, first, tell)
        if len(nodes) > 1:
            _each_node(device, size, first, nodes[:_MOST_NODES], until, tell)


def _pinned(device, size, areas, watch, tell):
    first, second, result = areas
    with contextlib.ExitStack() as stack:
        pinned = []
        with tell.trial("round trip") as trial:
            pinned += [stack.enter_context(device.pinned(size)) for _ in range(2)]
            there = pinned[0]
            device.write(first, size, _SEED, 0)
            device.fill(second, 0, size)
            device.to_host(there, first, size)
            device.to_device(second, there, size)
            trial["MiB"] = size >> 20
            trial.update(copied(device, second, size, _SEED, result))
        if not pinned:
            return  # and the round trip says why
        there, back = pinned
        ways = (
            ("pinned to the GPU", lambda: device.to_device(first, there, size)),
            ("pinned from the GPU", lambda: device.to_host(there, first, size)),
        )
        for name, copy in ways:
            with tell.trial(name) as trial:
                speed.warm_up(device, copy)
                trial.update(speed.measured(device, copy, size, watch))
                trial.update(watch.taken("pcie_gen", "pcie_width"))
        with tell.trial("pinned both ways") as trial:
            rates = speed.both_ways(
                device,
                lambda stream: device.to_device(first, there, size, stream),
                lambda stream: device.to_host(back, second, size, stream),
                size,
            )
            trial.update(rates)


def _pageable(device, size, area, tell):
    with _memory(size) as memory:
        for name, copy in _ways("pageable", device, area, memory):
            with tell.trial(name) as trial:
                trial.update(speed.measured(device, copy, size))


def _each_node(device, size, area, nodes, until, tell):
    for node in nodes:
        if time.monotonic() > until:
            return
        with _memory(size, node) as memory:
            lies = memory.lies_on()
            for name, copy in _ways("node %d" % node.number, device, area, memory):
                with tell.trial(name) as trial:
                    if lies not in (None, node.number):
                        raise records.NotSupported(
                            "no memory could be had there, but on node %d" % lies
                        )
                    trial["node"] = node.number
                    trial["placement_seen"] = lies is not None
                    with device.registered(memory.address, size):
                        trial.update(speed.measured(device, copy, size))


def _ways(name, device, area, memory):
    return (
        (name + " to the GPU", lambda: device.to_device(area, memory.address, memory.size)),
        (name + " from the GPU", lambda: device.to_host(memory.address, area, memory.size)),
    )


@contextlib.contextmanager
def _memory(size, node=None):
    memory = host_memory.HostMemory(size, node)
    try:
        yield memory
    finally:
        memory.close()

"""How each two GPUs reach each other."""

from ..facts import unavailable
from . import labels as w
from .binding import NotThere, reason_fact

MAX_GPUS = 16  # 120 pairs
_READ = 0  # NVML_P2P_CAPS_INDEX_READ


def pairs(nvml, opened):
    """Every pair of ``opened``, a list of (handle, PCI address): a list, or why there is none."""
    if len(opened) > MAX_GPUS:
        return unavailable("not-collected", "%d GPUs are too many pairs to ask for" % len(opened))
    found = []
    for position, (one, address) in enumerate(opened):
        for other, other_address in opened[position + 1 :]:
            found.append(_pair(nvml, one, other, (address, other_address)))
    return found


def _pair(nvml, one, other, addresses):
    first, second = sorted(addresses)
    return {
        "first": first,
        "second": second,
        "level": _ask(nvml, w.TOPOLOGY, "nvmlDeviceGetTopologyCommonAncestor", one, other),
        "p2p_read": _ask(nvml, w.P2P, "nvmlDeviceGetP2PStatus", one, other, _READ),
    }


def _ask(nvml, table, function, *arguments):
    try:
        number = nvml.call(function, *arguments)
        if number not in table:
            raise NotThere("not-supported", "number %s has no name here" % number)
        return table[number]
    except Exception as error:
        return reason_fact(error)

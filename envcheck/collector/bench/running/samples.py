"""GpuSamples (facts/telemetry.py) of several pieces put together, and bounded: neighbours become one."""

MOST = 600  # samples of a GPU and row
_BITS = ("throttle_reasons",)
_MOST = ("other_processes",)


def joined(before, more, most=MOST):
    """The samples of both, GPU by GPU: [GpuSamples]. ``more`` came later."""
    found = {one["gpu"]: one for one in before}
    for one in more:
        here = found.get(one["gpu"])
        found[one["gpu"]] = bounded(one if here is None else _after(here, one), most)
    return [found[gpu] for gpu in sorted(found)]


def bounded(samples, most=MOST):
    """At most so many: as often as it takes, two neighbours become one."""
    while len(samples["seconds"]) > most:
        samples = _halved(samples)
    return samples


def _after(first, second):
    values = {}
    for name in sorted(set(first["values"]) | set(second["values"])):
        values[name] = []
        for one in (first, second):
            values[name] += one["values"].get(name, [None] * len(one["seconds"]))
    return {
        "gpu": first["gpu"],
        "seconds": first["seconds"] + second["seconds"],
        "values": values,
    }


def _halved(samples):
    times = [round(sum(pair) / len(pair), 3) for pair in _pairs(samples["seconds"])]
    values = {
        name: [
            _one(name, [value for value in pair if value is not None]) for pair in _pairs(column)
        ]
        for name, column in samples["values"].items()
    }
    return {"gpu": samples["gpu"], "seconds": times, "values": values}


def _pairs(column):
    return [column[place : place + 2] for place in range(0, len(column), 2)]


def _one(name, values):
    if not values:
        return None
    if name in _BITS:
        bits = 0
        for value in values:
            bits |= int(value)
        return bits
    if name in _MOST:
        return max(values)
    return sum(values) / float(len(values))

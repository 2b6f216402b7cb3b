"""All machines at once: the collectives of training, by size, as long as there is time."""

from .pair import Link

SIZES = (64 << 10, 1 << 20)  # bytes of each rank
GPU_SIZES = (1 << 20, 64 << 20)
_REPEATS = 3


def run(torch, spec, tell):
    """spec: as of a pair, and "size": how many machines. Reports {"collective", "bytes", "seconds": its best,
    "wrong"}, or the "reason" why this framework has none."""
    size = spec["size"]
    link = Link(torch, spec["rank"], size, spec["place"], spec["seconds"], spec["gpu"], tell)
    for length in SIZES if link.device.type == "cpu" else GPU_SIZES:
        for name in COLLECTIVES:
            _try(link, name, length - length % (4 * size), size)


def _try(link, name, length, size):
    tell, found = link.tell, {"collective": name, "bytes": length}
    tell.stage("%s %d" % (name, length), "step")
    took = 0.0
    for _ in range(_REPEATS):
        go_on = link.word(int(link.fits(3 * took, 0.9)))
        link.dist.broadcast(go_on, 0)  # the first rank decides for all
        if not go_on.item():
            break
        data = link.numbers(length, link.rank)
        link.dist.barrier()
        began = link.now()
        try:
            result, expected = COLLECTIVES[name](link, data, size)
        except (AttributeError, RuntimeError, NotImplementedError, ValueError) as error:
            if "upport" not in str(error) and not isinstance(error, AttributeError):
                raise
            found["reason"] = str(error)[:200]
            break
        took = link.now() - began
        found["seconds"] = min(took, found.get("seconds", 1e9))
        found["wrong"] = found.get("wrong", 0) + int((result != expected).sum())
    if len(found) > 2:
        tell.result(found, "collective")


def _all_reduce(link, data, size):
    link.dist.all_reduce(data)
    return data, link.numbers(4 * len(data)) * size + size * (size - 1) // 2


def _all_gather(link, data, size):
    parts = [link.empty(4 * len(data)) for _ in range(size)]
    link.dist.all_gather(parts, data)
    expected = [link.numbers(4 * len(data), rank) for rank in range(size)]
    return link.torch.cat(parts), link.torch.cat(expected)


def _reduce_scatter(link, data, size):
    part = link.empty(4 * len(data) // size)
    link.dist.reduce_scatter(part, list(data.chunk(size)))
    whole = link.numbers(4 * len(data)) * size + size * (size - 1) // 2
    return part, whole.chunk(size)[link.rank]


def _all_to_all(link, data, size):
    result = link.empty(4 * len(data))
    link.dist.all_to_all_single(result, data)
    mine = link.numbers(4 * len(data)).chunk(size)[link.rank]
    return result, link.torch.cat([mine + rank for rank in range(size)])


COLLECTIVES = {
    "all-reduce": _all_reduce,
    "all-gather": _all_gather,
    "reduce-scatter": _reduce_scatter,
    "all-to-all": _all_to_all,
}

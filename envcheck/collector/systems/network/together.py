"""All machines at once: the collectives of training, by size, as long as there is time."""

SIZES = (64 << 10, 1 << 20)  # bytes of each rank
GPU_SIZES = (1 << 20, 64 << 20)
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
_REPEATS = 3


def run(join, spec, tell):
    """spec: as of a pair, and "size": how many machines. Reports {"collective", "bytes", "seconds": its best,
    "wrong"}, or the "reason" why this framework has none."""
    link = join(spec["rank"], spec["size"], spec["place"], spec["seconds"], spec["gpu"], tell)
    for length in SIZES if link.gpu is None else GPU_SIZES:
        for name in COLLECTIVES:
            _try(link, name, length - length % (8 * link.size))  # whole parts
    return link


def _try(link, name, length):
    tell, found = link.tell, {"collective": name, "bytes": length}
    tell.stage("%s %d" % (name, length), "step")
    took = 0.0
    for _ in range(_REPEATS):
        if not link.word(int(link.fits(3 * took, 0.9)), 0):  # the first rank decides for all
            break
        data = link.ready(link.numbers(length, link.rank))
        link.gather()
        began = link.now()
        try:
            result = link.collective(name, data)
        except Exception as error:
            if "upport" not in str(error) and not isinstance(error, AttributeError):
                raise
            found["reason"] = str(error)[:200]
            break
        took = link.now() - began
        found["seconds"] = min(took, found.get("seconds", 1e9))
        found["wrong"] = found.get("wrong", 0) + link.differ(result, _expected(link, name, length))
    if len(found) > 2:
        tell.result(found, "collective")


def _expected(link, name, length):
    """What each rank is to have in the end, as all began with ``numbers(length, rank)``."""
    size = link.size
    if name == "all-gather":
        return link.joined([link.numbers(length, rank) for rank in range(size)])
    whole = link.numbers(length)
    total = whole * size + size * (size - 1) // 2
    own = slice(len(whole) // size * link.rank, len(whole) // size * (link.rank + 1))
    if name == "all-to-all":
        return link.joined([whole[own] + rank for rank in range(size)])
    return total[own] if name == "reduce-scatter" else total

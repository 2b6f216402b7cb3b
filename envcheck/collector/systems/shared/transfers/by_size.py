"""The same copy or all-reduce with 8 bytes, with 64, …: what ``envcheck bench`` asks systems for."""

from ....kernels import timing

SIZES = tuple(8**power for power in range(1, 11))  # bytes: to 1 GiB
LARGEST = SIZES[-1]
SUFFIX = " by size"  # of a trial's name
_SECONDS = 0.01  # of one size
_LIMIT = 0.3


def key(size):
    """The name of the evidence: seconds of one with so many bytes."""
    return "seconds_%d_bytes" % size


def copies(trial, device, copy_of, most):
    """Tell the median seconds of each size up to ``most``. copy_of(size): a function that queues one."""
    for size in SIZES:
        if size <= most:
            told = timing.measure(device, copy_of(size), seconds=_SECONDS, limit=_LIMIT)
            trial[key(size)] = told["seconds"]


def slowest_rank(ranks):
    """[(bytes, seconds)]: the slowest rank in the best round. ranks: of each, {bytes: [seconds]}."""
    for size in sorted(ranks[0], key=int) if ranks else ():
        if all(size in one for one in ranks):
            best = min(max(of_all) for of_all in zip(*[one[size] for one in ranks]))
            if best > 0:
                yield int(size), best

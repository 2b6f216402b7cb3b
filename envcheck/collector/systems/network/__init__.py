"""The network between machines, tested in the target by what training itself would use: torch.distributed, or
TensorFlow's Horovod.

``work.py`` is the program of one machine. It imports the framework once, meets the other machines
(``meeting.py``), and then forks a child for each round: a pair of machines (``pair.py``), and at last all of
them (``together.py``). Rounds begin at fixed times after the common start, by each machine's monotonic clock:
a machine that hangs delays no other, and no round needs a machine other than the two that it tests.
"""

_ALL = 33  # machines of which every pair meets


def rounds(machines):
    """Which rounds of the circle are run: all, or of many machines so few that each meets 2 log2(n) others,
    at distances that halve: the middle of the circle, its quarters, its eighths, …"""
    last = machines + machines % 2 - 1
    if machines <= _ALL:
        return list(range(last))
    wanted, found, step = 2 * (machines - 1).bit_length(), [], last / 2.0
    while len(found) < wanted:
        at = [int(step * place) for place in range(1, int(last / step) + 1, 2)]
        found += [one for one in at if one < last and one not in found]
        step /= 2
    return found[:wanted]


def partner(index, number, machines):
    """The partner of a machine in a round of the circle method; None where it rests. Each pair of machines
    meets exactly once in the rounds 0 … n - 2 (n: ``machines``, made even)."""
    even = machines + machines % 2
    last = even - 1
    if index == last:  # the one that the circle leaves over: 2 x = number (mod last)
        found = number * (even // 2) % last
    else:
        found = (number - index) % last
        found = last if found == index else found
    return found if found < machines else None

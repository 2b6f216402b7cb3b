"""Variants of one step, timed in turns: a clock that rises or falls meets all of them alike."""

import time

ROUNDS = 3
_ROUND = 0.03  # seconds of one variant
_MOST = 100  # steps of one variant in a round


def milliseconds(variants, rounds=ROUNDS, slice_seconds=_ROUND):
    """{name: of one step, the median of the rounds}. variants: [(name, run)]; run(count) gives seconds."""
    counts, seen = {}, {}
    for name, run in variants:
        run(2)  # libraries are loaded, algorithms chosen
        one = max(run(2) / 2, 1e-6)
        counts[name] = int(min(_MOST, max(1, slice_seconds / one)))
        seen[name] = []
    for _ in range(rounds):
        for name, run in variants:
            seen[name].append(run(counts[name]) / counts[name])
    return {name: round(1000.0 * _median(times), 4) for name, times in seen.items()}


def host_clock(step, wait):
    """run(count) of a step whose end ``wait`` awaits."""

    def run(count):
        wait()
        began = time.perf_counter()
        for _ in range(count):
            step()
        wait()
        return time.perf_counter() - began

    return run


def _median(values):
    return sorted(values)[len(values) // 2]

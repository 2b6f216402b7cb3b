"""Times of matrix products by CUDA events, alternating with a reference so that both see the same clocks."""

import contextlib
import math
import time

from .summaries import median, spread

# Long enough for clocks to settle and for NVML to be asked a few times; short enough for six modes.
SECONDS = 0.15
LIMIT = 3.0  # whatever the rounds take
_SEGMENT = 0.015  # seconds that the product runs in a round, at least
_MOST_REPEATS = 32
_ROUNDS = (3, 10)
_PAUSE = 0.0002  # seconds between two looks at an event


def plan(one, reference, seconds, limit):
    """(rounds, products a round), from the times of one product and one reference product (0.0: none).

    Product and reference get about the same time in a round, and all rounds about ``seconds``; where
    three rounds take longer than ``limit``, there are fewer, but always one.
    """
    one = max(one, 1e-6)
    repeats = math.ceil(max(reference, _SEGMENT) / one)
    repeats = max(1, min(_MOST_REPEATS, repeats))
    length = reference + repeats * one
    rounds = max(_ROUNDS[0], min(_ROUNDS[1], int(seconds / length)))
    return max(1, min(rounds, int(limit / length))), repeats


def measure(driver, product, reference=None, sampler=None, seconds=SECONDS, limit=LIMIT):
    """Times of ``product``, a function that starts one matrix product on the default stream.

    reference: the same for the product that it alternates with. Returns {"runs", "seconds" (median of one
    product), "spread", "reference_seconds" (median, None without)}. Raises what the products and the
    driver raise.
    """
    with marks(driver) as mark:
        one = _once(driver, mark, product)
        other = _once(driver, mark, reference) if reference else 0.0
        rounds, repeats = plan(one, other, seconds, limit)
        started = [_start(mark, product, reference, repeats) for _ in range(rounds)]
        if sampler is not None:
            _watch(driver, [after for _before, after in started], sampler)
        driver.wait(started[-1][1][-1])
        times = [
            driver.elapsed(first, second)
            for _before, after in started
            for first, second in zip(after, after[1:])
        ]
        others = [driver.elapsed(before, after[0]) for before, after in started]
    return {
        "runs": len(times),
        "seconds": median(times),
        "spread": spread(times),
        "reference_seconds": median(others) if reference else None,
    }


@contextlib.contextmanager
def marks(driver):
    """A function that records an event, ``mark(stream)``; all of them go away at the end."""
    made = []

    def mark(*stream):
        made.append(driver.event())
        driver.record(made[-1], *stream)
        return made[-1]

    try:
        yield mark
    finally:
        with contextlib.suppress(Exception):  # of a dead context: report what killed it
            for event in made:
                driver.destroy_event(event)


def _once(driver, mark, product):
    """Seconds of one product after another that warms up."""
    product()
    first = mark()
    product()
    second = mark()
    driver.wait(second)
    return driver.elapsed(first, second)


def _start(mark, product, reference, repeats):
    """Queue one round: (event before the reference, [events before, between and after the products])."""
    before = mark()
    if reference:
        reference()
    after = [mark()]
    for _ in range(repeats):
        product()
        after.append(mark())
    return before, after


def _watch(driver, rounds, sampler):
    """Sample while products run (not while the reference does), until the last is done."""
    for marks in rounds:
        while not driver.query(marks[-1]):
            if driver.query(marks[0]):
                sampler.sample()
            time.sleep(_PAUSE)

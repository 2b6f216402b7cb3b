"""The rate of level 0: multiply-adds a clock on each multiprocessor, by the multiprocessors' own clocks.

That number depends neither on the clock's frequency nor on power limits nor on how many multiprocessors
there are. CUDA events around the same launches give the time, and with it the clock that was there.
"""

import ctypes
import math
import time

from . import ptx_rate
from .memory import borrowed
from .random_words import random_words
from .summaries import median, spread
from .timing import marks

SECONDS = 0.008  # of one launch
RUNS = 3
_TRIAL = 256  # iterations of the first launch
_WARM_UP = 0.3  # seconds at most, of launches that only warm up
_RISING = 1.02  # times the clock of the launch before: it is on its way up
_LOW = 0.5  # of the highest clock: below, it may not have begun to rise
_MOST = 1 << 24  # iterations
_CLOCK_MHZ = 1500.0  # where the driver names none

CLOCK_SOURCE = "clock64 over CUDA events"


def measure(driver, module, instruction, sampler, clock_max_mhz=None):
    """The Rate record of an instruction. Raises CudaError, and ValueError for clocks that say nothing.

    sampler: takes one sample while the last launch runs.
    """
    made = ptx_rate.shape(instruction)
    blocks = driver.multiprocessors
    results = blocks * (made.threads // ptx_rate.WARP) * ptx_rate.RESULT.size
    remains = blocks * made.threads * ptx_rate.REMAINS
    operands = random_words(instruction.input_type, ptx_rate.operand_bytes(made))
    with borrowed(driver, (len(operands), results, remains)) as addresses:
        driver.upload(addresses[0], operands)
        loop = _Loop(driver, module, made, addresses, results)
        _seconds, units = loop.run(_TRIAL)
        ticks = median([unit.ticks for unit in units])
        clock = 1e6 * (clock_max_mhz or _CLOCK_MHZ)
        iterations = max(1, min(_MOST, int(SECONDS * clock * _TRIAL / ticks)))
        _warm_up(loop, iterations, clock_max_mhz or 0.0)
        sampler.reset()
        runs = [loop.run(iterations) for _ in range(RUNS - 1)]
        runs.append(loop.run(iterations, sampler))
    return _record(runs, made, blocks, iterations, sampler)


def _warm_up(loop, iterations, most_mhz):
    """Launch until the clock rises no more: an idle GPU takes a while to leave its lowest one."""
    end = time.monotonic() + _WARM_UP
    clock = 0.0
    while time.monotonic() < end:
        seconds, found = loop.run(iterations)
        before, clock = clock, _clock_mhz(seconds, found) if seconds > 0 else math.inf
        if clock <= _RISING * before and clock >= _LOW * most_mhz:
            return


def _clock_mhz(seconds, found):
    """MHz of a launch."""
    return 1e-6 * median([unit.ticks for unit in found]) / seconds


class Unit(object):
    """A multiprocessor: how many blocks it ran, and the clocks from the first's begin to the last's end."""

    def __init__(self, begins, ends, blocks):
        self.blocks = blocks
        self.ticks = max(ends) - min(begins)


def units(data, warps):
    """[Unit] of a launch's results, given as bytes. Raises ValueError where a clock stood still."""
    found = {}
    rows = list(ptx_rate.RESULT.iter_unpack(data))
    for begin, end, number in rows:
        found.setdefault(number, []).append((begin, end))
    made = []
    for times in found.values():
        begins, ends = zip(*times)
        made.append(Unit(begins, ends, len(times) / float(warps)))
    if min(unit.ticks for unit in made) <= 0:
        raise ValueError("the clock of a multiprocessor stood still")
    return made


class _Loop(object):
    """The rate kernel, ready to be launched: one block for each multiprocessor."""

    def __init__(self, driver, module, made, addresses, results):
        self._driver = driver
        self._made = made
        self._addresses = addresses
        self._results = results
        self._function = module.function(ptx_rate.NAME)
        self._shared = driver.whole_multiprocessor(self._function)

    def run(self, iterations, sampler=None):
        """(seconds by CUDA events, [Unit]) of one launch."""
        driver = self._driver
        arguments = list(map(ctypes.c_uint64, self._addresses)) + [ctypes.c_uint32(iterations)]
        blocks, threads = driver.multiprocessors, self._made.threads
        with marks(driver) as mark:
            first = mark()
            driver.launch(self._function, blocks, threads, arguments, shared=self._shared)
            last = mark()
            if sampler is not None:
                sampler.sample()
            driver.wait(last)
            seconds = driver.elapsed(first, last)
        data = driver.download(self._addresses[1], self._results)
        return seconds, units(data, self._made.threads // ptx_rate.WARP)


def _record(runs, made, blocks, iterations, sampler):
    """Fields of a Rate, from [(seconds, [Unit])]."""
    of_block = made.fma * (made.threads // ptx_rate.WARP) * iterations
    times = [seconds for seconds, _units in runs]
    if not all(0 < seconds < math.inf for seconds in times):  # which NaN is not, either
        raise ValueError("CUDA events saw no time pass")
    seconds = median(times)
    watched = sampler.facts()
    fields = {name: watched[name] for name in ("clock_event_reasons", "power_w", "temperature_c")}
    fields.update(
        timer="clock64",
        runs=len(runs),
        seconds=seconds,
        spread=spread(times),
        fma_per_clock_per_sm=median(
            [median([unit.blocks * of_block / unit.ticks for unit in found]) for _s, found in runs]
        ),
        multiprocessors=max(len(found) for _seconds, found in runs),
        tflops=2e-12 * of_block * blocks / seconds,
        clock_mhz=median([_clock_mhz(*run) for run in runs]),
        clock_source=CLOCK_SOURCE,
    )
    return fields

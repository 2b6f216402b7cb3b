"""The inside of a GPU's process: products and memory patterns until SIGTERM, each one compared.

Results, by their key: "ready", what it computes and how; "round", {"number", "product", "digest"}: the first
result of new operands; "tick", {"t", "products", "passes"}: how far it is, about once a second; "wrong", a
result that is not what it was; "more", the number of words of one more.
"""

import signal
import time

from ..cuda.libcuda import CudaError
from ..systems.shared.transfers.pattern import CHUNK
from ..systems.shared.transfers.pattern_ptx import FACTOR, MASK, RESULT, STEP
from ..worker.messages import Ended, describe
from .products import MOST_AT_ONCE, SoakDevice, product

ROUND = 20.0  # seconds of products with the same operands
BATCH = 0.3  # seconds of products between two waits, about
TICK = 1.0  # seconds
MOST_REPORTED = 100  # wrong results that are reported one by one
_AREA = 64 << 20  # bytes of memory that are looked at and written at a time
_SHARE = 0.1  # of the time that patterns take, about
_FREE = 0.8  # of the free memory that patterns fill


class Died(Ended):
    """The GPU's context broke."""

    outcome = "died"


def work(params, tell):
    """params: {"libraries" (the target's cuBLAS or None), "required", "memory_mib"}."""
    asked = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    try:
        _Soaking(params, tell).run(lambda: bool(asked))
    except CudaError as error:
        if error.code in (None, 2):  # out of memory is no death
            raise
        raise Died(describe(error))


class _Soaking(object):
    def __init__(self, params, tell):
        self._tell = tell
        self._wrong_ones = 0
        self.device = SoakDevice()
        self.product = product(self.device, params["libraries"], params["required"])
        self.memory = _Patterns(self.device, params["memory_mib"])
        ready = {
            "level": self.product.level,
            "mode": self.product.mode,
            "call": self.product.call,
            "tflop": self.product.flop / 1e12,
            "words": self.product.words,
            "memory_mib": self.memory.size >> 20,
            "library": getattr(self.product, "library", ""),
            "library_version": getattr(self.product, "library_version", ""),
        }
        tell.result(ready, "ready")

    def run(self, is_over):
        products, at_once, ticked, rounds, until = 0, 1, None, 0, 0.0
        while not is_over():
            if time.monotonic() >= until:
                products += 1
                self._round(rounds, products)
                rounds, until = rounds + 1, time.monotonic() + ROUND
            began = time.monotonic()
            self._products(at_once, products)
            took = max(time.monotonic() - began, 1e-6)
            products += at_once
            self.memory.step(_SHARE * took, self._wrong)
            now = time.monotonic()
            if ticked is None or now - ticked >= TICK:
                ticked = now
                self._tick(now, products)
            wanted = int(at_once * BATCH / took)
            at_once = max(1, min(MOST_AT_ONCE, 2 * at_once, wanted))
        self._tick(time.monotonic(), products)

    def _tick(self, now, products):
        tick = {"t": now, "products": products, "passes": self.memory.passes}
        self._tell.result(tick, "tick")

    def _round(self, number, product):
        first = self.product.begin(number)
        wrong = first.pop("wrong")
        if number == 0:
            self._tell.begin()
        self._tell.result(dict(first, number=number, product=product), "round")
        for what, seen in wrong:
            self._wrong(what, product, seen._asdict())

    def _products(self, number, before):
        device, product = self.device, self.product
        device.forget()
        for which in range(number):
            product.start(which)
            product.compare(which)
        device.synchronize()
        for which, words, place, found, wanted in device.differences(number):
            seen = product.difference(which, words, place, found, wanted)._asdict()
            self._wrong("product", before + which + 1, seen)

    def _wrong(self, what, number, seen):
        """All are counted, and the first are reported one by one."""
        self._wrong_ones += 1
        if self._wrong_ones > MOST_REPORTED:
            self._tell.result(seen["words"], "more")
        else:
            one = dict(seen, what=what, product=number, t=time.monotonic())
            self._tell.result(one, "wrong")


class _Patterns(object):
    """Most of the memory holds a pattern: each part is looked at, and written again the other way round."""

    def __init__(self, device, mib):
        self._device = device
        room = device.memory_free() * _FREE if mib is None else mib << 20
        self._areas = []
        self.size = 0
        self.passes = 0
        self._next = 0
        self._mask = 0
        self._result = device.allocate(RESULT.size)
        self._allocate(int(room))
        for number, (pointer, size) in enumerate(self._areas):
            device.write(pointer, size, _seed(number), 0)
        device.synchronize()

    def _allocate(self, room):
        while self.size + STEP <= room:
            size = min(CHUNK, (room - self.size) // STEP * STEP)
            try:
                pointer = self._device.allocate(size)
            except CudaError:
                break
            for start in range(0, size, _AREA):
                self._areas.append((pointer + start, min(_AREA, size - start)))
            self.size += size

    def step(self, seconds, wrong):
        """Look at some parts, one at the least. wrong(what, number, what was seen)."""
        until = time.monotonic() + seconds
        while self._areas:
            pointer, size = self._areas[self._next]
            seed = _seed(self._next)
            words, first, last, bits = self._device.wrong(
                pointer, size, seed, self._mask, self._result
            )
            if words:
                seen = {"words": words, "bits": bits, "address": pointer + first}
                wrong("memory", self.passes, dict(seen, last_address=pointer + last + 7))
            self._device.write(pointer, size, seed, self._mask ^ MASK)
            self._next += 1
            if self._next == len(self._areas):
                self._next, self._mask = 0, self._mask ^ MASK
                self.passes += 1
            if time.monotonic() >= until:
                return


def _seed(number):
    """Of an area: no word of it is a word of another one."""
    return number * (_AREA // 8) * FACTOR & MASK

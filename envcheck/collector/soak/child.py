"""The inside of a GPU's process: products and memory patterns until it is told to end, each one compared.

Lines of JSON: {"ready": {...}} what it computes and how; {"round": {"number", "product", "digest"}} the first
result of new operands; {"tick": {"t", "products", "passes"}} how far it is, about once a second;
{"wrong": {...}} a result that is not what it was; {"failed": {"outcome", "reason"}} at an end that nobody
asked for.
"""

import json
import os
import signal
import sys
import time

from ..cuda.libcuda import CudaError
from ..facts import dumps
from ..kernels.failures import one_line
from ..runtime import line_pipe
from ..runtime.child import PACKAGE
from ..transfers.pattern import CHUNK
from ..transfers.pattern_ptx import FACTOR, MASK, RESULT, STEP

BOOTSTRAP = PACKAGE + (
    "from envcheck.collector.runtime.shadows import hidden\n"
    "with hidden():\n"
    "    from envcheck.collector.soak.child import main\n"
    "main(sys.argv[2])\n"
)
ROUND = 20.0  # seconds of products with the same operands
BATCH = 0.3  # seconds of products between two waits, about
TICK = 1.0  # seconds
MOST_TOLD = 100  # wrong results that are told one by one
_AREA = 64 << 20  # bytes of memory that are looked at and written at a time
_SHARE = 0.1  # of the time that patterns take, about
_FREE = 0.8  # of the free memory that patterns fill


def main(params):
    """params: JSON of {"pipe", "libraries" (the target's cuBLAS or None), "required", "memory_mib"}."""
    os.dup2(2, 1)  # what a library prints is no record
    params = json.loads(params)
    descriptor = line_pipe.open_to_write(params["pipe"], waits=True)

    def tell(**record):
        os.write(descriptor, dumps(record).encode("ascii") + b"\n")

    asked = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    code = 0
    try:
        _Soaking(params, tell).run(lambda: bool(asked))
    except BaseException as error:
        code = 1
        tell(failed={"outcome": _outcome(error), "reason": _words(error)})
    sys.stderr.flush()
    os._exit(code)


def _outcome(error):
    """A dead context is the GPU's death; what fails before anything ran is none."""
    known = isinstance(error, CudaError) and error.code not in (None, 2)
    return "died" if known else "error"


def _words(error):
    return one_line("%s" % error or type(error).__name__)[:300]


class _Soaking(object):
    def __init__(self, params, tell):
        from .products import SoakDevice, product

        self._tell = tell
        self._told = 0
        self.device = SoakDevice()
        self.product = product(self.device, params["libraries"], params["required"])
        self.memory = _Patterns(self.device, params["memory_mib"])
        told = {
            "level": self.product.level,
            "mode": self.product.mode,
            "call": self.product.call,
            "tflop": self.product.flop / 1e12,
            "words": self.product.words,
            "memory_mib": self.memory.size >> 20,
            "library": getattr(self.product, "library", ""),
            "library_version": getattr(self.product, "library_version", ""),
        }
        tell(ready=told)

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
                self._tell(tick={"t": now, "products": products, "passes": self.memory.passes})
            wanted = int(at_once * BATCH / took)
            at_once = max(1, min(self.most(), 2 * at_once, wanted))
        now = time.monotonic()
        self._tell(tick={"t": now, "products": products, "passes": self.memory.passes})

    def _round(self, number, product):
        told = self.product.begin(number)
        wrong = told.pop("wrong")
        self._tell(round=dict(told, number=number, product=product))
        for what, seen in wrong:
            self._wrong(what, product, seen._asdict())

    @staticmethod
    def most():
        from .products import MOST_AT_ONCE

        return MOST_AT_ONCE

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
        """Of many all are counted, and the first are told one by one."""
        self._told += 1
        if self._told > MOST_TOLD:
            self._tell(more={"t": time.monotonic(), "words": seen["words"]})
        else:
            self._tell(wrong=dict(seen, what=what, product=number, t=time.monotonic()))


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

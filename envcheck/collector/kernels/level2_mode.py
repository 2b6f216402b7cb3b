"""One mode in one setting at L2: the stages of its evidence, and what becomes of an exception in one."""

import math
import os
import time

from ..facts import unavailable
from . import TYPES, cupti, matrices, records
from .adapter import explain
from .failures import NotSupported
from .sampler import Sampler
from .summaries import median, spread
from .vectors import SETS, SIZES, VECTORS, encode, pack

REFERENCES = ("switch-off", "control")  # the settings of what the others are compared with

_BATCH = 0.025  # seconds of products between two looks at the clock, at least
_MOST = 512  # products in a batch
_ROUNDS = 9
_SECONDS = 1.0  # of timing; less where the time left for this mode is less
_SHARE = 0.6  # of the mode's time that its timing may take
_NO_TIME = "no time left"


class Runner(object):
    """Runs modes on an adapter's device, and tells of each stage."""

    def __init__(self, adapter, params, teller, n, remaining):
        """n: rows of the matrices. remaining(): seconds until the process's time is used up."""
        self._adapter = adapter
        self._params = params
        self._teller = teller
        self._n = n
        self._remaining = remaining
        self.compiling = 0.0  # seconds so far, which no product's time is to pay for
        self._ran = []  # ModeRuns
        self._sampler = Sampler(params["pynvml"], params["pci_address"], params["uuid"])

    def run(self, mode, setting, seconds):
        """Bits and rate of one mode in one setting. seconds: its part of the time."""
        seconds = min(_SECONDS, _SHARE * seconds)
        record = {"mode": mode, "setting": setting, "outcome": "ok", "reason": "", "hardware": {}}
        outcome, reason, dead = self._compile(record)
        if outcome == "ok" and not dead:
            outcome, reason, dead = self._stage(record, "bits", lambda: self._bits(record))
        timed = outcome == "ok" and not dead
        if timed:
            self._teller.mode(**record)
            outcome, reason, dead = self._stage(record, "rate", lambda: self._rate(record, seconds))
        if timed and not dead and outcome != "ok":
            record["rate_reason"], outcome, reason = reason, "ok", ""
        record.update(outcome="error" if dead else outcome, reason=reason)
        self._tell(record, dead)
        if outcome == "ok":
            self._ran.append(record)

    def more(self):
        """The kernels' names of all that ran.

        Afterwards: CUPTI stays attached to the process, and may cost the times that follow.
        """
        for record in self._ran if self._params["names"] else ():
            dead = ""
            if self._remaining() <= 0:
                reason = _NO_TIME
            else:
                _, reason, dead = self._stage(
                    record, "names", lambda record=record: self._names(record)
                )
            if reason:
                record["hardware"]["kernel_names"] = unavailable("error", reason)
            self._tell(record, dead)

    def _stage(self, record, stage, work):
        """(outcome, reason, why nothing works on the device any more) of one stage."""
        self._teller.begin(record["mode"], stage, record["setting"])
        try:
            work()
            outcome, reason = "ok", ""
        except Exception as error:
            outcome, reason = explain(error, self._adapter.function)
        # Out of the handler: the exception held on to the matrices.
        dead = self._dead(outcome)
        return outcome, reason or dead, dead

    def _dead(self, outcome):
        try:
            self._adapter.release()
            if outcome != "ok":
                self._adapter.ping()
        except Exception as error:
            found, reason = explain(error, "a trivial operation")
            return "" if found == "out-of-memory" else reason
        return ""

    def _tell(self, record, dead):
        self._teller.mode(**record)
        if dead:
            os._exit(records.DEAD_CONTEXT)

    # -- the stages

    def _compile(self, record):
        """(outcome, reason, why nothing works any more), as of a stage; nothing where nothing is compiled."""
        if not self._adapter.compiles:
            return "ok", "", ""
        began = time.monotonic()
        try:
            return self._stage(record, records.COMPILE, lambda: self._compile_both(record))
        finally:
            self.compiling += time.monotonic() - began

    def _compile_both(self, record):
        """The product, and the one that it is timed beside."""
        self._product(record["mode"], record["setting"]).once()
        reference, _why = self._reference(record["setting"])
        if reference is not None:
            reference.once()

    def _product(self, mode, setting, vectors=None):
        """A Product of a mode's matrices: of these vectors, or random."""
        n, k = self._n, self._adapter.length(setting, self._n)
        kind = TYPES[mode][-1][0]
        data = None
        if vectors is not None:
            data = matrices.left(vectors, kind, n, k), right_rows(vectors, kind, k, n)
        return self._adapter.product(setting, kind, (n, n, k), data)

    def _bits(self, record):
        mode, setting = record["mode"], record["setting"]
        types = TYPES[mode][-1]  # a framework's product is of its operands' type
        vectors = [VECTORS[name] for name in SETS[types]]
        product = self._product(mode, setting, vectors)
        data = product.result()
        record["call"] = self._adapter.call(setting)
        m, n, k = product.shape
        record["signatures"] = matrices.signatures(vectors, types[0], types[1], data, m, n, k)

    def _rate(self, record, seconds):
        product = self._product(record["mode"], record["setting"])
        reference, why = self._reference(record["setting"])
        one = _warm(product)
        other = _warm(reference) if reference is not None else 0.0
        count, count_other = _count(one), _count(other)
        rounds = int(seconds / max(count * one + count_other * other, 1e-9))
        rounds = max(1, min(_ROUNDS, rounds))
        product.seconds(count)  # so that a batch is ready too, and the clocks are up
        self._sampler.reset()
        times, others = [], []
        for _ in range(rounds):
            if reference is not None:
                others.append(reference.seconds(count_other) / count_other)
            times.append(product.seconds(count, self._sampler.sample) / count)
        record["rate"] = dict(
            self._sampler.facts(),
            timer=self._adapter.timer,
            shape=list(product.shape),
            runs=rounds,
            seconds=median(times),
            spread=spread(times) or unavailable("error", "the clock stood still"),
            tflops=_tflops(product.shape, median(times)),
            fp32_tflops=_tflops(reference.shape, median(others)) if reference is not None else why,
        )

    def _reference(self, setting):
        """(the FP32 product that this one alternates with, None), or (None, why there is none)."""
        if setting in REFERENCES:
            return None, unavailable("absent", "it is itself what the others are compared with")
        dead = self._params.get("dead", ())
        if [name for name in REFERENCES if records.key("fp32", name) in dead]:
            return None, unavailable("lost", "a process died of it before")
        try:
            self._adapter.switch(REFERENCES[0])
        except NotSupported as error:
            return None, unavailable("not-supported", str(error))
        return self._product("fp32", REFERENCES[0]), None

    def _names(self, record):
        product = self._product(record["mode"], record["setting"])
        product.once()
        major = (self._adapter.built_cuda() or "").partition(".")[0]
        path = self._params["libraries"]["libcupti"]
        with cupti.kernel_names(path, int(major) if major.isdecimal() else None) as seen:
            product.once()
        record["hardware"]["kernel_names"] = seen.found


def right_rows(vectors, element_type, length, columns):
    """B (length x columns, row-major) as bytes: what matrices.right gives, the other way round."""
    size = SIZES[element_type]
    bands = list(zip(vectors, matrices.bands(columns, len(vectors))))
    cycle = 1
    for vector in vectors:
        cycle = cycle * vector.period // math.gcd(cycle, vector.period)
    rows = []
    for k in range(min(cycle, length)):
        row = []
        for vector, band in bands:
            word = bytes(size)
            if k % vector.period in vector.slots:
                value = vector.b[vector.slots.index(k % vector.period)]
                word = pack(encode(value, element_type), element_type)
            row.append(word * len(band))
        rows.append(b"".join(row))
    return b"".join(rows[k % cycle] for k in range(length))


def _warm(product):
    """Seconds of one product, after one that made everything ready."""
    product.once()
    return product.seconds(1)


def _count(seconds):
    """Products in a batch, from the time of one."""
    return max(1, min(_MOST, math.ceil(_BATCH / max(seconds, 1e-6))))


def _tflops(shape, seconds):
    m, n, k = shape
    return (
        2.0 * m * n * k / seconds / 1e12 if seconds > 0 else unavailable("error", "no time passed")
    )

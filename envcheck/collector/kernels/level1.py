"""Level 1: the target's own cuBLAS, mode by mode; the same call gives the bits, the rate and the names."""

import os
import time

from ..facts import is_unavailable, unavailable
from . import REFERENCE, TYPES, cublas_library, timing
from .cublas import CublasError
from .cupti import kernel_names
from .driver import Driver
from .failures import one_line, outcome
from .operands import Operands, first_size
from .products import Products
from .records import DEAD_CONTEXT, key
from .sampler import Sampler
from .vectors import SETS, VECTORS


def run(params, teller):
    """Tell of each mode in ``params``, which are those of a level's process.

    Raises CudaError where the device cannot be opened.
    """
    facts = {"variables": cublas_library.scrub(os.environ)}
    # What CUDA does by itself from 12.2 on; without it, loading all of cuBLAS's kernels takes a second.
    os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
    driver = Driver()
    driver.open()
    facts.update(driver.facts())
    products, failure = _products(params, driver, facts)
    teller.run(**facts)  # after the libraries: a cold disk takes its time, which is not the modes'
    if products is None:
        for mode in params["modes"]:
            if key(mode) not in params["skip"]:
                teller.mode(mode=mode, outcome=failure[0], reason=failure[1])
    else:
        _Level1(params, teller, driver, products).run()


def _products(params, driver, facts):
    """(the Products of the target's cuBLAS, None), or (None, the outcome and reason of every mode)."""
    version = facts["driver_api_version"]
    driver_major = None if is_unavailable(version) else int(version.split(".")[0])
    paths = params["libraries"]
    try:
        library = cublas_library.load(paths["libcublas"], paths["libcublasLt"], driver_major)
    except cublas_library.NoLibrary as error:
        facts["library"] = unavailable("absent", str(error))
        return None, ("not-supported", one_line("there is no cuBLAS: %s" % error))
    known = ".".join(str(part) for part in library.version)
    facts["library"] = library.path
    facts["library_version"] = known or unavailable("error", "cublasGetProperty gives none")
    try:
        return Products(library, driver.capability), None
    except CublasError as error:
        return None, outcome(error)


class _Level1(object):
    def __init__(self, params, teller, driver, products):
        self._params = params
        self._teller = teller
        self._driver = driver
        self._products = products
        self._end = time.monotonic() + params["seconds"]
        self._sampler = Sampler(params["pynvml"], params["pci_address"], params["uuid"])
        # A reference that died in a process before this one would die here again, in every mode.
        self._reference = REFERENCE not in params.get("dead", ())
        self._records = {}  # mode: ModeRun
        self._operands = None

    def run(self):
        modes = [mode for mode in self._params["modes"] if key(mode) not in self._params["skip"]]
        for mode in modes:
            self._try(mode, self._measure)
        # Afterwards: CUPTI stays attached to the process, and may cost the times that follow.
        for mode in modes:
            if self._records[mode]["outcome"] == "ok":
                self._name(mode)

    def _remaining(self):
        """Seconds until the end."""
        return self._end - time.monotonic()

    def _tell(self, mode):
        self._teller.mode(**self._records[mode])

    def _try(self, mode, work):
        """Do it; what fails becomes this mode's outcome, and ends the process if the context is dead."""
        record = {"mode": mode, "outcome": "ok"}
        self._records[mode] = record
        if self._remaining() <= 0:
            reason = "no time left (%g s for all modes)" % self._params["seconds"]
            record.update(outcome="not-run", reason=reason)
            self._tell(mode)
            return
        try:
            work(mode, record)
        except Exception as error:
            record["outcome"], record["reason"] = outcome(error)
            if mode == REFERENCE:
                self._reference = False
            self._give_up(mode)

    def _give_up(self, mode):
        """Tell a record with a failure in it; leave where every further call would fail too."""
        self._tell(mode)
        if not self._driver.alive():
            os._exit(DEAD_CONTEXT)

    def _measure(self, mode, record):
        self._teller.begin(mode, "bits")
        self._products.require(mode)
        record["call"] = self._products.text(mode)
        if self._operands is None:
            n = first_size(self._driver.multiprocessors, self._driver.memory_free())
            self._operands = Operands(self._driver, n)
        record["signatures"] = []
        for types in TYPES[mode]:
            record["signatures"] += self._bits(mode, types)
        self._teller.mode(**dict(record, rate_reason="it was not timed yet"))
        self._teller.begin(mode, "rate")
        try:
            record["rate"] = self._rate(mode)
        except Exception as error:
            if not self._driver.alive():
                raise
            record["rate_reason"] = outcome(error)[1]
            self._reference = self._reference and mode != REFERENCE
        self._tell(mode)

    def _bits(self, mode, types):
        """The Signature records of one product of a pair of types."""
        vectors = [VECTORS[name] for name in SETS[types]]
        self._operands.fill_pattern(vectors, types[0])
        self._products.starter(mode, self._operands, types)()
        return self._operands.signatures(vectors, types)

    def _rate(self, mode):
        operands, products = self._operands, self._products
        reference = None
        operands.fill_random(TYPES[REFERENCE][0][0])
        if mode != REFERENCE and self._reference:
            reference = products.starter(REFERENCE, operands)
        if TYPES[mode][0][0] != TYPES[REFERENCE][0][0]:
            operands.fill_random(TYPES[mode][0][0])
        self._sampler.reset()
        measured = timing.measure(
            self._driver,
            products.starter(mode, operands),
            reference,
            self._sampler,
            limit=max(0.1, min(timing.LIMIT, self._remaining())),
        )
        fields = _rate_record(measured, operands.n, mode != REFERENCE)
        fields["multiprocessors"] = self._driver.multiprocessors
        fields.update(self._sampler.facts())
        return fields

    def _name(self, mode):
        """Add the kernels' names to a mode's record; a failure costs them alone."""
        found = unavailable("timeout", "no time left")
        if not self._params["names"]:
            found = unavailable("not-collected", "CUPTI was left out")
        elif self._remaining() > 0:
            self._teller.begin(mode, "names")
            try:
                product = self._products.starter(mode, self._operands)
                path = self._params["libraries"]["libcupti"]
                with kernel_names(path, self._products.major) as seen:
                    product()
                    self._driver.synchronize()
                found = seen.found
            except Exception as error:
                found = unavailable("error", outcome(error)[1])
        self._records[mode].setdefault("hardware", {})["kernel_names"] = found
        self._give_up(mode)


def _rate_record(measured, n, with_reference):
    """Fields of a Rate; a product is n^3 fused multiply-adds, two operations each."""
    operations = 2.0 * n**3 / 1e12
    unmeasured = unavailable("error", "the product took no measurable time")
    seconds, spread = measured["seconds"], measured["spread"]
    fields = {
        "timer": "cuda-events",
        "shape": [n, n, n],
        "runs": measured["runs"],
        "seconds": seconds,
        "spread": unmeasured if spread is None else spread,
        "tflops": operations / seconds if seconds > 0 else unmeasured,
    }
    if with_reference:
        between = measured["reference_seconds"]
        if between is None:
            fields["fp32_tflops"] = unavailable("error", "the FP32 products cannot run")
        else:
            fields["fp32_tflops"] = operations / between if between > 0 else unmeasured
    return fields

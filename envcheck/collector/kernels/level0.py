"""Level 0, the hardware through the driver alone: PTX that the driver compiles, no toolkit, no library."""

import os
import time

from ..cuda.libcuda import CudaError
from ..facts import known, unavailable
from . import REFERENCE, cubin, level0_bits, level0_rate, ptx, ptx_module
from .driver import Driver
from .failures import NotSupported, one_line, outcome
from .records import DEAD_CONTEXT, key
from .sampler import Sampler

# What a driver says to PTX that is too new for it, or for the chip.
_REFUSED = {
    209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    218: "CUDA_ERROR_INVALID_PTX",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
}
# Targets that no later chip takes, and CUjit_target's name for them.
_TARGETS = {"sm_90a": 0x10000 + 90}  # CU_TARGET_COMPUTE_90A
_OPCODES_FROM = (7, 0)  # instructions were of another length before


def run(params, teller):
    """Tell of each mode in ``params``, which are those of a level's process.

    Raises CudaError where the device cannot be opened.
    """
    driver = Driver()
    driver.open()
    facts = driver.facts()
    teller.run(**facts)
    level = _Level0(params, teller, driver, facts)
    for mode in params["modes"]:
        if key(mode) not in params["skip"]:
            level.try_mode(mode)
    driver.close()


class _Level0(object):
    def __init__(self, params, teller, driver, facts):
        self._budget = params["seconds"]
        self._end = time.monotonic() + self._budget
        self._teller = teller
        self._driver = driver
        self._sampler = Sampler(params["pynvml"], params["pci_address"], params["uuid"])
        self._fp32_tflops = unavailable("not-collected", "no FP32 kernel was timed in this process")
        self._clock_mhz = known(facts["clock_max_mhz"])

    def try_mode(self, mode):
        """Run a mode; what fails becomes its outcome, and ends the process if the context is dead."""
        record = {"mode": mode, "outcome": "ok"}
        if time.monotonic() >= self._end:
            record["outcome"] = "not-run"
            record["reason"] = "no time left (%g s for all modes)" % self._budget
            self._teller.mode(**record)
            return
        try:
            self._measure(mode, record)
        except Exception as error:
            record["outcome"], record["reason"] = outcome(error)
            self._teller.mode(**record)
            if not self._driver.alive():
                os._exit(DEAD_CONTEXT)

    def _measure(self, mode, record):
        self._teller.begin(mode, "bits")
        product, program, module, failure = self._load(mode)
        record["call"] = product.instructions[0].words
        record["hardware"] = self._hardware(program, failure)
        record["signatures"] = []
        for instruction in product.instructions:
            record["signatures"] += level0_bits.signatures(self._driver, module, instruction)
        self._teller.mode(**dict(record, rate_reason="it was not timed yet"))
        self._teller.begin(mode, "rate")
        try:
            record["rate"] = self._rate(mode, module, product.instructions[0])
        except ValueError as error:
            record["rate_reason"] = one_line(error)
        self._teller.mode(**record)

    def _load(self, mode):
        """(the first product that the driver's compiler takes, its cubin, the Module, what failed or None).

        Where the linker failed and the loader did not, there is PTX in place of the cubin.
        """
        capability = self._driver.capability
        products = ptx.products(mode, capability)
        if not products:
            raise NotSupported(ptx.why_none(mode, capability))
        refusals = []
        for product in products:
            text = ptx_module.text(product)
            try:
                program = self._driver.link(text)
                return product, program, self._driver.load(program), None
            except CudaError as error:
                failure = error
            loaded = self._load_otherwise(text, _TARGETS.get(product.target))
            if loaded is not None:
                return (product,) + loaded + (failure,)
            if failure.code not in _REFUSED:
                raise failure
            refusals.append("PTX %s: %s" % (product.version, failure))
        raise NotSupported("the driver does not compile this mode's kernels (%s)" % refusals[0])

    def _load_otherwise(self, text, target):
        """(program, Module) by another way than the driver's linker as it is; None where there is none.

        The linker may leave out what a chip alone has unless it is asked (``target``, None for other
        PTX); the loader may not.
        """
        ways = [lambda: text.encode("ascii")]
        if target is not None:
            ways.insert(0, lambda: self._driver.link(text, target))
        for make in ways:
            try:
                program = make()
                return program, self._driver.load(program)
            except CudaError:
                continue
        return None

    def _hardware(self, program, failure):
        """Fields of Hardware: the instructions of the mode's kernels, all taken together."""
        if self._driver.capability < _OPCODES_FROM:
            return {"opcodes_reason": "opcodes are read from compute capability 7.0 on"}
        try:
            kernels = cubin.opcodes(program)
        except ValueError as error:
            why = "the driver's program cannot be read: %s" % error
            if failure is not None:
                why = "the driver's loader took the kernels, its linker did not (%s)" % failure
            return {"opcodes_reason": one_line(why)}
        total = {}
        for counts in kernels.values():
            for kind, number in counts.items():
                total[kind] = total.get(kind, 0) + number
        if not total:
            return {"opcodes_reason": "no opcode of the driver's program is known"}
        return {"opcodes": total}

    def _rate(self, mode, module, instruction):
        rate = level0_rate.measure(
            self._driver, module, instruction, self._sampler, self._clock_mhz
        )
        if mode == REFERENCE:
            self._fp32_tflops = rate["tflops"]
        else:
            rate["fp32_tflops"] = self._fp32_tflops
        return rate

"""A pattern over a part of a GPU's memory: written all over, then looked at all over."""

import contextlib
import time

from ....cuda.libcuda import CudaError
from ....kernels.driver import is_out_of_memory
from .pattern_ptx import FACTOR, MASK, STEP

CHUNK = 1 << 30  # bytes of one allocation
_COPIED = 64 << 20  # at most
_SHOWN = 4  # areas that are named


@contextlib.contextmanager
def chunks(device, size):
    """[(device pointer, bytes)], as much of ``size`` as is there; raises CudaError where none is."""
    made, remaining = [], max(STEP, size // STEP * STEP)
    with contextlib.ExitStack() as stack:
        while remaining:
            part = min(remaining, CHUNK)
            try:
                (pointer,) = stack.enter_context(device.areas(part))
            except CudaError as error:
                if not made or not is_out_of_memory(error):
                    raise
                break
            made.append((pointer, part))
            remaining -= part
        yield made


def area_size(params):
    """Bytes of an area that is copied, of which four are made."""
    mib = params.get("memory_mib")
    return _COPIED if mib is None else max(STEP, min(_COPIED, (mib << 20) // 4 // STEP * STEP))


def copied(device, area, size, seed, result):
    """Evidence of what differs from the pattern in a copy."""
    words, low, high, bits = device.wrong(area, size, seed, 0, result)
    where = ["byte 0x%x to 0x%x of the copy" % (low, high + 7)]
    return {"wrong": words, "where": where, "bits": "0x%016x" % bits} if words else {"wrong": 0}


def write_and_check(device, areas, mask, result, until):
    """Evidence of one pattern. until: a time (monotonic) after which no further area is looked at."""
    for number, (pointer, size) in enumerate(areas):
        device.write(pointer, size, _seed(number), mask)
    device.synchronize()
    evidence = {"MiB": 0, "wrong": 0}
    where, bits = [], 0
    for number, (pointer, size) in enumerate(areas):
        if number and time.monotonic() > until:
            break
        words, first, last, differs = device.wrong(pointer, size, _seed(number), mask, result)
        evidence["MiB"] += size >> 20
        evidence["wrong"] += words
        bits |= differs
        if words:
            where.append("0x%x to 0x%x" % (pointer + first, pointer + last + 7))
    if where:
        evidence.update(where=where[:_SHOWN], bits="0x%016x" % bits)
    return evidence


def _seed(number):
    """Of an area: no word of it is a word of another one."""
    return number * (CHUNK // 8) * FACTOR & MASK

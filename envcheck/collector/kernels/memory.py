"""Device memory for the time of a ``with``."""

import contextlib

from ..cuda.libcuda import CudaError

_ALIGNMENT = 256  # bytes


@contextlib.contextmanager
def borrowed(driver, sizes):
    """Device pointers to areas of so many bytes, which are one allocation. Raises CudaError."""
    places = [0]
    for size in sizes:
        places.append(places[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
    pointer = driver.allocate(places[-1])
    try:
        yield [pointer + place for place in places[:-1]]
    finally:
        with contextlib.suppress(
            CudaError
        ):  # after an error that sticks: that one is to be reported
            driver.free(pointer)

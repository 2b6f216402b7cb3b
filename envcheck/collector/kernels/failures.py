"""What a mode ended in, out of the exception that ended it."""

from ..cuda.libcuda import CudaError
from .driver import is_out_of_memory

_LONGEST = 2000  # characters of a reason


class NotSupported(Exception):
    """The chip, the driver, the library or the framework does not have what was asked for: one sentence."""


def outcome(error):
    """(outcome, reason) of a ModeRun, for an error of a driver's or a library's call, or of anything else.

    A library's exceptions say what they are by ``not_supported`` and ``out_of_memory``.
    """
    if isinstance(error, NotSupported) or getattr(error, "not_supported", False):
        return "not-supported", one_line(error)
    if is_out_of_memory(error) or getattr(error, "out_of_memory", False):
        return "out-of-memory", one_line(error)
    if isinstance(error, CudaError) or hasattr(error, "not_supported"):
        return "error", one_line(error)  # which names the call
    return "error", one_line("%s: %s" % (type(error).__name__, error))


def one_line(words):
    return " ".join(str(words).split())[:_LONGEST]

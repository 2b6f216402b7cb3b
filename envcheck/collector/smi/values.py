"""nvidia-smi's words as values, and as reasons why there is none."""

import re

from ..addresses import pci_address  # noqa: F401  (a converter, as those below)
from ..facts import unavailable

# What stands where a value should, in brackets or without, and the reason it stands for. The rest of
# NVML's error strings mean "error"; they are here so that none is taken for a name or a serial number.
_WORDS = {
    "absent": "|not found|no data",
    "not-supported": "n/a|not supported|not available|not applicable|function not found|unknown"
    "|requested functionality has been deprecated",
    "not-collected": "redacted",  # by whoever sent the document
    "no-permission": "insufficient permissions",
    "lost": "gpu is lost",
    "timeout": "timeout",
    "error": "unknown error|err!|error|gpu requires reset|gpu requires restart|corrupted inforom"
    "|gpu access blocked by the operating system|the operating system has blocked the request"
    "|driver not loaded|insufficient memory|insufficient resources|insufficient size"
    "|insufficient external power|interrupt request issue|invalid argument|invalid state"
    "|uninitialized|in use",
}
# nvmlReturn_t of words that are about the device.
_CODES = {
    "corrupted inforom": 14,
    "gpu is lost": 15,
    "gpu requires reset": 16,
    "gpu requires restart": 16,
    "unknown error": 999,
    "err!": 999,
}
REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split("|")}
_PLAIN = ("not-supported", "absent", "not-collected")  # the word adds nothing to these reasons

MIB = {"MiB": 1, "MB": 1, "GiB": 1024, "GB": 1024, "KiB": 1 / 1024.0, "B": 1 / 1048576.0}
FLAGS = {
    "Enabled": True,
    "Disabled": False,
    "Yes": True,
    "No": False,
    "Active": True,
    "Not Active": False,
    "True": True,
    "False": False,
}

_NUMBER = re.compile(r"(-?\d{1,15}(?:\.\d{1,6})?)(?:\s*(\S{1,8}))?\Z")


def missing(text):
    """The unavailable fact that this text stands for, or None where it is a value."""
    words = text.strip()
    if words.startswith("[") and words.endswith("]"):
        words = words[1:-1].strip()
    known = words.lower().rstrip(".")
    reason = REASONS.get(known)
    if reason is None:
        return None
    return unavailable(reason, "" if reason in _PLAIN else words, _CODES.get(known))


def not_understood(text):
    return unavailable("error", "not understood: %r" % text[:80])


def integer(text):
    """A whole number, whatever its unit: "1593 MHz", "16x", "39 C", "0 %"."""
    number = re.match(r"(-?\d{1,15})(?![\d.])", text)
    if number is None:
        raise ValueError(text)
    return int(number.group(1))


def count(text):
    number = integer(text)
    if number < 0:
        raise ValueError(text)
    return number


def watts(text):
    number, unit = _quantity(text)
    if unit not in ("W", None):
        raise ValueError(text)
    return number


def mebibytes(text):
    number, unit = _quantity(text)
    if unit not in MIB or number < 0:
        raise ValueError(text)
    return int(number * MIB[unit])


def _quantity(text):
    match = _NUMBER.match(text)
    if match is None:
        raise ValueError(text)
    return float(match.group(1)), match.group(2)


def flag(text):
    if text not in FLAGS:
        raise ValueError(text)
    return FLAGS[text]


def program(text):
    """A process's program without its arguments, which nobody needs and which may hold secrets."""
    if re.match(r"[A-Za-z]:\\", text):
        return text[:1000]
    return text.split(None, 1)[0][:1000]


def _without_note(text):
    """ "610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]" without the note."""
    before, mark, _note = text.partition(" [Deprecated")
    return before.rstrip() if mark and before.strip() else text


def convert(text, converter):
    """The text's value, or the unavailable fact that says why there is none."""
    text = _without_note(text)
    fact = missing(text)
    if fact is not None:
        return fact
    try:
        return converter(text.strip())
    except ValueError:
        return not_understood(text)

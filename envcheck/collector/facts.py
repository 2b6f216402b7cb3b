"""How a probe writes down what it found: values, the reasons for those it could not get, sources."""

import errno
import json

REASONS = ("not-collected", "absent", "not-supported", "no-permission", "error", "lost", "timeout")


def unavailable(reason, detail="", code=None):
    """A fact that could not be had. ``reason`` is one of REASONS; ``detail`` is the evidence.

    code: nvmlReturn_t, of an error of NVML's.
    """
    if reason not in REASONS:
        raise ValueError("not a reason: %r" % (reason,))
    fact = {"unavailable": reason}
    if detail:
        fact["detail"] = str(detail)[:2000]
    if code is not None:
        fact["code"] = code
    return fact


def is_unavailable(value):
    return isinstance(value, dict) and "unavailable" in value


def known(value):
    """A fact's value; None where there is none."""
    return None if is_unavailable(value) else value


def from_error(error):
    """The unavailable fact that an exception stands for."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO):
        reason = "absent"
    elif number in (errno.EACCES, errno.EPERM):
        reason = "no-permission"
    else:
        reason = "error"
    return unavailable(reason, "%s: %s" % (type(error).__name__, error))


class Facts(object):
    """One section's facts. ``values`` and ``sources`` become the probe's "facts" and "sources"."""

    def __init__(self, source=None):
        """source: where every value without a source of its own comes from."""
        self.values = {}
        self.sources = {}
        if source:
            self.sources["*"] = source

    @classmethod
    def of(cls, values):
        """Facts of a plain dictionary. Raises TypeError for anything else."""
        if not isinstance(values, dict):
            raise TypeError("collect() returned %s, not a dict" % type(values).__name__)
        facts = cls()
        facts.values = values
        return facts

    def put(self, name, value, source=None):
        self.values[name] = value
        if source:
            self.sources[name] = source

    def missing(self, name, reason, detail="", source=None):
        self.put(name, unavailable(reason, detail), source)

    def attempt(self, name, source, function, *arguments):
        """Put what the function returns, or the reason why it raised."""
        try:
            self.put(name, function(*arguments), source)
        except Exception as error:
            self.put(name, from_error(error), source)

    def get(self, name):
        """The value, or None where there is none."""
        return known(self.values.get(name))


def dumps(document):
    """JSON text that any parser takes: no NaN, no lone surrogates."""
    return json.dumps(_clean(document), sort_keys=True, allow_nan=False)


def plain(text):
    """A string as JSON can hold it: bytes that Python could not decode are tried as UTF-8 once more."""
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # surrogates that stand for no byte
        return text.encode("utf-8", "replace").decode("utf-8")


def _clean(value):
    if isinstance(value, dict):
        return {plain(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return unavailable("error", "not a finite number: %r" % value)
    return value

"""libcuda, in a process of its own: the door that every framework goes through. Makes no context."""

import ctypes
import os

from ..cuda.libcuda import SONAME, Cuda, CudaError
from ..cuda.mapped import mapped_library
from ..facts import Facts, from_error, unavailable

DOCUMENT = "machine"
IN_CONTAINER = True
DEADLINE = 20

# The user's choice of devices is the environment checks' business: this is about what the machine has.
HIDES = "CUDA_VISIBLE_DEVICES"

_NO_DEVICE = 100
_MAX_DEVICES = 256  # more is no count


def collect(context):
    hidden = os.environ.pop(HIDES, None)
    facts = Facts("%s, asked without %s" % (SONAME, HIDES))
    value = unavailable("absent", "not set") if hidden is None else hidden[:4096]
    facts.put("visible_devices", value, "the environment")
    try:
        library = ctypes.CDLL(SONAME)
    except OSError as error:
        _not_loaded(facts, str(error))
        return facts
    _where(facts, context)
    cuda = Cuda(library)
    _attempt(facts, "driver_api_version", cuda.driver_version, "cuDriverGetVersion")
    if _initialise(facts, cuda):
        _attempt(facts, "device_count", cuda.count, "cuDeviceGetCount")
        count = facts.get("device_count")
        facts.put(
            "devices",
            facts.values["device_count"]
            if count is None
            else [_device(cuda, ordinal) for ordinal in range(min(count, _MAX_DEVICES))],
        )
    return facts


def _not_loaded(facts, words):
    absent = SONAME in words and "No such file" in words
    facts.put("load_error", words, "dlopen")
    for name in tuple(
        (
            "library_path library_real_path init_code init_name driver_api_version device_count "
            "devices"
        ).split()
    ):
        facts.missing(name, "absent" if absent else "error", words, "dlopen")


def _where(facts, context):
    """Before cuInit, which under WSL loads a second libcuda by itself."""
    facts.attempt("library_path", "/proc/self/maps", mapped_library, context, "libcuda.so")
    path = facts.get("library_path")
    facts.put(
        "library_real_path",
        facts.values["library_path"] if path is None else os.path.realpath(path),
        "realpath",
    )


def _initialise(facts, cuda):
    try:
        code = cuda.code("cuInit", 0)
    except CudaError as error:
        for name in ("init_code", "init_name", "device_count", "devices"):
            facts.missing(name, "error", str(error), "cuInit")
        return False
    facts.put("init_code", code, "cuInit")
    facts.put("init_name", cuda.name(code), "cuInit")
    if code == _NO_DEVICE:
        facts.put("device_count", 0, "cuInit")
        facts.put("devices", [], "cuInit")
    elif code != 0:
        for name in ("device_count", "devices"):
            facts.missing(name, "error", "cuInit: %s (%d)" % (cuda.name(code), code), "cuInit")
    return code == 0


def _device(cuda, ordinal):
    device = {"ordinal": ordinal}
    try:
        handle = cuda.device(ordinal)
    except CudaError as error:
        fact = unavailable("error", str(error))
        device.update(
            (name, fact) for name in ("name", "pci_address", "uuid", "compute_capability")
        )
        return device
    for name, function in (
        ("name", cuda.device_name),
        ("pci_address", cuda.pci_address),
        ("uuid", cuda.uuid),
        ("compute_capability", cuda.capability),
    ):
        try:
            device[name] = function(handle)
        except Exception as error:
            device[name] = _reason(error)
    return device


def _attempt(facts, name, function, source):
    try:
        facts.put(name, function(), source)
    except Exception as error:
        facts.put(name, _reason(error), source)


def _reason(error):
    if isinstance(error, CudaError):
        return unavailable("not-supported" if error.code in (None, 801) else "error", str(error))
    return from_error(error)

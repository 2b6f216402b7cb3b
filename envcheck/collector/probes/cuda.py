"""libcuda, in a process of its own: the door that every framework goes through. Makes no context."""

import ctypes
import os

from ..addresses import pci_address
from ..facts import Facts, from_error, unavailable
from .cuda_errors import NAMES
from .mapped import mapped_library

DEADLINE = 20

SONAME = "libcuda.so.1"
# The user's choice of devices is the environment checks' business: this is about what the machine has.
HIDES = "CUDA_VISIBLE_DEVICES"

_NO_DEVICE = 100
_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_MAX_DEVICES = 256  # more is no count


class CudaError(Exception):
    """A call that failed, or a function that this libcuda does not have (code None)."""

    def __init__(self, function, code, name):
        Exception.__init__(self, "%s: %s" % (function, name))
        self.code = code
        self.name = name


def collect(context):
    os.environ.pop(HIDES, None)
    facts = Facts("%s, asked without %s" % (SONAME, HIDES))
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
    for name in (
        "library_path",
        "library_real_path",
        "init_code",
        "init_name",
        "driver_api_version",
        "device_count",
        "devices",
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


class Cuda(object):
    """Calls into a loaded libcuda of any age. Everything raises CudaError where a call fails."""

    def __init__(self, library):
        self.library = library

    def code(self, function, *arguments):
        """The CUresult of a call; CudaError only where the function is not there."""
        try:
            return getattr(self.library, function)(*arguments)
        except AttributeError:
            raise CudaError(function, None, "this libcuda does not have it")

    def call(self, function, *arguments):
        code = self.code(function, *arguments)
        if code != 0:
            raise CudaError(function, code, self.name(code))

    def name(self, code):
        """A CUresult's name: libcuda's own, else the table's."""
        text = ctypes.c_char_p()
        try:
            if self.code("cuGetErrorName", code, ctypes.byref(text)) == 0 and text.value:
                return text.value.decode("ascii", "replace")
        except CudaError:
            pass
        return NAMES.get(code, "CUresult %d" % code)

    def integer(self, function, *arguments):
        value = ctypes.c_int()
        self.call(function, ctypes.byref(value), *arguments)
        return value.value

    def driver_version(self):
        number = self.integer("cuDriverGetVersion")
        return "%d.%d" % (number // 1000, number % 1000 // 10)

    def count(self):
        return self.integer("cuDeviceGetCount")

    def device(self, ordinal):
        return self.integer("cuDeviceGet", ordinal)

    def device_name(self, device):
        return self._string("cuDeviceGetName", device)

    def pci_address(self, device):
        return pci_address(self._string("cuDeviceGetPCIBusId", device))

    def capability(self, device):
        return "%d.%d" % tuple(
            self.integer("cuDeviceGetAttribute", attribute, device) for attribute in _CAPABILITY
        )

    def uuid(self, device):
        """The GPU's, or the MIG instance's where the device is one (then the two functions differ)."""
        physical = self._uuid("cuDeviceGetUuid", device)
        visible = self._uuid("cuDeviceGetUuid_v2", device)
        if physical is None and visible is None:
            raise CudaError("cuDeviceGetUuid", None, "no answer")
        if physical and visible and physical != visible:
            return "MIG-" + visible
        return "GPU-" + (physical or visible)

    def _uuid(self, function, device):
        data = (ctypes.c_ubyte * 16)()
        try:
            self.call(function, ctypes.byref(data), device)
        except CudaError:
            return None
        text = "".join("%02x" % byte for byte in data)
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def _string(self, function, device):
        buffer = ctypes.create_string_buffer(256)
        self.call(function, buffer, 255, device)
        return buffer.value.decode("utf-8", "replace")

"""Calls into libcuda, of any age, through ctypes: what every CUDA program in this package starts from."""

import ctypes

from ..addresses import pci_address

SONAME = "libcuda.so.1"

_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


class CudaError(Exception):
    """A call that failed, or a function that this libcuda does not have (code None)."""

    def __init__(self, function, code, name):
        Exception.__init__(self, "%s: %s" % (function, name))
        self.function = function
        self.code = code
        self.name = name


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
        """A CUresult's name, as libcuda has it."""
        text = ctypes.c_char_p()
        try:
            if self.code("cuGetErrorName", code, ctypes.byref(text)) == 0 and text.value:
                return text.value.decode("ascii", "replace")
        except CudaError:
            pass
        return "CUresult %d" % code

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

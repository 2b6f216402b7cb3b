"""Calls into libcuda, of any age, through ctypes: what every CUDA program in this package starts from."""

import ctypes

from ..addresses import pci_address

SONAME = "libcuda.so.1"

_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR

# CUresult's names (cuda.h) behind "CUDA_ERROR_", where libcuda does not say them itself (a stub).
_WORDS = (
    "1 INVALID_VALUE 2 OUT_OF_MEMORY 3 NOT_INITIALIZED 4 DEINITIALIZED 34 STUB_LIBRARY 46 "
    "DEVICE_UNAVAILABLE 100 NO_DEVICE 101 INVALID_DEVICE 102 DEVICE_NOT_LICENSED 200 "
    "INVALID_IMAGE 201 INVALID_CONTEXT 209 NO_BINARY_FOR_GPU 214 ECC_UNCORRECTABLE 215 "
    "UNSUPPORTED_LIMIT 218 INVALID_PTX 220 NVLINK_UNCORRECTABLE 221 JIT_COMPILER_NOT_FOUND 222 "
    "UNSUPPORTED_PTX_VERSION 223 JIT_COMPILATION_DISABLED 300 INVALID_SOURCE 301 FILE_NOT_FOUND "
    "302 SHARED_OBJECT_SYMBOL_NOT_FOUND 303 SHARED_OBJECT_INIT_FAILED 304 OPERATING_SYSTEM 400 "
    "INVALID_HANDLE 401 ILLEGAL_STATE 500 NOT_FOUND 600 NOT_READY 700 ILLEGAL_ADDRESS 701 "
    "LAUNCH_OUT_OF_RESOURCES 702 LAUNCH_TIMEOUT 714 HARDWARE_STACK_ERROR 715 "
    "ILLEGAL_INSTRUCTION 716 MISALIGNED_ADDRESS 717 INVALID_ADDRESS_SPACE 718 INVALID_PC 719 "
    "LAUNCH_FAILED 800 NOT_PERMITTED 801 NOT_SUPPORTED 802 SYSTEM_NOT_READY 803 "
    "SYSTEM_DRIVER_MISMATCH 804 COMPAT_NOT_SUPPORTED_ON_DEVICE 805 MPS_CONNECTION_FAILED 806 "
    "MPS_RPC_FAILURE 807 MPS_SERVER_NOT_READY 808 MPS_MAX_CLIENTS_REACHED 809 "
    "MPS_MAX_CONNECTIONS_REACHED 810 MPS_CLIENT_TERMINATED 999 UNKNOWN "
).split()
_NAMES = {int(number): "CUDA_ERROR_" + name for number, name in zip(_WORDS[::2], _WORDS[1::2])}
_NAMES[0] = "CUDA_SUCCESS"


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
        """A CUresult's name: libcuda's own, else the table's."""
        text = ctypes.c_char_p()
        try:
            if self.code("cuGetErrorName", code, ctypes.byref(text)) == 0 and text.value:
                return text.value.decode("ascii", "replace")
        except CudaError:
            pass
        return _NAMES.get(code, "CUresult %d" % code)

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

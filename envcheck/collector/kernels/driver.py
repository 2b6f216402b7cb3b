"""The driver API as the micro-kernels use it: one device's primary context, memory, events, PTX, launches.

Works with libcuda from driver 418 on: where a function has versions, the one asked for is that of CUDA 10.1.
Everything runs on the legacy default stream, which cuBLAS and this module then share.
"""

import ctypes

from ..cuda.libcuda import SONAME, Cuda, CudaError
from ..facts import from_error, unavailable

_OUT_OF_MEMORY = 2
_NOT_READY = 600

# CUdevice_attribute
_CLOCK_KHZ = 13
_MULTIPROCESSORS = 16
_CAPABILITY = (75, 76)
_SHARED_OPTIN = 97  # the most shared memory that a block may ask for, in bytes

_STATIC_SHARED = 1  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_SHARED_ALWAYS = 48 << 10  # bytes that a block may have without asking

_PTX = 1  # CU_JIT_INPUT_PTX
_ERROR_LOG, _ERROR_LOG_SIZE, _TARGET = 5, 6, 9  # CUjit_option
_LOG_BYTES = 16 << 10

_int, _uint, _size, _pointer = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p
_address = ctypes.c_uint64  # CUdeviceptr
# Functions and their arguments: without these ctypes would hand a pointer over as a 32-bit int.
_KINDS = {
    "i": _int, "u": _uint, "z": _size, "p": _pointer, "a": _address,
    "b": ctypes.c_ubyte, "s": ctypes.c_char_p,
}  # fmt: skip
_WORDS = (
    "cuInit u cuDeviceGetAttribute pii cuDevicePrimaryCtxRetain pi "
    "cuDevicePrimaryCtxRelease_v2 i cuDevicePrimaryCtxRelease i cuCtxSetCurrent p "
    "cuCtxSynchronize - cuMemGetInfo_v2 pp cuMemAlloc_v2 pz cuMemFree_v2 a cuMemcpyHtoD_v2 apz "
    "cuMemcpyDtoH_v2 paz cuMemcpyHtoDAsync_v2 apzp cuMemcpyDtoHAsync_v2 pazp "
    "cuMemcpyDtoDAsync_v2 aazp cuMemcpyPeerAsync apapzp cuMemsetD8_v2 abz cuMemHostAlloc pzu "
    "cuMemFreeHost p cuDeviceCanAccessPeer pii "
    "cuCtxEnablePeerAccess pu cuCtxDisablePeerAccess p "
    "cuEventCreate pu cuEventRecord pp cuEventSynchronize p "
    "cuEventQuery p cuEventElapsedTime ppp cuEventDestroy_v2 p cuLinkCreate_v2 uppp "
    "cuLinkAddData_v2 pipzsupp cuLinkComplete ppp cuLinkDestroy p cuModuleLoadData pp "
    "cuModuleGetFunction pps cuFuncGetAttribute pip cuFuncSetAttribute pii "
    "cuLaunchKernel puuuuuuuppp "
).split()
_ARGUMENTS = {
    name: tuple(_KINDS[kind] for kind in kinds.strip("-"))
    for name, kinds in zip(_WORDS[::2], _WORDS[1::2])
}


class JitError(CudaError):
    """PTX that the driver did not take. ``words`` is its compiler's message, on one line."""

    def __init__(self, error, words):
        CudaError.__init__(self, error.function, error.code, error.name)
        self.words = words

    def __str__(self):
        line = CudaError.__str__(self)
        return "%s (%s)" % (line, self.words) if self.words else line


def is_out_of_memory(error):
    return isinstance(error, CudaError) and error.code == _OUT_OF_MEMORY


class Driver(object):
    """libcuda, and after ``open`` the primary context of one device. Calls raise CudaError."""

    def __init__(self, library=None):
        """library: another file than the loader's libcuda.so.1."""
        try:
            self.cuda = Cuda(ctypes.CDLL(library or SONAME))
        except OSError as error:
            raise CudaError("dlopen", None, str(error))
        for name, types in _ARGUMENTS.items():
            try:
                function = getattr(self.cuda.library, name)
            except AttributeError:
                continue  # it is line when it is called
            function.argtypes = types
            function.restype = _int
        self.device = None
        self.capability = None  # (9, 0)
        self.multiprocessors = None  # of the device, or of the MIG instance
        self._context = None
        self._call("cuInit", 0)

    def _call(self, function, *arguments):
        self.cuda.call(function, *arguments)

    def open(self, ordinal=0):
        """Retain the device's primary context, which cuBLAS and frameworks use too; make it current."""
        self.device = self.cuda.device(ordinal)
        self.capability = tuple(self.attribute(number) for number in _CAPABILITY)
        self.multiprocessors = self.attribute(_MULTIPROCESSORS)
        context = _pointer()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self._context = context
        self._call("cuCtxSetCurrent", context)

    def close(self):
        """Let go of the context, once; says nothing of a context that is dead already."""
        if self._context is None:
            return
        self._context = None
        try:
            self.cuda.code("cuDevicePrimaryCtxRelease_v2", self.device)
        except CudaError:
            self.cuda.code("cuDevicePrimaryCtxRelease", self.device)  # before CUDA 11

    def alive(self):
        """Whether the context still works: after an error that sticks, every call fails."""
        return self.cuda.code("cuCtxSynchronize") == 0

    # -- facts

    def attribute(self, number):
        """A CUdevice_attribute of the device."""
        return self.cuda.integer("cuDeviceGetAttribute", number, self.device)

    def facts(self):
        """Fields of a LevelRun, each a value or unavailable."""
        cuda, device = self.cuda, self.device
        return {
            "name": _fact(cuda.device_name, device),
            "compute_capability": ".".join(map(str, self.capability or ())),
            "multiprocessors": self.multiprocessors,
            "clock_max_mhz": _fact(lambda: self.attribute(_CLOCK_KHZ) / 1000.0),
            "memory_free_mib": _fact(lambda: self.memory_free() >> 20),
            "driver_api_version": _fact(cuda.driver_version),
            "uuid": _fact(cuda.uuid, device),
            "pci_address": _fact(cuda.pci_address, device),
        }

    # -- memory

    def memory_free(self):
        """Bytes."""
        free, total = _size(), _size()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def allocate(self, size):
        """A device pointer (int) to ``size`` bytes."""
        pointer = _address()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), size)
        return pointer.value

    def free(self, pointer):
        self._call("cuMemFree_v2", pointer)

    def upload(self, pointer, data, offset=0):
        """Copy bytes to the device, and wait for it."""
        self._call("cuMemcpyHtoD_v2", pointer + offset, ctypes.c_char_p(bytes(data)), len(data))

    def download(self, pointer, size, offset=0):
        """``size`` bytes from the device, after all work before."""
        buffer = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", buffer, pointer + offset, size)
        return buffer.raw

    def fill(self, pointer, byte, size):
        self._call("cuMemsetD8_v2", pointer, byte, size)

    # -- time

    def synchronize(self):
        self._call("cuCtxSynchronize")

    def event(self):
        event = _pointer()
        self._call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def record(self, event, stream=None):
        self._call("cuEventRecord", event, stream)

    def wait(self, event):
        self._call("cuEventSynchronize", event)

    def query(self, event):
        """Whether all work before the event is done."""
        code = self.cuda.code("cuEventQuery", event)
        if code not in (0, _NOT_READY):
            raise CudaError("cuEventQuery", code, self.cuda.name(code))
        return code == 0

    def elapsed(self, first, second):
        """Seconds between two events that are done; the clock behind it ticks about every 0.5 us."""
        milliseconds = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(milliseconds), first, second)
        return milliseconds.value / 1000.0

    def destroy_event(self, event):
        self._call("cuEventDestroy_v2", event)

    # -- programs

    def link(self, ptx, target=None):
        """The cubin (bytes) that the driver's compiler makes of PTX text. Raises JitError.

        target: a CUjit_target; without one it is the device's.
        """
        log = ctypes.create_string_buffer(_LOG_BYTES)
        given = [(_ERROR_LOG, ctypes.addressof(log)), (_ERROR_LOG_SIZE, _LOG_BYTES)]
        given += [(_TARGET, target)] if target else []
        options = (_int * len(given))(*[option for option, _value in given])
        values = (_pointer * len(given))(*[value for _option, value in given])
        state = _pointer()
        self._call("cuLinkCreate_v2", len(given), options, values, ctypes.byref(state))
        try:
            return self._linked(state, ptx)
        except CudaError as error:
            raise JitError(error, _one_line(log.value))
        finally:
            self.cuda.code("cuLinkDestroy", state)

    def _linked(self, state, ptx):
        text = ctypes.create_string_buffer(ptx.encode("ascii"))
        name = b"envcheck.ptx"
        self._call("cuLinkAddData_v2", state, _PTX, text, len(text), name, 0, None, None)
        cubin, size = _pointer(), _size()
        self._call("cuLinkComplete", state, ctypes.byref(cubin), ctypes.byref(size))
        return ctypes.string_at(
            cubin.value or 0, size.value
        )  # the driver's own goes away with the state

    def load(self, cubin):
        """A Module of the current context, of a cubin's bytes or PTX's."""
        module = _pointer()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(bytes(cubin)))
        return Module(self, module)

    def launch(self, function, grid, block, arguments, shared=0):
        """Start a kernel. grid, block: int or up to three of them; shared: dynamic shared memory, bytes."""
        pointers = (_pointer * max(1, len(arguments)))(
            *[ctypes.addressof(value) for value in arguments]
        )
        sizes = _three(grid) + _three(block)
        self._call("cuLaunchKernel", function, *(sizes + (shared, None, pointers, None)))

    def whole_multiprocessor(self, function):
        """Bytes of dynamic shared memory with which one block of the function fills a multiprocessor.

        As much as a block may have is always more than half of what a multiprocessor has. A driver that
        does not allow it leaves the 48 KiB that need no asking.
        """
        own = self.cuda.integer("cuFuncGetAttribute", _STATIC_SHARED, function)
        try:
            most = self.attribute(_SHARED_OPTIN) - own
            self._call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, most)
        except CudaError:
            return _SHARED_ALWAYS - own
        return most


class Module(object):
    def __init__(self, driver, handle):
        self._driver = driver
        self.handle = handle

    def function(self, name):
        """A kernel's handle, by its name in the PTX."""
        function = _pointer()
        self._driver.cuda.call(
            "cuModuleGetFunction", ctypes.byref(function), self.handle, name.encode("ascii")
        )
        return function


def _three(size):
    size = (size,) if isinstance(size, int) else tuple(size)
    return size + (1,) * (3 - len(size))


def _one_line(raw):
    return "; ".join(
        line.strip() for line in raw.decode("utf-8", "replace").splitlines() if line.strip()
    )


def _fact(function, *arguments):
    try:
        return function(*arguments)
    except CudaError as error:
        return unavailable("not-supported" if error.code in (None, 801) else "error", str(error))
    except Exception as error:
        return from_error(error)

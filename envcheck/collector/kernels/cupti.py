"""The names of the kernels that ran, through CUPTI's activity API, which needs no privileges since CUDA 10.2.

Structures and numbers are those of cupti_activity.h and cupti_result.h: CUpti_ActivityKernel4 to 10 (CUDA
11.0 to 13.0) have their name at the same place.
"""

import ctypes
import os
import struct

from ..facts import unavailable

_CONCURRENT_KERNEL = 10  # CUpti_ActivityKind
_KERNEL_KINDS = (3, _CONCURRENT_KERNEL)
_FORCED = 1  # CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

_NAME = 104  # offset of the name's pointer in a kernel's record
_RECORD = _NAME + 8  # bytes of a record that are read

_BUFFER = 256 << 10  # bytes, eight-byte aligned
_MOST_NAMES = 64
_NAME_BYTES = 2048

_NO_PERMISSION = (35, 40)
_NOT_SUPPORTED = (27, 33, 38, 39, 41, 42, 43, 45)

# By the CUDA major that they are of.
_SONAMES = {
    13: ("libcupti.so.13",),
    12: ("libcupti.so.12",),
    11: tuple("libcupti.so.11.%d" % minor for minor in range(8, -1, -1)),
    None: ("libcupti.so",),
}

_REQUESTED = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)
_COMPLETED = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


class CuptiError(Exception):
    """A call that failed, with its fact's reason."""

    def __init__(self, words, reason="error"):
        Exception.__init__(self, words)
        self.reason = reason


class _Cupti(object):
    """A loaded libcupti and the buffers that it has; one a process, since it keeps our callbacks."""

    def __init__(self, path, major):
        self._library = _open(path, major)
        self._buffers = {}  # address: the buffer, while CUPTI has it
        self._full = []  # (buffer, address, valid bytes)
        self._callbacks = _REQUESTED(self._give), _COMPLETED(self._take)
        self._call("cuptiActivityRegisterCallbacks", *self._callbacks)

    def _call(self, function, *arguments):
        code = self._code(function, *arguments)
        if code != 0:
            reason = "no-permission" if code in _NO_PERMISSION else "error"
            reason = "not-supported" if code in _NOT_SUPPORTED else reason
            raise CuptiError("%s: %s" % (function, self._name(code)), reason)

    def _name(self, code):
        """ "CUPTI_ERROR_NOT_SUPPORTED (27)"."""
        text = ctypes.c_char_p()
        try:
            self._code("cuptiGetResultString", code, ctypes.byref(text))
        except CuptiError:
            pass
        return "%s (%d)" % ((text.value or b"CUptiResult").decode("ascii", "replace"), code)

    def _code(self, function, *arguments):
        try:
            return getattr(self._library, function)(*arguments)
        except AttributeError:
            raise CuptiError("this libcupti has no %s" % function, "not-supported")

    def _give(self, buffer, size, most):
        made = (ctypes.c_uint64 * (_BUFFER // 8))()
        address = ctypes.addressof(made)
        self._buffers[address] = made
        buffer[0] = address
        size[0] = _BUFFER
        most[0] = 0  # as many records as fit

    def _take(self, _context, _stream, address, _size, valid):
        made = self._buffers.pop(address, None)
        if made is not None:
            self._full.append((made, address, valid))

    def start(self):
        self._full = []
        self._call("cuptiActivityEnable", _CONCURRENT_KERNEL)

    def stop(self):
        """The names of the kernels since ``start``, all of which must be done."""
        try:
            self._call("cuptiActivityFlushAll", _FORCED)
        finally:
            self._code("cuptiActivityDisable", _CONCURRENT_KERNEL)
        found = []
        for _buffer, address, valid in self._full:
            for name in names(self._records(address, valid), read_memory):
                if name not in found and len(found) < _MOST_NAMES:
                    found.append(name)
        self._full = []
        return found

    def _records(self, address, valid):
        """The first bytes of each record in a buffer, as CUPTI itself walks through it."""
        record = ctypes.c_void_p()
        while True:
            code = self._code(
                "cuptiActivityGetNextRecord",
                ctypes.c_void_p(address),
                ctypes.c_size_t(valid),
                ctypes.byref(record),
            )
            if code != 0:
                return
            place = (record.value or 0) - address
            if not 0 <= place <= valid - 4:
                return
            yield ctypes.string_at(record.value or 0, min(_RECORD, valid - place))


def names(records, read):
    """The kernels' names in activity records; ``read`` gives the bytes at an address (OSError).

    Records of other kinds are passed over, and so are those whose name cannot be one: their layout then
    is not the one that is known here.
    """
    for record in records:
        if len(record) < _RECORD or struct.unpack_from("<I", record)[0] not in _KERNEL_KINDS:
            continue
        (address,) = struct.unpack_from("<Q", record, _NAME)
        try:
            raw = read(address, _NAME_BYTES)
        except (OSError, OverflowError):
            continue
        text = raw.split(b"\0", 1)[0]
        if text and len(text) < len(raw) and all(0x20 <= byte < 0x7F for byte in text):
            yield text.decode("ascii")


def read_memory(address, size):
    """Up to ``size`` bytes of this process's memory. OSError, not a crash, where there is none."""
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        return os.pread(memory, size, address)
    finally:
        os.close(memory)


def _open(path, major):
    """The library in a file, else as the loader finds it: of that CUDA major if it can be."""
    names = [path]
    if not path:
        majors = sorted(_SONAMES, key=lambda other: (other != major, -(other or 0)))
        names = [name for other in majors for name in _SONAMES[other]]
    words = ""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            words = words or str(error)
    raise CuptiError(words, "error" if path else "absent")


_loaded = {}  # (path, major): _Cupti, or the CuptiError that it ended in


def _cupti(*wanted):
    if wanted not in _loaded:
        try:
            _loaded[wanted] = _Cupti(*wanted)
        except CuptiError as error:
            _loaded[wanted] = error
    if isinstance(_loaded[wanted], CuptiError):
        raise _loaded[wanted]
    return _loaded[wanted]


class kernel_names(object):
    """Around work that is finished at its end: ``found`` is then a list of names, or unavailable.

    ``with kernel_names(path) as seen: product(); driver.synchronize()``, then ``seen.found``. path: the
    libcupti of the target, None for the loader's, of this CUDA ``major`` first. Of CUPTI itself nothing
    is raised.
    """

    def __init__(self, path, major=None):
        self._wanted = path, major
        self._cupti = None
        self.found = unavailable("not-collected")

    def __enter__(self):
        try:
            cupti = _cupti(*self._wanted)
            cupti.start()
            self._cupti = cupti
        except CuptiError as error:
            self.found = unavailable(error.reason, str(error))
        return self

    def __exit__(self, *_raised):
        if self._cupti is None:
            return
        try:
            found = self._cupti.stop()
        except CuptiError as error:
            self.found = unavailable(error.reason, str(error))
            return
        self.found = found or unavailable("absent", "CUPTI saw no kernel")

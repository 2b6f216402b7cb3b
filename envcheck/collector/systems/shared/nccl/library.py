"""The target's own libnccl.so.2 through ctypes: communicators and all-reduces on the legacy default stream.

Types and functions are those of nccl.h since NCCL 2.0, which later versions kept.
"""

import ctypes

_int, _size, _pointer, _words = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p

INT32, FLOAT16, FLOAT32 = 2, 6, 7  # ncclDataType_t
SUM, MAX = 0, 2  # ncclRedOp_t
_IN_PROGRESS = 7
_ID_BYTES = 128  # NCCL_UNIQUE_ID_BYTES

# ncclResult_t
_NAMES = {
    1: "ncclUnhandledCudaError",
    2: "ncclSystemError",
    3: "ncclInternalError",
    4: "ncclInvalidArgument",
    5: "ncclInvalidUsage",
    6: "ncclRemoteError",
    8: "ncclTimeout",  # since NCCL 2.32
}


class UniqueId(ctypes.Structure):
    """What the ranks of one communicator share; it is passed by value."""

    _fields_ = [("internal", ctypes.c_ubyte * _ID_BYTES)]


# Result and arguments.
_FUNCTIONS = {
    "ncclGetUniqueId": (_int, _pointer),
    "ncclCommInitRank": (_int, _pointer, _int, UniqueId, _int),
    "ncclCommGetAsyncError": (_int, _pointer, _pointer),
    "ncclCommDestroy": (_int, _pointer),
    "ncclAllReduce": (_int, _pointer, _pointer, _size, _int, _int, _pointer, _pointer),
    "ncclGetErrorString": (_words, _int),
    "ncclGetLastError": (_words, _pointer),  # since 2.13
}


class NcclError(Exception):
    """A call that failed: "ncclCommInitRank: ncclSystemError (unhandled system error)"."""


class Nccl(object):
    """A loaded libnccl. Calls raise NcclError."""

    def __init__(self, path):
        """Raises OSError where it cannot be loaded."""
        library = ctypes.CDLL(path)
        self._functions = {}
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = self._functions[name] = getattr(library, name, None)
            if function is not None:
                function.restype, function.argtypes = result, arguments

    def unique_id(self):
        """Bytes; this process must live as long as others may join."""
        made = UniqueId()
        self._call("ncclGetUniqueId", ctypes.byref(made))
        return bytes(bytearray(made.internal))

    def join(self, unique_id, ranks, rank):
        """A communicator of so many ranks on the current device; waits for all of them."""
        given = UniqueId.from_buffer_copy(unique_id)
        communicator = _pointer()
        self._call("ncclCommInitRank", ctypes.byref(communicator), ranks, given, rank)
        return communicator

    def leave(self, communicator):
        self._call("ncclCommDestroy", communicator)

    def all_reduce(self, pointer, count, kind, communicator, operation=SUM):
        """In place, on the legacy default stream; does not wait."""
        self._call("ncclAllReduce", pointer, pointer, count, kind, operation, communicator, None)

    def check(self, communicator):
        """Raise what went wrong in the background since."""
        code = _int()
        self._call("ncclCommGetAsyncError", communicator, ctypes.byref(code))
        if code.value not in (0, _IN_PROGRESS):
            raise NcclError(self._words("a collective", code.value))

    def _call(self, name, *arguments):
        if self._functions[name] is None:
            raise NcclError("this libnccl has no %s" % name)
        code = self._functions[name](*arguments)
        if code:
            raise NcclError(self._words(name, code))

    def _words(self, name, code):
        words = "%s: %s" % (name, _NAMES.get(code, "ncclResult %d" % code))
        meaning = self._text("ncclGetErrorString", code)
        last = self._text("ncclGetLastError", None)
        return words + (" (%s)" % meaning if meaning else "") + (": %s" % last if last else "")

    def _text(self, name, argument):
        function = self._functions[name]
        words = function(argument) if function else None
        return " ".join((words or b"").decode("utf-8", "replace").split())

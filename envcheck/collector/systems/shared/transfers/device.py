"""A GPU as memory tests use it: the driver API's Driver, with copies, pinned memory and peers."""

import contextlib
import ctypes

from ....cuda.libcuda import CudaError
from ....kernels.driver import Driver
from . import pattern_ptx

_size, _pointer = ctypes.c_size_t, ctypes.c_void_p
_u32, _u64 = ctypes.c_uint32, ctypes.c_uint64

# CUdevice_attribute
_INTEGRATED = 18
_L2_BYTES = 38

_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE


class TransferDevice(Driver):
    """One GPU, its context open, with the kernels of ``pattern_ptx``. Calls raise CudaError.

    address: on PCI; "" where the driver does not say. uuid: None likewise.
    """

    def __init__(self, ordinal=0):
        Driver.__init__(self)
        self.open(ordinal)
        self.address = self._asked(self.cuda.pci_address, self.device) or ""
        self.uuid = self._asked(self.cuda.uuid, self.device)
        self._functions = {}

    def use(self):
        """Make its context current: where there are several."""
        self._call("cuCtxSetCurrent", self._context)

    def evidence(self):
        cache = self._asked(self.attribute, _L2_BYTES)
        return {
            "integrated": bool(self._asked(self.attribute, _INTEGRATED)),
            "instance": (self.uuid or "").startswith("MIG-"),
            "L2_MiB": round(cache / 1048576.0, 1) if cache else None,
        }

    @staticmethod
    def _asked(ask, what):
        try:
            return ask(what)
        except CudaError:
            return None

    # -- memory

    @contextlib.contextmanager
    def areas(self, *sizes):
        """Device pointers to areas of so many bytes, freed at the end."""
        made = []
        try:
            for size in sizes:
                made.append(self.allocate(size))
            yield made
        finally:
            with contextlib.suppress(CudaError):  # of a dead context: report what killed it
                for pointer in made:
                    self.free(pointer)

    @contextlib.contextmanager
    def pinned(self, size):
        """The address of pinned host memory, which the driver allocates."""
        pointer = _pointer()
        self._call("cuMemHostAlloc", ctypes.byref(pointer), size, _PORTABLE)
        try:
            yield pointer.value
        finally:
            with contextlib.suppress(CudaError):
                self._call("cuMemFreeHost", pointer)

    # -- copies, which are queued

    def to_device(self, pointer, address, size):
        self._call("cuMemcpyHtoDAsync_v2", pointer, address, size, None)

    def to_host(self, address, pointer, size):
        self._call("cuMemcpyDtoHAsync_v2", address, pointer, size, None)

    def within(self, to, pointer, size):
        self._call("cuMemcpyDtoDAsync_v2", to, pointer, size, None)

    def to_peer(self, peer, to, pointer, size):
        """From this GPU to another."""
        self._call("cuMemcpyPeerAsync", to, peer._context, pointer, self._context, size, None)

    def reaches(self, peer):
        """Whether the driver lets this GPU reach the peer's memory directly."""
        return bool(self.cuda.integer("cuDeviceCanAccessPeer", self.device, peer.device))

    @contextlib.contextmanager
    def access(self, peer):
        """Both reach each other's memory directly, for a while; this GPU's context is current."""
        opened = []
        try:
            for one, other in ((self, peer), (peer, self)):
                one.use()
                one._call("cuCtxEnablePeerAccess", other._context, 0)
                opened.append((one, other))
            self.use()
            yield
        finally:
            with contextlib.suppress(CudaError):
                for one, other in opened:
                    one.use()
                    one._call("cuCtxDisablePeerAccess", other._context)
                self.use()

    # -- kernels

    def start(self, name, size, arguments, place):
        """Start a kernel of ``pattern_ptx`` on areas of ``size`` bytes, of which a thread takes ``place``."""
        if not self._functions:
            module = self.load(self.link(pattern_ptx.text()))
            self._functions = {one: module.function(one) for one in ("write", "check", "read")}
        count = size // (pattern_ptx.GRID * pattern_ptx.BLOCK * place)
        given = [_u64(value) for value in arguments] + [_u32(count)]
        self.launch(self._functions[name], pattern_ptx.GRID, pattern_ptx.BLOCK, given)

    def write(self, pointer, size, seed, mask):
        self.start("write", size, (pointer, seed, mask), 8)

    def wrong(self, pointer, size, seed, mask, result):
        """What differs from the pattern in an area: (words, first, last, bits), offsets in bytes.

        result: a device pointer to 32 bytes.
        """
        self.upload(result, pattern_ptx.RESULT.pack(*pattern_ptx.NOTHING_WRONG))
        self.start("check", size, (pointer, seed, mask, result), 8)
        packed = self.download(result, pattern_ptx.RESULT.size)
        words, first, last, low, high = pattern_ptx.RESULT.unpack(packed)
        return (words, 8 * first, 8 * last, high << 32 | low) if words else (0, 0, 0, 0)

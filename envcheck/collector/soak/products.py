"""The products of a soak: by the driver alone, or by the target's cuBLAS; each result beside the first."""

import collections
import ctypes
import hashlib
import struct

from ..cuda.libcuda import CudaError
from ..kernels import TYPES, cublas_library, ptx
from ..kernels.cublas import CublasError
from ..kernels.cublas_library import NoLibrary
from ..kernels.failures import NotSupported
from ..kernels.operands import Operands, TooSmall, first_size
from ..kernels.products import Products
from ..systems.shared.transfers.device import TransferDevice
from . import compare_ptx, product_ptx

MOST_AT_ONCE = 512  # products that are started before one waits for them
_BLOCKS = 2  # of each multiprocessor
_REFUSED = (209, 218, 222)  # PTX that is too new for the driver, or for the chip
_COMPARE = ptx.Product((0, 0), (99, 9), "6.0", "sm_30", ())

# A word that differs. unit: the multiprocessor that made it, None where that is not known.
Difference = collections.namedtuple("Difference", "words row column found wanted unit")


class SoakDevice(TransferDevice):
    """One GPU, with the kernel that compares. Calls raise CudaError."""

    def prepare(self, module):
        """Take the comparing kernel out of a module, and make room for what it says."""
        self._compare = module.function(compare_ptx.NAME)
        self._size = MOST_AT_ONCE * compare_ptx.DIFFERENCE.size
        self._differences = self.allocate(self._size)

    def forget(self):
        self.fill(self._differences, 0, self._size)

    def compare(self, number, found, wanted, words):
        """Start comparing ``words``, a multiple of STEP; what differs becomes answer ``number``."""
        place = self._differences + number * compare_ptx.DIFFERENCE.size
        arguments = [ctypes.c_uint64(one) for one in (found, wanted, place)]
        arguments.append(ctypes.c_uint32(words // compare_ptx.STEP))
        self.launch(self._compare, compare_ptx.GRID, compare_ptx.BLOCK, arguments)

    def differences(self, number):
        """[(which, words, place, found, wanted)] of the first ``number`` answers, of those that differ."""
        data = self.download(self._differences, number * compare_ptx.DIFFERENCE.size)
        answers = enumerate(compare_ptx.DIFFERENCE.iter_unpack(data))
        return [(which,) + one for which, one in answers if one[0]]


class _Compared(object):
    """A product whose result is ``words`` long, at ``result``; a multiple of compare_ptx.STEP is compared."""

    def __init__(self, device, words):
        self._device = device
        self.words = words
        self.compared = -(-words // compare_ptx.STEP) * compare_ptx.STEP
        self.reference = device.allocate(4 * self.compared)

    def begin(self, number):
        """The operands of round ``number``, and their first result, which the others are compared with.

        Returns {"digest": SHA-256 of what all GPUs of this name must have, "wrong": [(kind of mismatch,
        Difference)]}.
        """
        self.change(number)
        self.start(0)
        self._device.synchronize()
        self._device.within(self.reference, self.result, 4 * self.compared)
        self._device.synchronize()
        return self._judged(self._device.download(self.reference, 4 * self.words))

    def compare(self, number):
        self._device.compare(number, self.result, self.reference, self.compared)


class DriverProduct(_Compared):
    """The driver's compiler and its launches: nothing of the target."""

    level = "driver"

    def __init__(self, device):
        self.mode, self._instruction, module = _compiled(device)
        self.shape = product_ptx.SoakShape(self._instruction)
        self.call = self._instruction.words
        self._blocks = _BLOCKS * device.multiprocessors
        _Compared.__init__(self, device, self._blocks * self.shape.block_words)
        device.prepare(module)
        self._function = module.function(product_ptx.NAME)
        self.flop = self.shape.flop * self._blocks
        self.result = device.allocate(4 * self.compared)
        self._units = device.allocate(4 * self._blocks * MOST_AT_ONCE)
        device.fill(self.result, 0, 4 * self.compared)
        self._place = device.allocate(len(self.shape.operands(0)))

    def change(self, number):
        self._device.upload(self._place, self.shape.operands(number))

    def start(self, which):
        units = self._units + 4 * self._blocks * which
        arguments = [ctypes.c_uint64(one) for one in (self._place, self.result, units)]
        arguments.append(ctypes.c_uint32(self.shape.iterations))
        self._device.launch(self._function, self._blocks, self.shape.threads, arguments)

    def difference(self, which, words, place, found, wanted):
        block, row, column = self.shape.place(place)
        at = 4 * (self._blocks * which + min(block, self._blocks - 1))
        (unit,) = struct.unpack("<I", self._device.download(self._units, 4, at))
        return Difference(words, row, column, found, wanted, unit)

    def _judged(self, data):
        """All blocks must have one result."""
        size = 4 * self.shape.block_words
        starts = range(0, len(data), size)
        blocks = collections.Counter(data[start : start + size] for start in starts)
        usual = blocks.most_common(1)[0][0]
        found = {"digest": hashlib.sha256(usual).hexdigest(), "wrong": []}
        if len(blocks) > 1:
            start = next(start for start in starts if data[start : start + size] != usual)
            found["wrong"].append(("first", self._first(data[start : start + size], usual, start)))
            # What is right is what most blocks have: the others are found out again and again.
            self._device.upload(self.reference, usual * self._blocks)
        return found

    def _first(self, block, usual, start):
        """The first word of a block that is not what it is to be."""
        pairs = list(zip(struct.iter_unpack("<I", block), struct.iter_unpack("<I", usual)))
        places = [place for place, (found, wanted) in enumerate(pairs) if found != wanted]
        (found,), (wanted,) = pairs[places[0]]
        return self.difference(0, len(places), start // 4 + places[0], found, wanted)


def product(device, libraries, required):
    """By the target's cuBLAS, which loads a GPU most; where that does not work by the driver."""
    if libraries is not None:
        try:
            return CublasProduct(device, libraries)
        except (NotSupported, CublasError, NoLibrary, TooSmall):
            if required:
                raise
    return DriverProduct(device)


def _compiled(device):
    """(mode, instruction, Module) of the first mode that the chip has and the driver compiles."""
    failure = None
    for mode in product_ptx.MODES:
        for product in ptx.products(mode, device.capability):
            try:
                module = device.load(device.link(product_ptx.text(product)))
                return mode, product.instructions[0], module
            except CudaError as error:
                if error.code not in _REFUSED:
                    raise
                failure = failure or error
    raise NotSupported("the driver does not compile the products' kernels (%s)" % failure)


class CublasProduct(_Compared):
    """The target's own cuBLAS, on matrices that fill the GPU."""

    level = "cublas"

    def __init__(self, device, libraries):
        version = int(device.cuda.driver_version().split(".")[0])
        library = cublas_library.load(libraries["libcublas"], libraries["libcublasLt"], version)
        self.library = library.path
        self.library_version = ".".join(str(part) for part in library.version)
        products = Products(library, device.capability)
        self.mode = self._mode(products)
        self.call = "cublasGemmEx, %s into FP32" % self.mode.upper()
        device.prepare(
            device.load(device.link("\n".join([ptx.header(_COMPARE), compare_ptx.text()])))
        )
        n = first_size(device.multiprocessors, device.memory_free())
        operands = Operands(device, n)
        types = TYPES[self.mode][0]  # into FP32: more bits to compare
        device.fill(operands.c, 0, 4 * n * n)
        self._n = n
        self._operands, self._type = operands, types[0]
        self._start = products.starter(self.mode, operands, types)
        self.flop = 2.0 * n**3
        self.result = operands.c
        _Compared.__init__(self, device, n * n)
        if self.compared != self.words:
            raise NotSupported("%d rows are no whole number of steps" % n)

    @staticmethod
    def _mode(products):
        for mode in product_ptx.MODES:
            try:
                products.require(mode)
                return mode
            except NotSupported as error:
                failure = error
        raise failure

    def change(self, number):
        self._operands.fill_random(self._type, number)

    def start(self, _which):
        self._start()

    def difference(self, _which, words, place, found, wanted):
        """The result is column-major."""
        column, row = divmod(place, self._n)
        return Difference(words, row, column, found, wanted, None)

    def _judged(self, data):
        return {"digest": hashlib.sha256(data).hexdigest(), "wrong": []}

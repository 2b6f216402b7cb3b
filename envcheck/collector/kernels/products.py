"""A mode's matrix product by the target's cuBLAS, as something that can be started."""

from . import TYPES, cublaslt
from .cublas import Cublas
from .cublaslt import CublasLt
from .failures import NotSupported
from .operands import WORKSPACE

# The first compute capability whose Tensor Cores have the mode; as core_rates.csv, which cannot be read here.
FIRST = {"tf32": (8, 0), "fp16": (7, 0), "bf16": (8, 0), "int8": (7, 2), "fp8": (8, 9)}
_FIRST_LT_FP8 = (11, 11)  # cuBLAS of CUDA 11.8


class Products(object):
    def __init__(self, library, capability):
        """library: a cublas_library.Library. Raises CublasError where it gives no handle."""
        self.major = library.major  # of CUDA
        self._library = library
        self._capability = capability
        self._cublas = Cublas(library)
        self._lt = None

    def require(self, mode):
        """Raise NotSupported where the chip or the library is known not to have the mode."""
        if self._capability < FIRST.get(mode, (0, 0)):
            raise NotSupported(
                "compute capability %d.%d has no Tensor Cores for %s"
                % (self._capability + (mode.upper(),))
            )
        version = ".".join(str(part) for part in self._library.version) or "of unknown version"
        if mode != "fp8" and not self._cublas.has(mode):
            raise NotSupported("cuBLAS %s has no %s" % (version, mode.upper()))
        if mode == "fp8" and self._library.version[:2] < _FIRST_LT_FP8:
            raise NotSupported("cuBLAS %s has no FP8, which came with 11.11" % version)
        if mode == "fp8" and self._library.lt is None:
            raise NotSupported("there is no libcublasLt for %s" % self._library.path)

    def text(self, mode):
        """The call in words, of the types that are timed."""
        return cublaslt.TEXT if mode == "fp8" else self._cublas.text(mode, TYPES[mode][-1])

    def starter(self, mode, operands, types=None):
        """A function that starts C = A x B once; types: (of A and B, of C), those that are timed if None.

        The function raises CublasError; a failure on the GPU comes up when its result is waited for.
        """
        types = types or TYPES[mode][-1]
        a, b = operands.of(types[0])
        if mode != "fp8":
            return lambda: self._cublas.product(mode, types, a, b, operands.c, operands.n)
        if self._lt is None:
            self._lt = CublasLt(self._library.lt)
        where = operands.workspace, WORKSPACE
        return lambda: self._lt.product(a, b, operands.c, operands.n, *where)

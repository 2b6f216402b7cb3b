"""What the frameworks' sides of L2 share: settings, one product in one setting, and the host's clock.

An adapter stands for a framework on one device; a Product for one matrix product, A (m x k) by B (k x n),
written the way a user writes it. Imports no framework: framework_torch.py and its like are handed theirs.
"""

import os
import re
import time

from . import mapped_blas
from .failures import NotSupported

OVERRIDE = "NVIDIA_TF32_OVERRIDE"  # cuBLAS's own switch: "0" stands above all others
TF32 = {"switch-on": True, "switch-off": False, "control": False}  # the other settings leave it

_TF32_SINCE = 11  # the CUDA release that brought it

_MEMORY = re.compile(
    r"(?i)out[ _]of[ _]memory|resource_?exhausted|\boom when\b|cublas_status_alloc_failed"
    r"|can't allocate memory|cannot allocate memory"
)
_LACKING = re.compile(
    r"(?i)not[ _]implemented|unimplemented|not[ _]supported|unsupported|no opkernel"
    r"|cannot assign a device|could not find (?:valid )?device|has no attribute"
)
_REASON = 400  # characters


def explain(error, function):
    """(outcome, reason) of a ModeRun that ended with this exception in ``function``, "torch.matmul"."""
    words = " ".join(str(error).split())
    if isinstance(error, NotSupported):
        return "not-supported", words[:_REASON]
    reason = ("%s: %s: %s" % (function, type(error).__name__, words))[:_REASON]
    if isinstance(error, MemoryError) or _MEMORY.search(reason):
        return "out-of-memory", reason
    if isinstance(error, (NotImplementedError, AttributeError)) or _LACKING.search(reason):
        return "not-supported", reason
    return "error", reason


class Adapter(object):
    """A framework on one device. What is abstract here raises NotImplementedError."""

    name = ""  # "PyTorch"
    function = ""  # "torch.matmul"
    flag = ""  # "torch.backends.cuda.matmul.allow_tf32"
    timer = "host-clock"
    compiles = False  # a product is compiled for its types and shape before it can run

    def __init__(self, module, device):
        self.module = module
        self.device = device
        # The user's own state, before anything is switched; None where there is no switch.
        self.initial = self.tf32()

    # -- what a framework's side has to say

    def absent(self):
        """Why there is no GPU to run on, in one line; None where there is one."""
        raise NotImplementedError

    def tf32(self):
        """Whether FP32 products may use TF32 now; None where the framework has no switch for it."""
        return

    def set_tf32(self, allowed):
        raise NotImplementedError

    def built_cuda(self):
        """The CUDA release it was built with, "11.8", "" where it does not say; None where without."""
        return

    def product(self, setting, element_type, shape, data=None):
        """A Product of shape (m, n, k). data: A's and B's bytes, row-major; random where there is none."""
        raise NotImplementedError

    def ping(self):
        """A trivial operation on the device, awaited. Raises where the device or its context is dead."""
        raise NotImplementedError

    def call(self, setting):
        """The product as it was written, with the state that it ran in, for a ModeRun."""
        state = self.tf32()
        return (
            self.function if state is None else "%s, %s is %s" % (self.function, self.flag, state)
        )

    def length(self, setting, n):
        """k of an n x n result in a setting."""
        return n

    def release(self):
        """Give the memory of products that are gone back to the device."""

    # -- what is the same for all

    def switch(self, setting):
        """Set the framework's TF32 switch as a setting has it. Raises NotSupported where it cannot."""
        wanted = TF32.get(setting, self.initial)
        if self.tf32() is not None and self.tf32() != wanted:
            self.set_tf32(wanted)
        state = self.tf32()
        if state == wanted:
            return
        if wanted:
            raise NotSupported(self._cannot("on"))
        # cuBLAS itself stays with FP32 under the override, and where it is older than TF32.
        if os.environ.get(OVERRIDE) != "0" and (state or self._knows_tf32()):
            raise NotSupported(self._cannot("off"))

    def _cannot(self, way):
        title = "%s %s" % (self.name, getattr(self.module, "__version__", "of no known version"))
        if self.tf32() is None:
            return "%s has no switch that turns TF32 %s" % (title, way)
        return "%s did not turn TF32 %s when it was asked to: %s" % (title, way, self.call(""))

    def _knows_tf32(self):
        """Whether its cuBLAS can use TF32: the one that is mapped, else the one that it was built with."""
        version = mapped_blas.facts()["library_version"]
        if not isinstance(version, str):
            version = self.built_cuda()
        if version is None:
            return False
        major = version.partition(".")[0]
        return not major.isdecimal() or int(major) >= _TF32_SINCE


class Product(object):
    """One matrix product in one setting, again and again."""

    def __init__(self, adapter, setting, shape):
        self.adapter = adapter
        self.setting = setting
        self.shape = shape

    def launch(self):
        """Start it; the result, which may still be in the making."""
        raise NotImplementedError

    def wait(self, result):
        raise NotImplementedError

    def data(self, result):
        """A result's bytes, row-major."""
        raise NotImplementedError

    def result(self):
        """The result's bytes, row-major."""
        self.adapter.switch(self.setting)
        return self.data(self.launch())

    def once(self):
        """One product, awaited."""
        self.adapter.switch(self.setting)
        self.wait(self.launch())

    def seconds(self, count, meanwhile=None):
        """How long ``count`` products take together. ``meanwhile()`` is called while the device is busy."""
        self.adapter.switch(self.setting)
        started = time.perf_counter()
        self.batch(count)
        taken = time.perf_counter() - started
        if meanwhile is not None:
            # One more, since the host's clock would count what meanwhile() takes.
            extra = self.launch()
            meanwhile()
            self.wait(extra)
        return taken

    def batch(self, count):
        """That many products, awaited."""
        result = None
        for _ in range(count):
            result = self.launch()
        self.wait(result)

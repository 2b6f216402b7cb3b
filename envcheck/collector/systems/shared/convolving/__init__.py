"""Convolutions in each framework: their shapes, what all sides share, and the cuDNN that is mapped."""

import importlib
import os
from collections import namedtuple

from ....cuda import dl, libraries
from ....kernels.driver import Driver
from ....kernels.failures import NotSupported

# The first compute capability with the type; FP16 is a type of all.
FIRST = {"TF32": (8, 0), "BF16": (8, 0)}
TYPES = {"FP32": "float32", "TF32": "float32", "FP16": "float16", "BF16": "bfloat16"}
_MAJOR, _MINOR = 75, 76  # CUdevice_attribute, of the compute capability


class Shape(namedtuple("Shape", "dimensions batch inputs outputs edge kernel stride")):
    """edge: of the image, in each dimension; kernel: of the filter. No padding."""

    @property
    def sizes(self):
        """Of the image, the filter and the result, in the order batch or outputs, channels, places."""
        some, edge = self.dimensions, (self.edge - self.kernel) // self.stride + 1
        return (
            [self.batch, self.inputs] + [self.edge] * some,
            [self.outputs, self.inputs] + [self.kernel] * some,
            [self.batch, self.outputs] + [edge] * some,
        )

    @property
    def places(self):
        """How many a channel of the image, of the filter and of the result has."""
        return [size[-1] ** self.dimensions for size in self.sizes]


_SIDES = {"tensorflow": "TensorFlowSide", "torch": "TorchSide", "jax": "JaxSide"}


def side_of(module, params):
    """The Side of the framework that params name."""
    name = params["framework"]
    side = getattr(importlib.import_module("%s.%s" % (__name__, name)), _SIDES[name])
    return side(module, params["device"])


def capability():
    """(8, 0), of CUDA's first device; None where nobody tells."""
    try:
        driver = Driver()
        driver.device = driver.cuda.device(0)  # and no context: the framework makes its own
        return driver.attribute(_MAJOR), driver.attribute(_MINOR)
    except Exception:
        return None


class Side(object):
    """A framework that convolves on one device. What is abstract here raises NotImplementedError."""

    def __init__(self, module, device):
        self.module = module
        self.on_gpu = device == "gpu"

    def absent(self):
        """Why it cannot run on its device; None where it can."""
        raise NotImplementedError

    def convolve(self, shape, kind, image, filter_, gradient=None):
        """The result, and with a gradient of it those of image and filter: flat lists, as ``sizes`` orders.

        kind: "FP16". The switch for TF32 stays as it is.
        """
        raise NotImplementedError

    def set_tf32(self, allowed):
        """Turn the framework's own switch. Raises NotSupported where this version has none."""
        raise NotImplementedError

    def by_cudnn(self):
        """How many of the operations of the first convolution were cuDNN's; None where nobody tells."""
        return

    def cudnn_files(self):
        """The paths of cuDNN's libraries that this process has mapped."""
        paths = dict.fromkeys(region.path for region in dl.mappings())
        known = {path: libraries.known(os.path.basename(path)) for path in paths}
        return [path for path, one in known.items() if one and one.name.startswith("libcudnn")]

    def cudnn(self):
        """Evidence of the cuDNN that is mapped: its own word for its version, and where it lies."""
        for path in self.cudnn_files():
            known = libraries.known(os.path.basename(path))
            if known.name == "libcudnn":
                handle = dl.loaded(path)
                version = libraries.ask(handle, known, dl.where(handle)[1])["version"]
                return {"path": path, "version": version if isinstance(version, str) else "?"}
        raise NotSupported("no libcudnn is mapped as a file of its own")

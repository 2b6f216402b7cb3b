"""What the sides of the frameworks share that convolve: the device, and the cuDNN that is mapped."""

import os

from .... import framework
from ....cuda import dl, libraries
from ....kernels.driver import Driver
from ....kernels.failures import NotSupported

_MAJOR, _MINOR = 75, 76  # CUdevice_attribute, of the compute capability


def capability():
    """(8, 0), of CUDA's first device; None where nobody tells."""
    try:
        driver = Driver()
        driver.device = driver.cuda.device(0)  # and no context: the framework makes its own
        return driver.attribute(_MAJOR), driver.attribute(_MINOR)
    except Exception:
        return None


class Side(object):
    """A framework that convolves on one device. device: "gpu" or "cpu"."""

    def __init__(self, module, device):
        self.module = module
        self.on_gpu = device == "gpu"
        self.tf32 = ""  # "on" or "off" in what ran last; "no switch", "" on a CPU

    def absent(self):
        """Why it cannot run on its device; "" where it can."""
        raise NotImplementedError

    def convolve(self, shape, kind, image, filter_, gradient):
        """The three passes of a convolutions.Shape, each a flat list of floats. kind: "FP16".

        What it takes and gives stands in the order batch or outputs, channels, places.
        """
        raise NotImplementedError

    def words(self, shape, image, filter_):
        """The result of an FP32 convolution, forward, as bytes: batch, outputs, places.

        image, filter_: bytes of FP32 words in that order. With the switches as they are.
        """
        raise NotImplementedError

    def flag(self):
        """What the framework says of its own switch, in words."""
        raise NotImplementedError

    def set_tf32(self, allowed):
        """Turn the framework's own switch. Raises NotSupported where this version has none."""
        raise NotImplementedError

    def choose(self, kind):
        """Turn the switch as FP32 and TF32 need it, on a GPU."""
        if not self.on_gpu or kind not in ("FP32", "TF32"):
            return
        try:
            self.set_tf32(kind == "TF32")
            self.tf32 = "on" if kind == "TF32" else "off"
        except NotSupported:
            self.tf32 = "no switch"
            if kind == "TF32":
                raise

    def capability(self):
        """(8, 0); None on a CPU, and where nobody tells."""
        return capability() if self.on_gpu else None

    def ran_by(self):
        """Evidence of what ran the convolution just made; empty where the framework does not tell."""
        return {}

    def without_cudnn(self, tell):
        """Run one without cuDNN, as a control, where the framework can."""

    def cudnn_files(self):
        """The paths of cuDNN's libraries that this process has mapped."""
        found = []
        for region in dl.mappings():
            known = libraries.known(os.path.basename(region.path))
            if known and known.name.startswith("libcudnn") and region.path not in found:
                found.append(region.path)
        return found

    def cudnn(self):
        """Evidence of the cuDNN that is mapped: its own word for its version, and where it lies."""
        for path in self.cudnn_files():
            known = libraries.known(os.path.basename(path))
            if known.name == "libcudnn":
                handle = dl.loaded(path)
                version = libraries.ask(handle, known, dl.where(handle)[1])["version"]
                return {"path": path, "version": version if isinstance(version, str) else "?"}
        raise NotSupported("no libcudnn is mapped as a file of its own")


def asked(function, *arguments):
    """What a framework says; "" where it does not."""
    told = framework.ask(function, *arguments)
    return "" if told is None or isinstance(told, dict) else told

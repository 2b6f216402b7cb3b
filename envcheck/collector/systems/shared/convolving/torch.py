"""PyTorch's side of the convolutions, which needs no NumPy."""

import contextlib

from ....cuda import libraries
from ....kernels.failures import NotSupported
from . import TYPES, Side


class TorchSide(Side):
    def __init__(self, module, device):
        Side.__init__(self, module, device)
        self.device = "cuda:0" if self.on_gpu else "cpu"
        self._ran = None  # the names of the first convolution's operations

    def absent(self):
        if not self.on_gpu or self.module.cuda.is_available():
            return None
        return "PyTorch sees no GPU here: torch.cuda.is_available() is False"

    def convolve(self, shape, kind, image, filter_, gradient=None):
        torch = self.module
        dtype = getattr(torch, TYPES[kind], None)
        if dtype is None:
            raise NotSupported("this PyTorch has no torch.%s" % TYPES[kind])

        def tensor(numbers, size):
            made = torch.tensor(numbers, dtype=torch.float32).reshape(size)
            return made.to(self.device).to(dtype)

        x, w = (tensor(one, size) for one, size in zip((image, filter_), shape.sizes))
        for one in (x, w) if gradient is not None else ():
            one.requires_grad_()
        functional = torch.nn.functional
        function = functional.conv2d if shape.dimensions == 2 else functional.conv3d
        with self._watched():
            made = [function(x, w, stride=shape.stride)]
        if gradient is not None:
            made[0].backward(tensor(gradient, shape.sizes[2]))
            made += [x.grad, w.grad]
        return [one.detach().float().cpu().reshape(-1).tolist() for one in made]

    @contextlib.contextmanager
    def _watched(self):
        """Note the names of the operations of the first convolution; old and new PyTorches have this."""
        profile = None
        if self._ran is None:
            with contextlib.suppress(Exception):
                profile = self.module.autograd.profiler.profile()
                profile.__enter__()
        try:
            yield
        finally:
            with contextlib.suppress(Exception):
                if profile is not None:
                    profile.__exit__(None, None, None)
                    self._ran = sorted({one.name for one in profile.function_events})

    def by_cudnn(self):
        return sum("cudnn" in name for name in self._ran) if self._ran else None

    def cudnn(self):
        """By PyTorch itself, which old wheels have cuDNN inside."""
        if not self.on_gpu:
            return Side.cudnn(self)
        version = self.module.backends.cudnn.version()
        if version is None:
            raise NotSupported("this PyTorch is built without cuDNN")
        paths = [path for path in self.cudnn_files() if "/libcudnn.so" in path]
        version = libraries.cudnn(int(version)) or str(version)
        return {"version": version, "path": paths[0] if paths else None}

    def set_tf32(self, allowed):
        cudnn = self.module.backends.cudnn
        if self._is_new():
            cudnn.conv.fp32_precision = "tf32" if allowed else "ieee"
        elif hasattr(cudnn, "allow_tf32"):
            cudnn.allow_tf32 = allowed
        else:
            raise NotSupported("this PyTorch has no torch.backends.cudnn.allow_tf32")

    def _is_new(self):
        """Whether it has the switches of 2.9, which are not to be mixed with those before."""
        try:
            return hasattr(self.module.backends.cudnn.conv, "fp32_precision")
        except Exception:
            return False

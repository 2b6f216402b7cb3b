"""Autocast and GradScaler of all PyTorches, and the types in which what they govern computes."""

import importlib

from ....kernels.failures import NotSupported

CONVOLUTIONS = ("convolution",)
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "linear", "matmul")


def type_for(torch, device):
    return torch.float16 if device == "cuda" else torch.bfloat16


def cast(torch, device, enabled=True, dtype=None):
    """The context of automatic mixed precision."""
    if not hasattr(torch, "autocast"):
        raise NotSupported("torch.autocast came with PyTorch 1.10")
    return torch.autocast(device, dtype=dtype or type_for(torch, device), enabled=enabled)


def make_scaler(torch, device, **options):
    amp = getattr(torch, "amp", None)
    if hasattr(amp, "GradScaler"):  # 2.3
        return amp.GradScaler(device, **options)
    if device == "cpu":
        raise NotSupported("GradScaler for the CPU came with PyTorch 2.3")
    if not hasattr(torch.cuda, "amp") or not hasattr(torch.cuda.amp, "GradScaler"):
        raise NotSupported("GradScaler came with PyTorch 1.6")
    return torch.cuda.amp.GradScaler(**options)


def name(dtype):
    return str(dtype).split(".")[-1]


def version(torch):
    words = str(torch.__version__).split("+")[0].split(".")[:2]
    return tuple(int(word) if word.isdecimal() else 0 for word in words)


def watched(torch):
    """A context that notes what runs in it, in ``seen``: [(operation, type of its result)]."""
    try:
        mode = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    except (ImportError, AttributeError):
        mode = None
    if mode is None or version(torch) < (1, 13):  # the mode of 1.12 is another
        raise NotSupported("which types operations have is seen from PyTorch 1.13 on")

    class ByDispatch(mode):
        how = "TorchDispatchMode"

        @classmethod
        def _should_skip_dynamo(cls):
            return False  # else the whole of torch._dynamo is imported for nothing

        def __init__(self):
            mode.__init__(self)
            self.seen = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            what = str(function).split(".")[:2][-1]  # of "aten.convolution_backward.default"
            results = result if isinstance(result, (tuple, list)) else [result]
            kinds = [one.dtype for one in results if isinstance(one, torch.Tensor)]
            if kinds:
                self.seen.append((what.replace("_backward", ""), kinds[0]))
            return result

    return ByDispatch()

"""What shows whether a row's mode engaged: types of operations, bits, kernels, compiled graphs."""

import ctypes
import importlib
import struct
import warnings

from ...systems.shared.amp import torch_types
from .. import tf32_bits

_ATTENTION = "scaled_dot_product"
# As torch.compile's graphs name them, and inference_mode().
_WHOLE = ("conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d")
_CONVOLUTIONS = torch_types.CONVOLUTIONS + _WHOLE
_KERNELS = 16
_EDGE = {
    "cuda": 1024,
    "cpu": 64,
}  # of products whose bits are looked at: small ones may take other kernels
_CHANNELS = {"cuda": 128, "cpu": 16}


def of_operations(torch, once):
    """Counts of what ran in ``once()``."""
    watched = torch_types.watched(torch)
    with watched:
        once()
    return dict(counted(torch, watched.seen), seen_by=watched.how)


def counted(torch, seen):
    """seen: [(operation, type of its result)]."""
    convolutions = [kind for what, kind in seen if what in _CONVOLUTIONS]
    products = [kind for what, kind in seen if what in torch_types.PRODUCTS or _ATTENTION in what]
    halves = (torch.float16, torch.bfloat16)
    found = {}
    for name, kinds in (("convolutions", convolutions), ("products", products)):
        found[name] = len(kinds)
        found["half_" + name] = sum(kind in halves for kind in kinds)
    both = convolutions + products
    if both:
        found["math_dtype"] = torch_types.name(max(set(both), key=both.count))
    return found


class TorchGraphs(object):
    """torch.compile's backend: notes the graphs that it is given, and leaves the work to Inductor."""

    def __init__(self, torch):
        self._torch = torch
        self._count = 0
        self._seen = []

    def __call__(self, graph, examples, **options):
        self._count += 1
        self._note(graph)
        inductor = importlib.import_module("torch._inductor.compile_fx")
        return inductor.compile_fx(graph, examples, **options)

    def _note(self, graph):
        modules = dict(graph.named_modules())
        for node in graph.graph.nodes:
            kind = getattr(node.meta.get("example_value"), "dtype", None)
            what = _operation(self._torch, node, modules)
            if what and kind is not None:
                self._seen.append((what, kind))

    def evidence(self):
        """The operations of the graphs forward, by the types that the compiler was given for them."""
        found = {"compiled_modules": self._count}
        if not self._seen:
            found["hidden_by_compiler"] = True
            return found
        return dict(found, seen_by="the compiler's graphs", **counted(self._torch, self._seen))


def _operation(torch, node, modules):
    if node.op == "call_module":
        part, nn = modules.get(node.target), torch.nn
        if isinstance(part, (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
            return "convolution"
        return "linear" if isinstance(part, nn.Linear) else ""
    if node.op not in ("call_function", "call_method"):
        return ""
    name = getattr(node.target, "__name__", None) or str(node.target)
    if name in _WHOLE:
        return "convolution"
    return name if name in torch_types.PRODUCTS or _ATTENTION in name else ""


def tf32(torch, device):
    """{"tf32_product_bits", "tf32_convolution_bits"}, with the switches as they are."""
    found = {}
    for name, multiplied in (("product", _product), ("convolution", _convolution)):
        try:
            results = [multiplied(torch, device, factor) for factor in tf32_bits.FACTORS]
        except RuntimeError:  # without memory for it, or without such kernels
            continue
        found["tf32_%s_bits" % name] = tf32_bits.name(results)
    return found


def _product(torch, device, factor):
    edge = _EDGE[device]
    left = torch.zeros(edge, edge, device=device)
    left[:, 0] = factor
    right = torch.zeros(edge, edge, device=device)
    right[0, :] = 1.0
    with torch.no_grad():
        return _numbers(torch.matmul(left, right))


def _convolution(torch, device, factor):
    """A stride of 2 keeps Winograd's and Fourier's transforms away."""
    channels = _CHANNELS[device]
    image = torch.zeros(8, channels, 29, 29, device=device)
    image[:, 0] = factor
    weights = torch.zeros(channels, channels, 3, 3, device=device)
    weights[:, 0, 1, 1] = 1.0
    with torch.no_grad():
        return _numbers(torch.nn.functional.conv2d(image, weights, stride=2))


def _numbers(result):
    """All numbers that it holds. Works without NumPy."""
    flat = result.cpu().contiguous()
    data = ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size())
    return {number for (number,) in struct.iter_unpack("<f", data)}


def kernels(torch, once):
    """Names of a GPU's kernels in ``once()``, those that took longest first; [] where none is seen."""
    try:
        profiler = torch.profiler  # 1.8.1
        activities = [profiler.ProfilerActivity.CUDA]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with profiler.profile(activities=activities) as profile:
                once()
                torch.cuda.synchronize()
        return longest(profile.key_averages())
    except Exception:  # CUPTI is missing, or another profiler has it
        return []


def longest(averages):
    """The names of kernels in a profile's averages, the one that took longest first."""
    took = {}
    for one in averages:
        if "cuda" not in str(getattr(one, "device_type", "")).lower():
            continue
        microseconds = getattr(one, "self_device_time_total", None)  # 2.4
        if microseconds is None:
            microseconds = getattr(one, "self_cuda_time_total", 0)
        took[str(one.key)] = took.get(str(one.key), 0) + microseconds
    return sorted(took, key=lambda name: -took[name])[:_KERNELS]

"""What AMP gains in PyTorch: a training step in 16 bits, in FP32 and in TF32, timed in turns.

Two steps: a product alone (its gradients of both operands, too), and convolutions with a product behind
them. The product runs at sizes that are multiples of 8, and at one more and one less.
"""

import warnings

from ..kernels import cupti, framework_torch
from .running import records
from .shared.amp import turns
from .shared.amp.torch_types import cast

SYSTEM = "amp-tensor-cores"
FRAMEWORK = "torch"
DEADLINE = 30.0
GPUS = 1
ALONE = True

_LARGE, _SMALL, _TINY = 4096, 2048, 64
_LARGE_MIB = 1000  # what the large product takes, and the convolutions of 32 images
_IMAGES = {_LARGE: 32, _SMALL: 8, _TINY: 1}
_SIDE = {_LARGE: 56, _SMALL: 56, _TINY: 8}
_NAMES = 16  # of kernels


def run(torch, params, tell):
    on_gpu = params["device"] == "gpu"
    if on_gpu and not torch.cuda.is_available():
        raise records.CouldNotRun("torch.cuda.is_available() is False")
    warnings.simplefilter("ignore")  # the switches of TF32 have new names in newer versions
    work = _TorchSpeed(torch, on_gpu)
    n = _LARGE if (params["memory_mib"] or 0) >= _LARGE_MIB else _SMALL
    if not on_gpu:
        n = _TINY
    with tell.trial("product") as trial:
        work.time(trial, n, work.product(n), work.product(_TINY))
    for name, size in (("product n+1", n + 1), ("product n-1", n - 1)):
        with tell.trial(name) as trial:
            work.time(trial, size, work.product(size))
    with tell.trial("convolution") as trial:
        work.time(trial, _IMAGES[n], work.convolution(n), work.convolution(_TINY))


class _TorchSpeed(object):
    def __init__(self, torch, on_gpu):
        self.torch = torch
        self.on_gpu = on_gpu
        self.device = "cuda" if on_gpu else "cpu"
        self.facts = framework_torch.adapter(torch).facts() if on_gpu else {}
        self.switch(False)

    def switch(self, tf32):
        """Whether products and convolutions of 32 bits run in TF32; False where there is no switch (1.7)."""
        backends = self.torch.backends
        matmul = getattr(backends.cuda, "matmul", None)
        if matmul is None or not hasattr(backends.cudnn, "allow_tf32"):
            return False
        matmul.allow_tf32 = tf32
        backends.cudnn.allow_tf32 = tf32
        return True

    def product(self, n):
        """A function of ``half`` that trains a step of one product of n x n matrices."""
        torch = self.torch
        left, right = (torch.randn(n, n, device=self.device).requires_grad_(True) for _ in range(2))

        def step(half):
            left.grad = right.grad = None
            with cast(torch, self.device, half):
                made = torch.matmul(left, right)
            made.backward(torch.ones_like(made))

        return step

    def convolution(self, n):
        torch, nn = self.torch, self.torch.nn
        net = nn.Sequential(
            nn.Conv2d(64, 128, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(128, 128, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(128, 256),
        ).to(self.device)
        images = torch.randn(_IMAGES[n], 64, _SIDE[n], _SIDE[n], device=self.device)

        def step(half):
            for weight in net.parameters():
                weight.grad = None
            with cast(torch, self.device, half):
                made = net(images)
            made.float().sum().backward()

        return step

    def time(self, trial, n, step, tiny=None):
        """tiny: the same step with next to no work in it, which the host's part of it shows."""
        if self.on_gpu:
            self.torch.cuda.empty_cache()
        trial["n"] = n
        trial["float32_is"] = "FP32" if self.switch(False) else "its default"
        capability = self.facts.get("compute_capability")
        if capability:
            trial["gpu"] = self.facts["name"]
            trial["compute_capability"] = capability
        variants = [("amp", self._run(step, True)), ("float32", self._run(step, False))]
        if tiny is not None and self.on_gpu and capability and int(capability.split(".")[0]) >= 8:
            variants.append(("tf32", self._run(step, False, True)))
        for name, found in turns.milliseconds(variants).items():
            trial[name + "_ms"] = found
        if tiny is not None:
            host = turns.milliseconds([("host", self._run(tiny, True))], 1)
            trial["host_ms"] = host["host"]
        if tiny is not None and self.on_gpu:
            self._name_kernels(trial, step)

    def _run(self, step, half, tf32=False):
        timed = self._by_events if self.on_gpu else turns.host_clock

        def prepared(count):
            self.switch(tf32)
            return timed(lambda: step(half), self._wait)(count)

        return prepared

    def _wait(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def _by_events(self, step, wait):
        def run(count):
            cuda = self.torch.cuda
            first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            wait()
            first.record()
            for _ in range(count):
                step()
            last.record()
            last.synchronize()
            return first.elapsed_time(last) / 1000.0

        return run

    def _name_kernels(self, trial, step):
        major = str(self.torch.version.cuda or "").split(".")[0]
        self._wait()
        with cupti.kernel_names(None, int(major) if major.isdecimal() else None) as seen:
            step(True)
            self._wait()
        if isinstance(seen.found, list):
            trial["kernels"] = seen.found[:_NAMES]
        else:
            trial["kernels_unseen"] = seen.found.get("detail") or "no name was seen"

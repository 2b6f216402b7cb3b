"""The training loop, the same for all of PyTorch's models."""

from ...kernels.failures import NotSupported
from .. import models
from . import evidence, together
from .layers import TorchDraw, loss, model
from .precision import TorchPrecision, skipped

_PIECE = 1000  # steps between two looks at the scale: it doubles once in them at most
_AT_ONCE = 1000  # test samples that go forward at once
_NO_COMPILER = (
    "InvalidCxxCompiler",
    "compiler found",
    "triton installation",
    "TritonMissing",
    "not supported on",
)


class TorchTraining(object):
    """A Training (collector/bench/__init__.py)."""

    def __init__(self, torch, row, place):
        kind = "cuda" if place.device == "gpu" else "cpu"
        if kind == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU here: torch.cuda.is_available() is False")
        self._torch, self._row, self._kind = torch, row, kind
        self._described = models.MODELS[row["model"]]
        self._jobs = together.start(torch, row, place)
        self._device = torch.device(kind)
        self._precision = TorchPrecision(torch, row, kind)
        torch.manual_seed(row["seed"])
        draw = TorchDraw(torch, row, self._device, rank=self._jobs.rank)
        self._samples = self._described.samples(draw, row, models.count(row))
        self._at = 0
        layers = self._described.layers(row)
        made = model(torch, layers, self._samples[0])
        self.parameters = sum(one.numel() for one in made.parameters() if one.requires_grad)
        # The layout that Tensor Cores' convolutions take, in which the samples are already.
        self._bare = made.to(self._device).to(memory_format=torch.channels_last)
        self._bare.train(row["train"])
        self._optimizer = self._jobs.optimizer(self._made_optimizer(), self._bare)
        self._model = self._jobs.model(self._bare)
        self._last = self._outputs = self._asked = self._peaks = self._graphs = None
        self._skipped = self._steps = 0
        self._scale = self._precision.scale()
        if models.others(row):
            self.accuracy = self._accuracy
        if row["compiled"]:
            self._compile()

    def _made_optimizer(self):
        optim, rate = self._torch.optim, self._described.rate(self._row)
        if self._described.optimizer == "adam":
            return optim.Adam(self._bare.parameters(), lr=rate)
        return optim.SGD(self._bare.parameters(), lr=rate, momentum=models.MOMENTUM)

    def _next(self):
        """The next (inputs, targets)."""
        size = self._row["batch"]
        first, self._at = self._at, (self._at + size) % len(self._samples[0][0])
        inputs, targets = self._samples
        if len(inputs[0]) == size:
            return inputs, targets
        return [[one[first : first + size] for one in some] for some in (inputs, targets)]

    def run(self, steps):
        count = 0
        piece = _PIECE if self._precision.scaler is not None else steps
        for begun in range(0, steps, piece):
            some = min(piece, steps - begun)
            self._train(some) if self._row["train"] else self._go_forward(some)
            before, self._scale = self._scale, self._precision.scale()
            count += skipped(before, self._scale, some)
        if self._kind == "cuda":
            self._torch.cuda.synchronize()
        self._steps += steps
        self._skipped += count
        return count

    def _train(self, steps):
        precision, optimizer, scaler = self._precision, self._optimizer, self._precision.scaler
        for _step in range(steps):
            inputs, targets = self._next()
            optimizer.zero_grad()
            with precision.cast():
                self._last = loss(self._torch, targets, self._model(*inputs))
            if scaler is None:
                self._last.backward()
                optimizer.step()
            else:
                scaler.scale(self._last).backward()
                self._jobs.step(scaler, optimizer)
                scaler.update()

    def _go_forward(self, steps):
        with self._without_gradients(), self._precision.cast():
            for _step in range(steps):
                inputs, self._asked = self._next()
                self._outputs = self._model(*inputs)

    def loss(self):
        if self._row["train"]:
            return float(self._last.detach())
        with self._without_gradients(), self._precision.cast():
            return float(loss(self._torch, self._asked, self._outputs))

    def evidence(self):
        torch = self._torch
        if self._graphs is not None:
            found = self._graphs.evidence()
        else:
            found = evidence.of_operations(torch, self._bare, self._once)
        bits = evidence.tf32(torch, self._kind)
        found.update(bits)
        # What a model mostly computes is what its TF32 is about.
        mostly = "convolution" if found.get("convolutions") else "product"
        found["tf32_bits"] = bits.get("tf32_%s_bits" % mostly, "not known")
        if self._scale:
            found["loss_scale"] = float(self._scale["scale"])
            found["skipped_steps"] = self._skipped
        if self._kind == "cuda":
            found["kernels"] = evidence.kernels(torch, self._once) or None
        return found

    def memory(self):
        if self._kind != "cuda" or self._peaks is not None:
            return self._peaks or {}
        cuda = self._torch.cuda
        peaks = {
            "tensors_mib": cuda.max_memory_allocated(),
            "pool_mib": cuda.max_memory_reserved(),
        }
        return {name: peak >> 20 for name, peak in peaks.items()}

    def weights(self):
        """Sums of all weights and of their squares: whether two processes have the same."""
        with self._torch.no_grad():
            parts = [one.detach().double() for one in self._bare.parameters()]
            return [float(sum((one**power).sum() for one in parts)) for power in (1, 2)]

    def _compile(self):
        """Go through one batch without a step of the optimizer, and leave no trace of it."""
        torch = self._torch
        if not hasattr(torch, "compile"):
            raise NotSupported("torch.compile came with PyTorch 2.0")
        self._graphs = evidence.TorchGraphs(torch)
        self._model = torch.compile(self._model, backend=self._graphs)
        before = [one.clone() for one in self._bare.buffers()]
        try:
            self._once()
        except Exception as error:
            words = "%s: %s" % (type(error).__name__, error)
            if any(one in words for one in _NO_COMPILER):
                raise NotSupported("torch.compile has no compiler here: %s" % words.split("\n")[0])
            raise
        with torch.no_grad():
            for one, value in zip(self._bare.buffers(), before):
                one.copy_(value)

    def _once(self):
        """A batch forward and backward: no weight moves."""
        size = self._row["batch"]
        inputs, targets = [[one[:size] for one in some] for some in self._samples]
        if not self._row["train"]:
            with self._without_gradients(), self._precision.cast():
                self._model(*inputs)
            return
        with self._precision.cast():
            found = loss(self._torch, targets, self._model(*inputs))
        found.backward()
        self._jobs.finish(self._optimizer)
        self._optimizer.zero_grad()

    def _without_gradients(self):
        if self._row["train"] or not hasattr(self._torch, "inference_mode"):  # 1.9
            return self._torch.no_grad()
        return self._torch.inference_mode()

    def _accuracy(self):
        """On other samples, after an epoch."""
        torch, row = self._torch, dict(self._row, steps=0)  # without mistaken targets
        self._peaks = self.memory()  # before more is taken than training takes
        left = models.count(row) // row["batch"] - self._steps
        if left > 0 and self._row["train"] and not self._row["steps"]:
            self.run(left)
        self._bare.eval()
        number, right = models.others(row), 0
        draw = TorchDraw(torch, row, self._device, other=True)
        (images,), (digits,) = self._described.samples(draw, row, number)
        with torch.no_grad(), self._precision.cast():
            for begun in range(0, number, _AT_ONCE):
                part = slice(begun, begun + _AT_ONCE)
                right += int((self._bare(images[part])[0].argmax(1) == digits[part]).sum())
        self._bare.train(self._row["train"])
        return right / float(number)

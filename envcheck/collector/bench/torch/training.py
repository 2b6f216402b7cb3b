"""The training loop, the same for all of PyTorch's models."""

from ...kernels.failures import NotSupported
from . import evidence, together
from .precision import STUCK, TorchPrecision, skipped


class TorchTraining(object):
    """A Training (collector/bench/__init__.py)."""

    def __init__(self, torch, row, place, model):
        kind = "cuda" if place.device == "gpu" else "cpu"
        if kind == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU here: torch.cuda.is_available() is False")
        self._torch, self._row, self._file = torch, row, model
        self._kind = kind
        self._jobs = together.start(torch, row, place)
        self._device = torch.device(kind)
        self._precision = TorchPrecision(torch, row, kind)
        torch.manual_seed(row["seed"])
        made, self._loss_of = model.make(torch, row)
        self.parameters = sum(one.numel() for one in made.parameters() if one.requires_grad)
        self._bare = made.to(self._device, **self._precision.of_weights())
        self._channels_last()
        self._bare.train(row["train"])
        self._optimizer = self._optimizer_of(model)
        self._model = self._jobs.model(self._bare)
        self._graphs = None
        if row["compiled"]:
            self._graphs = evidence.TorchGraphs(torch)
            self._model = self._compiler()(self._model, backend=self._graphs)
        self._batches(model)
        self._last = self._answers = self._asked = self._peaks = None
        self._skipped = self._steps = 0
        self._scale = self._precision.scale()
        if row["compiled"]:
            self._compile()

    def run(self, steps):
        count = 0
        for piece in pieces(steps, _PIECE if self._precision.scaler is not None else steps):
            self._train(piece) if self._row["train"] else self._go_forward(piece)
            count += self._count_skipped(piece)
        if self._kind == "cuda":
            self._torch.cuda.synchronize()
        self._steps += steps
        self._skipped += count
        return count

    def _count_skipped(self, steps):
        if self._precision.scaler is None:
            return 0
        if self._precision.stuck:
            return 0 if self._has_finite_gradients() else steps
        before, self._scale = self._scale, self._precision.scale()
        return skipped(before, self._scale, steps)

    def _train(self, steps):
        precision, optimizer, scaler = self._precision, self._optimizer, self._precision.scaler
        for _step in range(steps):
            inputs, targets = self._next()
            optimizer.zero_grad()
            with precision.cast():
                self._last = self._loss_of(self._model(*inputs), targets)
            if scaler is None:
                self._last.backward()
                optimizer.step()
            else:
                scaler.scale(self._last).backward()
                self._jobs.step(scaler, optimizer)
                if precision.stuck:
                    scaler.update(STUCK)
                else:
                    scaler.update()

    def _go_forward(self, steps):
        with self._without_gradients(), self._precision.cast():
            for _step in range(steps):
                inputs, self._asked = self._next()
                self._answers = self._model(*inputs)

    def loss(self):
        if self._row["train"]:
            return float(self._last.detach())
        with self._without_gradients(), self._precision.cast():
            return float(self._loss_of(self._answers, self._asked))

    def evidence(self):
        torch = self._torch
        if self._graphs is not None:
            told = self._graphs.evidence()
        else:
            told = evidence.of_operations(torch, self._bare, self._once)
        bits = evidence.tf32(torch, self._kind)
        told.update(bits)
        # What a model mostly computes is what its TF32 is about.
        mostly = "convolution" if told.get("convolutions") else "product"
        told["tf32_bits"] = bits.get("tf32_%s_bits" % mostly, "not known")
        if self._scale:
            told["loss_scale"] = float(self._scale["scale"])
            told["skipped_steps"] = self._skipped
        if self._kind == "cuda":
            told["kernels"] = evidence.kernels(torch, self._once) or None
        return told

    def memory(self):
        if self._kind != "cuda":
            return {}
        if self._peaks is not None:
            return self._peaks
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

    def _optimizer_of(self, model):
        rate = model.RATE[0 if self._row["small"] else 1]
        if self._row["steps"]:
            rate = getattr(model, "COMPARED_RATE", rate)
        made = model.optimizer(self._torch, self._bare.parameters(), rate)
        return self._jobs.optimizer(made, self._bare)

    def _channels_last(self):
        """The layout that Tensor Cores' convolutions take, the same in every precision."""
        nn, torch = self._torch.nn, self._torch
        self._format = None
        for part in self._bare.modules():
            if isinstance(part, nn.Conv2d):
                self._format = torch.channels_last
            elif isinstance(part, nn.Conv3d):
                self._format = getattr(torch, "channels_last_3d", None)
        if self._format is not None:
            self._bare = self._bare.to(memory_format=self._format)

    def _batches(self, model):
        """One that stays on the device, where steps are timed; else the next one of the seed's, each time."""
        torch, row = self._torch, self._row
        random = torch.Generator(device=self._device)
        random.manual_seed(row["seed"] + 1000 * self._jobs.rank)
        fresh = model.samples(torch, row, self._device, random)

        def following():
            inputs, targets = fresh()
            inputs = self._precision.of_inputs(inputs)
            return tuple(self._laid_out(one) for one in inputs), targets

        first = following()
        moves = row["steps"] or hasattr(model, "accuracy")
        self._first = first
        self._next = following if moves else lambda: first

    def _laid_out(self, one):
        kind = self._format
        if kind is None or not one.is_floating_point():
            return one
        return one.contiguous(memory_format=kind)

    def _compiler(self):
        if not hasattr(self._torch, "compile"):
            raise NotSupported("torch.compile came with PyTorch 2.0")
        return self._torch.compile

    def _compile(self):
        """Go through one batch without a step of the optimizer, and leave no trace of it."""
        before = [one.clone() for one in self._bare.buffers()]
        try:
            self._once()
        except Exception as error:
            words = "%s: %s" % (type(error).__name__, error)
            if any(one in words for one in _NO_COMPILER):
                raise NotSupported("torch.compile has no compiler here: %s" % words.split("\n")[0])
            raise
        with self._torch.no_grad():
            for one, value in zip(self._bare.buffers(), before):
                one.copy_(value)

    def _once(self):
        """A batch forward and backward: no weight moves."""
        inputs, targets = self._first
        if not self._row["train"]:
            with self._without_gradients(), self._precision.cast():
                self._model(*inputs)
            return
        with self._precision.cast():
            loss = self._loss_of(self._model(*inputs), targets)
        loss.backward()
        self._jobs.finish(self._optimizer)
        self._optimizer.zero_grad()

    def _has_finite_gradients(self):
        gradients = [one.grad for one in self._bare.parameters() if one.grad is not None]
        return all(bool(self._torch.isfinite(one).all()) for one in gradients)

    def _without_gradients(self):
        if self._row["train"] or not hasattr(self._torch, "inference_mode"):  # 1.9
            return self._torch.no_grad()
        return self._torch.inference_mode()


_PIECE = 1000  # steps between two looks at the scale: it doubles once in them at most
_NO_COMPILER = (
    "InvalidCxxCompiler",
    "compiler found",
    "triton installation",
    "TritonMissing",
    "not supported on",
)


def pieces(count, most):
    return [min(most, count - begun) for begun in range(0, count, most)]


class TorchClassifier(TorchTraining):
    """Of a model that can be right or wrong, and learns an epoch."""

    def accuracy(self):
        row = self._row
        self._peaks = self.memory()  # before more is taken than training takes
        left = 0 if row["steps"] or not row["train"] else self._file.steps(row) - self._steps
        if left > 0:
            self.run(left)
        self._bare.eval()
        found = self._file.accuracy(self._torch, row, self._device, self._answer)
        self._bare.train(row["train"])
        return found

    def _answer(self, inputs):
        with self._torch.no_grad(), self._precision.cast():
            return self._bare(*self._precision.of_inputs(inputs))

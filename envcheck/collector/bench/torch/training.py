"""The training loop, the same for all of PyTorch's models."""

from ...kernels.failures import NotSupported
from .. import models
from . import evidence
from .layers import TorchDraw, loss, model
from .precision import TorchPrecision, skipped

_PIECE = 1000  # steps between two looks at the scale: it doubles once in them at most
_NO_COMPILER = (
    "InvalidCxxCompiler",
    "compiler found",
    "triton installation",
    "TritonMissing",
    "not supported on",
)


class TorchTraining(object):
    """A Training (collector/bench/__init__.py); of a DistributedDataParallel job, one rank."""

    def __init__(self, torch, row, place):
        kind = "cuda" if place.device == "gpu" else "cpu"
        if kind == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU here: torch.cuda.is_available() is False")
        self._torch, self._row, self._kind = torch, row, kind
        described = models.MODELS[row["model"]]
        if place.ranks > 1:
            _meet(torch, place)
        device = torch.device(kind)
        self._precision = TorchPrecision(torch, row, kind)
        torch.manual_seed(row["seed"])
        draw = TorchDraw(torch, row, device, rank=place.rank)
        self._samples = described.samples(draw, row)
        made = model(torch, described.layers(row), self._samples[0])
        self.parameters = sum(one.numel() for one in made.parameters() if one.requires_grad)
        # The layout that Tensor Cores' convolutions take, in which the samples are already.
        self._bare = made.to(device).to(memory_format=torch.channels_last)
        self._optimizer = self._made_optimizer(described)
        self._model = self._bare
        if place.ranks > 1:
            self._model = torch.nn.parallel.DistributedDataParallel(self._bare)
            self.agree = self._agree
        self._last = self._graphs = None
        self._skipped = 0
        self._scale = self._precision.scale()
        if row["compiled"]:
            self._compile()

    def _made_optimizer(self, described):
        optim = self._torch.optim
        if described.optimizer == "adam":
            return optim.Adam(self._bare.parameters(), lr=described.rate)
        return optim.SGD(self._bare.parameters(), lr=described.rate, momentum=models.MOMENTUM)

    def _agree(self, number):
        """The first rank's number."""
        first = self._torch.tensor([number], device=self._kind)
        self._torch.distributed.broadcast(first, 0)
        return int(first)

    def run(self, steps):
        count = 0
        piece = _PIECE if self._precision.scaler is not None else steps
        for begun in range(0, steps, piece):
            some = min(piece, steps - begun)
            self._train(some)
            before, self._scale = self._scale, self._precision.scale()
            count += skipped(before, self._scale, some)
        if self._kind == "cuda":
            self._torch.cuda.synchronize()
        self._skipped += count
        return count

    def _train(self, steps):
        precision, optimizer, scaler = self._precision, self._optimizer, self._precision.scaler
        inputs, targets = self._samples
        for _step in range(steps):
            optimizer.zero_grad()
            with precision.cast():
                self._last = loss(self._torch, targets, self._model(*inputs))
            if scaler is None:
                self._last.backward()
                optimizer.step()
            else:
                scaler.scale(self._last).backward()
                scaler.step(optimizer)
                scaler.update()

    def loss(self):
        return float(self._last.detach())

    def evidence(self):
        torch = self._torch
        if self._graphs is not None:
            found = self._graphs.evidence()
        else:
            found = evidence.of_operations(torch, self._once)
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
        if self._kind != "cuda":
            return {}
        cuda = self._torch.cuda
        peaks = {
            "tensors_mib": cuda.max_memory_allocated(),
            "pool_mib": cuda.max_memory_reserved(),
        }
        return {name: peak >> 20 for name, peak in peaks.items()}

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
        inputs, targets = self._samples
        with self._precision.cast():
            found = loss(self._torch, targets, self._model(*inputs))
        found.backward()
        self._optimizer.zero_grad()


def _meet(torch, place):
    """The other ranks: by NCCL between GPUs, each of which sees its own alone, by Gloo on the CPU."""
    distributed = torch.distributed
    if not distributed.is_available():
        raise NotSupported("this PyTorch is built without torch.distributed")
    backend = "nccl" if place.device == "gpu" else "gloo"
    if backend == "nccl" and not distributed.is_nccl_available():
        raise NotSupported("this PyTorch is built without NCCL")
    distributed.init_process_group(backend, rank=place.rank, world_size=place.ranks)

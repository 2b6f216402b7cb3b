"""The training loop, the same for all of PyTorch's models."""


class TorchTraining(object):
    """A Training (collector/bench/__init__.py)."""

    def __init__(self, torch, row, place, model):
        self._torch = torch
        self._device = torch.device("cuda" if place.device == "gpu" else "cpu")
        torch.manual_seed(row["seed"])
        made, self._loss_of = model.make(torch, row)
        self._model = made.to(self._device)
        self._inputs, self._targets = model.batch(torch, row, self._device)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01, momentum=0.9)
        self._last = None
        self.parameters = sum(one.numel() for one in made.parameters() if one.requires_grad)

    def run(self, steps):
        for _step in range(steps):
            self._optimizer.zero_grad()
            self._last = self._loss_of(self._model(self._inputs), self._targets)
            self._last.backward()
            self._optimizer.step()
        if self._device.type == "cuda":
            self._torch.cuda.synchronize()
        return 0

    def loss(self):
        return float(self._last.detach())

    def evidence(self):
        return {}

    def memory(self):
        if self._device.type != "cuda":
            return {}
        cuda = self._torch.cuda
        peaks = {
            "tensors_mib": cuda.max_memory_allocated(),
            "pool_mib": cuda.max_memory_reserved(),
        }
        return {name: peak >> 20 for name, peak in peaks.items()}

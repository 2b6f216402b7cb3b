"""AMP in PyTorch: the types in which autocast lets a step compute, and what GradScaler does at an overflow.

On a GPU that is float16, on the CPU bfloat16. PyTorch without CUDA switches autocast for CUDA off, with a
warning: that is run there, too.
"""

import warnings

from .running import records
from .shared.amp import torch_types
from .shared.amp.torch_types import cast

SYSTEM = "amp-torch"
FRAMEWORK = "torch"
DEADLINE = 40.0  # torch.optim imports half of PyTorch when it is first used

_SCALE = 2.0**40
_GENTLE = 8.0
_TOO_MUCH = 1e30  # times 2^40 that is infinite in 32 bits, too


def run(torch, params, tell):
    on_gpu = params["device"] == "gpu"
    if on_gpu and not torch.cuda.is_available():
        raise records.CouldNotRun("torch.cuda.is_available() is False")
    if not on_gpu and hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)
    work = _TorchAmp(torch, "cuda" if on_gpu else "cpu")
    with tell.trial("enabled=False", control=True) as trial:
        work.autocast(trial, work.device, enabled=False)
    with tell.trial("autocast") as trial:
        work.autocast(trial, work.device)
    if not on_gpu:
        with tell.trial("autocast for CUDA") as trial:
            work.autocast(trial, "cuda")
    with tell.trial("GradScaler off", control=True) as trial:
        work.scaler(trial, enabled=False)
    with tell.trial("GradScaler") as trial:
        work.scaler(trial)


class _TorchAmp(object):
    def __init__(self, torch, device):
        self.torch = torch
        self.device = device

    def net(self):
        nn = self.torch.nn
        self.torch.manual_seed(1)
        parts = [nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64, 8)]
        return nn.Sequential(*parts).to(self.device)

    def loss(self, net):
        x = self.torch.full((8, 8, 8, 8), 0.05, device=self.device)
        return (net(x).float() - 1.0).pow(2).mean()

    def autocast(self, trial, device, enabled=True):
        """Count what a step computes in 16 bits."""
        net = self.net()
        watched = torch_types.watched(self.torch, net)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with watched:
                with cast(self.torch, device, enabled):
                    loss = self.loss(net)
                loss.backward()
        asked = torch_types.type_for(self.torch, device)
        trial["asked"] = torch_types.name(asked)
        for name, kinds in (
            ("convolutions", torch_types.CONVOLUTIONS),
            ("products", torch_types.PRODUCTS),
        ):
            types = [kind for what, kind in watched.seen if what in kinds]
            trial[name] = len(types)
            trial[name + "_half"] = types.count(asked)
        trial["types"] = sorted({torch_types.name(kind) for _what, kind in watched.seen})
        trial["seen_by"] = watched.how
        trial["loss"] = float(loss.detach())
        words = [str(one.message) for one in said if "autocast" in str(one.message).lower()]
        if words:
            trial["warned"] = records.one_line(words[0])

    def scaler(self, trial, enabled=True):
        """Let it meet an overflow, then an ordinary step."""
        torch = self.torch
        net = self.net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            scaler = torch_types.make_scaler(torch, self.device, init_scale=_SCALE, enabled=enabled)
        trial["scale"] = scaler.get_scale()
        trial["moved_by_overflow"] = self._step(net, optimizer, scaler, _TOO_MUCH)
        trial["scale_after_overflow"] = scaler.get_scale()
        if enabled:
            scaler.update(_GENTLE)
            trial["moved_by_step"] = self._step(net, optimizer, scaler, 1.0)
            trial["scale_after_step"] = scaler.get_scale()

    def _step(self, net, optimizer, scaler, factor):
        """Whether the weights are other ones after it."""
        before = [weight.detach().clone() for weight in net.parameters()]
        optimizer.zero_grad()
        with cast(self.torch, self.device):
            loss = self.loss(net)
        scaler.scale(loss * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        pairs = zip(before, net.parameters())
        return not all(self.torch.equal(old, new.detach()) for old, new in pairs)

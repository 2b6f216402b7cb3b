"""AMP in PyTorch: the types in which autocast lets a step compute, and what GradScaler does at an overflow.

On a GPU that is float16, on the CPU bfloat16.
"""

import warnings

from .running import records
from .shared.amp import torch_types
from .shared.amp.torch_types import cast

SYSTEM = "amp-torch"
FRAMEWORKS = ("torch",)
DEADLINE = 40.0  # torch.optim imports half of PyTorch when it is first used

_SCALE = 2.0**40
_GENTLE = 8.0
_TOO_MUCH = 1e30  # times 2^40 that is infinite in 32 bits, too


def run(torch, params, tell):
    on_gpu = params["device"] == "gpu"
    if on_gpu and not torch.cuda.is_available():
        raise records.CouldNotRun("torch.cuda.is_available() is False")
    if not on_gpu:
        torch.set_num_threads(1)
    device = "cuda" if on_gpu else "cpu"
    warnings.simplefilter("ignore")
    with tell.trial("enabled=False", control=True) as trial:
        _autocast(torch, device, trial, enabled=False)
    with tell.trial("autocast") as trial:
        _autocast(torch, device, trial, enabled=True)
    with tell.trial("GradScaler off", control=True) as trial:
        _scaler(torch, device, trial, enabled=False)
    with tell.trial("GradScaler") as trial:
        _scaler(torch, device, trial, enabled=True)


def _net(torch, device):
    nn = torch.nn
    torch.manual_seed(1)
    parts = [nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64, 8)]
    return nn.Sequential(*parts).to(device)


def _loss(torch, device, net):
    x = torch.full((8, 8, 8, 8), 0.05, device=device)
    return (net(x).float() - 1.0).pow(2).mean()


def _autocast(torch, device, trial, enabled):
    """Count what a step computes in 16 bits."""
    net = _net(torch, device)
    watched = torch_types.watched(torch)
    with watched:
        with cast(torch, device, enabled):
            loss = _loss(torch, device, net)
        loss.backward()
    asked = torch_types.type_for(torch, device)
    trial["asked"] = torch_types.name(asked)
    kinds = {"convolutions": torch_types.CONVOLUTIONS, "products": torch_types.PRODUCTS}
    for name, operations in kinds.items():
        types = [kind for what, kind in watched.seen if what in operations]
        trial[name] = len(types)
        trial[name + "_half"] = types.count(asked)
    trial["seen_by"] = watched.how


def _scaler(torch, device, trial, enabled):
    """Let it meet an overflow, then an ordinary step."""
    net = _net(torch, device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch_types.make_scaler(torch, device, init_scale=_SCALE, enabled=enabled)

    def moves(factor):
        before = [weight.detach().clone() for weight in net.parameters()]
        optimizer.zero_grad()
        with cast(torch, device):
            loss = _loss(torch, device, net)
        scaler.scale(loss * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        pairs = zip(before, net.parameters())
        return not all(torch.equal(old, new.detach()) for old, new in pairs)

    trial["scale"] = scaler.get_scale()
    trial["moved_by_overflow"] = moves(_TOO_MUCH)
    trial["scale_after_overflow"] = scaler.get_scale()
    if enabled:
        scaler.update(_GENTLE)
        trial["moved_by_step"] = moves(1.0)
        trial["scale_after_step"] = scaler.get_scale()

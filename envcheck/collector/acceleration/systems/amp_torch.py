"""AMP in PyTorch: the types in which autocast lets a step compute, and what GradScaler does at an overflow.

On a GPU that is float16, on the CPU bfloat16. PyTorch without CUDA switches autocast for CUDA off, with a
warning: that is run there, too.
"""

import importlib
import warnings

from ...kernels.failures import NotSupported
from .. import telling

SYSTEM = "amp-torch"
FRAMEWORK = "torch"
DEADLINE = 40.0  # torch.optim imports half of PyTorch when it is first used

_SCALE = 2.0**40
_GENTLE = 8.0
_TOO_MUCH = 1e30  # times 2^40 that is infinite in 32 bits, too
_CONVOLUTIONS = ("convolution",)
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "linear", "matmul")


def run(torch, params, tell):
    on_gpu = params["device"] == "gpu"
    if on_gpu and not torch.cuda.is_available():
        raise telling.CouldNotRun("torch.cuda.is_available() is False")
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


def type_for(torch, device):
    return torch.float16 if device == "cuda" else torch.bfloat16


def cast(torch, device, enabled=True):
    """The context of automatic mixed precision."""
    if hasattr(torch, "autocast"):  # 1.10
        return torch.autocast(device, dtype=type_for(torch, device), enabled=enabled)
    if device == "cpu":
        raise NotSupported("autocast for the CPU came with PyTorch 1.10")
    if not hasattr(torch.cuda, "amp") or not hasattr(torch.cuda.amp, "autocast"):
        raise NotSupported("autocast came with PyTorch 1.6")
    return torch.cuda.amp.autocast(enabled=enabled)


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
        watched = _watched(self.torch, net)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with watched:
                with cast(self.torch, device, enabled):
                    loss = self.loss(net)
                loss.backward()
        asked = type_for(self.torch, device)
        trial["asked"] = _name(asked)
        for name, kinds in (("convolutions", _CONVOLUTIONS), ("products", _PRODUCTS)):
            types = [kind for what, kind in watched.seen if what in kinds]
            trial[name] = len(types)
            trial[name + "_half"] = types.count(asked)
        trial["types"] = sorted({_name(kind) for _what, kind in watched.seen})
        trial["seen_by"] = watched.how
        trial["loss"] = float(loss.detach())
        words = [str(one.message) for one in said if "autocast" in str(one.message).lower()]
        if words:
            trial["warned"] = telling.line(words[0])

    def scaler(self, trial, enabled=True):
        """Let it meet an overflow, then an ordinary step."""
        torch = self.torch
        net = self.net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            scaler = self._make_scaler(enabled)
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

    def _make_scaler(self, enabled):
        torch = self.torch
        amp = getattr(torch, "amp", None)
        if hasattr(amp, "GradScaler"):  # 2.3
            return amp.GradScaler(self.device, init_scale=_SCALE, enabled=enabled)
        if self.device == "cpu":
            raise NotSupported("GradScaler for the CPU came with PyTorch 2.3")
        if not hasattr(torch.cuda, "amp") or not hasattr(torch.cuda.amp, "GradScaler"):
            raise NotSupported("GradScaler came with PyTorch 1.6")
        return torch.cuda.amp.GradScaler(init_scale=_SCALE, enabled=enabled)


def _name(dtype):
    return str(dtype).split(".")[-1]


def _watched(torch, net):
    """A context that notes what runs in it, in ``seen``: [(operation, type of its result)]."""
    try:
        dispatch = importlib.import_module("torch.utils._python_dispatch")
        mode = dispatch.TorchDispatchMode
    except (ImportError, AttributeError):
        return _ByModules(torch, net)
    if _version(torch) < (1, 13):  # the mode of 1.12 is another
        return _ByModules(torch, net)

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
            # "aten.convolution_backward.default"
            words = str(function).split(".")
            name = words[1] if len(words) > 1 else words[0]
            results = result if isinstance(result, (tuple, list)) else [result]
            kinds = [one.dtype for one in results if isinstance(one, torch.Tensor)]
            if kinds:
                self.seen.append((name.replace("_backward", ""), kinds[0]))
            return result

    return ByDispatch()


class _ByModules(object):
    """What modules return: of a version whose operations cannot be seen one by one."""

    how = "modules' results"

    def __init__(self, torch, net):
        self.seen = []
        self._hooks = []
        self._parts = [
            (part, "convolution" if isinstance(part, torch.nn.Conv2d) else "linear")
            for part in net
            if isinstance(part, (torch.nn.Conv2d, torch.nn.Linear))
        ]

    def __enter__(self):
        for part, name in self._parts:
            self._hooks.append(part.register_forward_hook(self._noting(name)))
        return self

    def _noting(self, name):
        def note(_module, _inputs, result):
            self.seen.append((name, result.dtype))

        return note

    def __exit__(self, *_raised):
        for hook in self._hooks:
            hook.remove()


def _version(torch):
    numbers = []
    for word in str(torch.__version__).split("+")[0].split(".")[:2]:
        numbers.append(int(word) if word.isdecimal() else 0)
    return tuple(numbers)

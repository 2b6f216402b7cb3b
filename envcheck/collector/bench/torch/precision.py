"""In which numbers a row computes: TF32's switches, autocast and its scaler, everything in 16 bits."""

import contextlib
import math
import warnings

from ...acceleration.amp import torch_types
from ...kernels.failures import NotSupported

# A scale at which every gradient is infinite, for ever: each step is skipped.
STUCK = float("inf")


class TorchPrecision(object):
    """half: the 16-bit type, None without one. scaler: a GradScaler, or None."""

    def __init__(self, torch, row, device):
        self._torch = torch
        self._device = device
        self.half = self.scaler = None
        self.casts = row["precision"] == "amp"
        self.stuck = row["scaler"] == "stuck"
        self.pure = row["precision"] == "half"
        if row["precision"] in ("fp32", "tf32"):
            switch_tf32(torch, row["precision"] == "tf32")
        else:
            kind = row["half"] or torch_types.name(torch_types.type_for(torch, device))
            self.half = getattr(torch, kind, None)
            if self.half is None:
                raise NotSupported("this PyTorch has no torch.%s" % kind)
        if self.casts:
            self._check()
        if self.casts and row["scaler"]:
            options = {"init_scale": STUCK} if self.stuck else {}
            self.scaler = torch_types.make_scaler(torch, device, **options)

    def _check(self):
        """PyTorch switches autocast off with a warning where it does not have the type."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.cast()
        for one in said:
            if "autocast" in str(one.message).lower():
                raise NotSupported(str(one.message).split("\n")[0].strip())

    def cast(self):
        """The context in which a model goes forward."""
        if not self.casts:
            return contextlib.ExitStack()  # which does nothing
        return torch_types.cast(self._torch, self._device, dtype=self.half)

    def of_weights(self):
        """What Module.to() takes, beside the device."""
        return {"dtype": self.half} if self.pure else {}

    def of_inputs(self, inputs):
        if not self.pure:
            return inputs
        return tuple(one.to(self.half) if one.is_floating_point() else one for one in inputs)

    def scale(self):
        """{"scale", "_growth_tracker", "growth_interval", …}, {} without a scaler."""
        return self.scaler.state_dict() if self.scaler is not None else {}


def switch_tf32(torch, allowed):
    """By the names of 1.7; 2.9 has others, too, which are not to be mixed with them."""
    matmul = getattr(torch.backends.cuda, "matmul", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are newer names
        try:
            if not hasattr(matmul, "allow_tf32"):
                raise AttributeError("allow_tf32")
            matmul.allow_tf32 = allowed
            torch.backends.cudnn.allow_tf32 = allowed
            return
        except (AttributeError, RuntimeError):
            pass
        precision = "tf32" if allowed else "ieee"
        try:
            matmul.fp32_precision = precision
            torch.backends.cudnn.conv.fp32_precision = precision
        except AttributeError:
            if allowed:
                raise NotSupported("TF32 came with PyTorch 1.7")


def skipped(before, after, steps):
    """How many of ``steps`` a scaler skipped, by its state before and after them: a skip halves the scale.

    It may have doubled in between, after as many steps without one as its interval has; the tracker counts
    those since the last change. The fewest skips that explain both are told.
    """
    if not before or not after or not after["scale"] > 0 or math.isinf(after["scale"]):
        return 0
    fell = math.log(before["scale"] / after["scale"], 1 / after["backoff_factor"])
    up = math.log(after["growth_factor"], 1 / after["backoff_factor"])
    interval = after["growth_interval"]
    most = (before["_growth_tracker"] + steps) // interval
    for grown in range(most + 1):
        found = round(fell + grown * up)
        if found < 0:
            continue
        whole = before["_growth_tracker"] + steps - grown * interval
        if (found == 0) == (after["_growth_tracker"] == whole):
            return min(found, steps)
    return 0

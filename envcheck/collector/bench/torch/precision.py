"""In which numbers a row computes: TF32's switches, autocast and its scaler."""

import contextlib
import math
import warnings

from ...kernels.failures import NotSupported
from ...systems.shared.amp import torch_types


class TorchPrecision(object):
    """half: the 16-bit type, None without one. scaler: a GradScaler, or None."""

    def __init__(self, torch, row, device):
        self._torch, self._device = torch, device
        self.half = self.scaler = None
        if row["precision"] in ("fp32", "tf32"):
            switch_tf32(torch, row["precision"] == "tf32")
            return
        self.half = getattr(torch, row["half"], None)
        if self.half is None:
            raise NotSupported("this PyTorch has no torch.%s" % row["half"])
        # PyTorch switches autocast off with a warning where it does not have the type.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.cast()
        for one in caught:
            if "autocast" in str(one.message).lower():
                raise NotSupported(str(one.message).split("\n")[0].strip())
        if row["half"] == "float16":
            self.scaler = torch_types.make_scaler(torch, device)

    def cast(self):
        """The context in which a model goes forward."""
        if self.half is None:
            return contextlib.ExitStack()  # which does nothing
        return torch_types.cast(self._torch, self._device, dtype=self.half)

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

    It may have doubled in between, after as many steps without a skip as its interval has; the tracker counts
    those since the last change. Of several explanations, the one with the fewest skips counts.
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

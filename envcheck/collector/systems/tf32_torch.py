"""TF32 in PyTorch's convolutions: the bits of their results, and with TF32 off in two ways."""

from .shared.convolving import tf32 as tf32_convolutions
from .shared.convolving.torch import TorchSide

SYSTEM = "tf32"
FRAMEWORK = "torch"
GPUS = 1
BY_RANKS = True
DEADLINE = 60.0


def run(_framework, params, tell):
    tf32_convolutions.run(params, tell)


def rank(torch, params):
    return tf32_convolutions.rank(TorchSide(torch, params["device"]), params)

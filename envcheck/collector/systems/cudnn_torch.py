"""Convolutions in PyTorch, against a reference: 2D and 3D, each type, forward and backward."""

from .shared.convolving import reference as convolutions
from .shared.convolving.torch import TorchSide

SYSTEM = "cudnn"
FRAMEWORK = "torch"
GPUS = 1
DEADLINE = 30.0


def run(torch, params, tell):
    convolutions.run(TorchSide(torch, params["device"]), tell)

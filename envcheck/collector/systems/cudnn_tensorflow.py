"""Convolutions in TensorFlow, against a reference: 2D and 3D, each type, forward and backward."""

from .shared.convolving import reference as convolutions
from .shared.convolving.tensorflow import TensorFlowSide

SYSTEM = "cudnn"
FRAMEWORK = "tensorflow"
GPUS = 1
DEADLINE = 30.0


def run(tf, params, tell):
    convolutions.run(TensorFlowSide(tf, params["device"]), tell)

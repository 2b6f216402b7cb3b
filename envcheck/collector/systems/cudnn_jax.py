"""Convolutions in JAX, against a reference: 2D and 3D, each type, forward and backward."""

from .shared.convolving import reference as convolutions
from .shared.convolving.jax import JaxSide

SYSTEM = "cudnn"
FRAMEWORK = "jax"
GPUS = 1
DEADLINE = 60.0  # XLA compiles each of them


def run(jax, params, tell):
    convolutions.run(JaxSide(jax, params["device"]), tell)

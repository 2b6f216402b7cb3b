"""TF32 in JAX's convolutions: the bits of their results, and with TF32 off in two ways."""

from .shared.convolving import tf32 as tf32_convolutions
from .shared.convolving.jax import JaxSide

SYSTEM = "tf32"
FRAMEWORK = "jax"
GPUS = 1
BY_RANKS = True
DEADLINE = 60.0


def run(_framework, params, tell):
    tf32_convolutions.run(params, tell)


def rank(jax, params):
    return tf32_convolutions.rank(JaxSide(jax, params["device"]), params)

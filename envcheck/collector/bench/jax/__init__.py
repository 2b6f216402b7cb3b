"""JAX, as its users write it without a library of layers: pure functions, pytrees, jit, value_and_grad.

The file of a model holds
  OPTIMIZER, RATE            "adam" or "momentum", and its learning rate
  init(jax, row, key)        (weights, what is not trained): pytrees
  apply(jax, row, params, state, inputs, train)  (outputs, the state after it)
  loss(jax, row, outputs, targets)  a scalar
  data(jax, row, key, batch) (inputs, targets): synthetic ones, on the device
and, where samples can be learned, others(jax, row, key): some that it is not trained on.
"""

from .. import styles

FRAMEWORK = "jax"


def environ(row):
    """NVIDIA_TF32_OVERRIDE where FP32 is to be FP32; without GPUs, JAX is not to look for any."""
    found = {"NVIDIA_TF32_OVERRIDE": "0"} if row["precision"] == "fp32" else {}
    if not row["gpus"]:
        found["JAX_PLATFORMS"] = "cpu"
    return found


def build(framework, row, place):
    from .training import JaxTraining

    return JaxTraining(framework, row, place, styles.model("jax", row["model"]))

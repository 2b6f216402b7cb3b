"""JAX, as its users write it without a library of layers: pure functions, pytrees, jit and grad."""

FRAMEWORK = "jax"


def environ(row):
    """NVIDIA_TF32_OVERRIDE where FP32 is to be without TF32; without GPUs, JAX is not to look for any."""
    found = {"NVIDIA_TF32_OVERRIDE": "0"} if row["precision"] == "fp32" else {}
    if not row["gpus"]:
        found["JAX_PLATFORMS"] = "cpu"
    return found


def build(framework, row, place):
    from .training import JaxTraining

    return JaxTraining(framework, row, place)

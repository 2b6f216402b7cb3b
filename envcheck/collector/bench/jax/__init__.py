"""JAX, as its users write it without a library of layers: pure functions, pytrees, jit, value_and_grad."""

from . import bert, mlp, mnist, resnet50, unet

FRAMEWORK = "jax"
_MODELS = {
    "bert-base": bert,
    "bert-large": bert,
    "mlp": mlp,
    "mnist": mnist,
    "resnet50": resnet50,
    "unet-2d": unet,
    "unet-3d": unet,
}
MODELS = tuple(sorted(_MODELS))


def environ(row):
    """NVIDIA_TF32_OVERRIDE where FP32 is to be FP32; without GPUs, JAX is not to look for any."""
    found = {"NVIDIA_TF32_OVERRIDE": "0"} if row["precision"] == "fp32" else {}
    if not row["gpus"]:
        found["JAX_PLATFORMS"] = "cpu"
    return found


def build(framework, row, place):
    from .training import JaxTraining

    return JaxTraining(framework, row, place, _MODELS[row["model"]])

"""PyTorch, eager, as its users write it: autocast and GradScaler."""

from . import mlp

FRAMEWORK = "torch"
_MODELS = {"mlp": mlp}
MODELS = tuple(sorted(_MODELS))


def environ(row):
    """NVIDIA_TF32_OVERRIDE where FP32 is to be FP32."""
    return {"NVIDIA_TF32_OVERRIDE": "0"} if row["precision"] == "fp32" else {}


def build(framework, row, place):
    from .training import TorchTraining

    return TorchTraining(framework, row, place, _MODELS[row["model"]])

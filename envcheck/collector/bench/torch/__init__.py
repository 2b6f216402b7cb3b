"""PyTorch, from 1.6 on, as its users write it: eager or by torch.compile, with autocast and GradScaler."""

from ...kernels.failures import NotSupported

FRAMEWORK = "torch"


def environ(row):
    """NVIDIA_TF32_OVERRIDE where FP32 is to be without TF32."""
    return {"NVIDIA_TF32_OVERRIDE": "0"} if row["precision"] == "fp32" else {}


def build(framework, row, place):
    if row["together"] not in ("", "ddp"):
        raise NotSupported("PyTorch has no %s" % row["together"])
    from .training import TorchTraining

    return TorchTraining(framework, row, place)

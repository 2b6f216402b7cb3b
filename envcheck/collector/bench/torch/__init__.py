"""PyTorch, from 1.6 on, as its users write it: eager or by torch.compile, with autocast and GradScaler."""

from ...kernels.failures import NotSupported

FRAMEWORK = "torch"


def environ(row):
    """NVIDIA_TF32_OVERRIDE where FP32 is to be without TF32."""
    return {"NVIDIA_TF32_OVERRIDE": "0"} if row["precision"] == "fp32" else {}


def build(framework, row, place):
    if row["tensorrt"]:
        raise NotSupported("TensorRT is measured in TensorFlow alone")
    if row["data"] != "synthetic":
        raise NotSupported("PyTorch's rows have synthetic images alone")
    if row["together"] == "mirrored":
        raise NotSupported("MirroredStrategy is TensorFlow's")
    from .training import TorchTraining

    return TorchTraining(framework, row, place)

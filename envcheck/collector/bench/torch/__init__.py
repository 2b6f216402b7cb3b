"""PyTorch, from 1.6 on, as its users write it: eager or by torch.compile, with autocast and GradScaler.

The file of a model holds
  RATE                  the learning rate of a small row, and of a full one
  make(torch, row)      the model, called with a batch's inputs, and its loss function
  optimizer(torch, parameters, rate)
  samples(torch, row, device, random)   a function without arguments: (inputs, targets) of the next batch,
                        made on the device out of ``random``, a torch.Generator there
and, where there is such a thing,
  COMPARED_RATE         where losses of several rows are compared
  steps(row)            of an epoch
  accuracy(torch, row, device, answer)  0 to 1; answer(inputs): the model's, without gradients
"""

from ...kernels.failures import NotSupported
from .. import styles

FRAMEWORK = "torch"


def environ(row):
    """NVIDIA_TF32_OVERRIDE where FP32 is to be FP32."""
    return {"NVIDIA_TF32_OVERRIDE": "0"} if row["precision"] == "fp32" else {}


def build(framework, row, place):
    if row["tensorrt"]:
        raise NotSupported("TensorRT is measured in TensorFlow alone")
    if row["data"] != "synthetic":
        raise NotSupported("PyTorch's rows have synthetic images alone")
    if row["together"] == "mirrored":
        raise NotSupported("MirroredStrategy is TensorFlow's")
    model = styles.model("torch", row["model"])
    from .training import TorchClassifier, TorchTraining

    kind = TorchClassifier if hasattr(model, "accuracy") else TorchTraining
    return kind(framework, row, place, model)

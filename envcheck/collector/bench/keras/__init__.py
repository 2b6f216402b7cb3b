"""TensorFlow 2 by Keras, as its users write it: a model of layers, and a training step in a tf.function."""

FRAMEWORK = "tensorflow"


def environ(row):
    """FP32 without TF32. Keras 3 runs on TensorFlow, whatever is preferred."""
    found = {"KERAS_BACKEND": "tensorflow"}
    if row["precision"] == "fp32":
        found["NVIDIA_TF32_OVERRIDE"] = "0"
    return found


def build(framework, row, place):
    from . import forward, reading, together, training

    training.prepare(framework, row, place)
    if row["data"] != "synthetic":
        kind = reading.ReadingTraining
    elif row["together"]:
        kind = together.kind(row)
    elif row["tensorrt"]:
        kind = forward.TensorRTForward
    else:
        kind = training.KerasTraining if row["train"] else forward.KerasForward
    return kind(framework, row, place)

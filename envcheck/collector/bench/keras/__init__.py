"""TensorFlow 2 by Keras, as its users write it: a model of layers, and a training step in a tf.function."""

FRAMEWORK = "tensorflow"


def environ(row):
    """FP32 without TF32. Keras 3 runs on TensorFlow, whatever is preferred."""
    found = {"KERAS_BACKEND": "tensorflow"}
    if row["precision"] == "fp32":
        found["NVIDIA_TF32_OVERRIDE"] = "0"
    return found


def build(framework, row, place):
    from . import training

    training.prepare(framework, row, place)
    kind = training.MirroredTraining if row["together"] else training.KerasTraining
    return kind(framework, row, place)

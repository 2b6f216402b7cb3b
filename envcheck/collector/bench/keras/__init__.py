"""TensorFlow 2 by Keras, as its users write it: a model of layers, and a training step in a tf.function.

The file of a model has
  make(tf, row)            the Keras model, whose output are logits
  samples(tf, row, count)  (inputs, targets): so many synthetic ones, on the device
  loss(tf, targets, outputs)  a number for each sample, or each of its parts
  OPTIMIZER, SETTINGS      the optimizer's name in Keras, and what it is made with
and, where samples can be learned, epoch(row) and others(row): how many there are to be trained on, and
others to find out what it has learned.
"""

from .. import styles

FRAMEWORK = "tensorflow"


def environ(row):
    """NVIDIA_TF32_OVERRIDE where FP32 is to be FP32. Keras 3 runs on TensorFlow, whatever is preferred."""
    found = {"KERAS_BACKEND": "tensorflow"}
    if row["precision"] == "fp32":
        found["NVIDIA_TF32_OVERRIDE"] = "0"
    return found


def build(framework, row, place):
    from . import forward, reading, together, training

    training.prepare(framework, row, place)
    file = styles.model("keras", row["model"])
    if row["data"] != "synthetic":
        return reading.reading(framework, row, place, file)
    if row["together"]:
        return together.job(framework, row, place, file)
    if not row["train"]:
        return forward.forward(framework, row, place, file)
    return training.KerasTraining(framework, row, place, file)

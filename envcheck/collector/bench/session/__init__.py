"""TensorFlow 1.15, as its users write it: a graph, a session, and `session.run(train_op)`.

The file of a model has
  samples(tf, row, count, layers)      (inputs, targets): two lists of synthetic tensors
  forward(tf, row, inputs, layers)     the outputs, a list: logits
  loss(tf, targets, outputs)           a scalar
  optimizer(tf)                        what it is trained with
and, where it has an epoch of samples that can be learned, EPOCH and OTHERS, their numbers.
"""

from .. import styles

FRAMEWORK = "tensorflow"


def environ(row):
    """FP32 that is FP32; no AMP by a variable, which clashes with a wrapped optimizer; XLA on CPUs, too."""
    found = {"TF_ENABLE_AUTO_MIXED_PRECISION": "0"}
    if row["precision"] == "fp32":
        found["NVIDIA_TF32_OVERRIDE"] = "0"
    if row["compiled"] and not row["gpus"]:
        found["TF_XLA_FLAGS"] = "--tf_xla_cpu_global_jit"
    return found


def build(framework, row, place):
    from ...kernels.failures import NotSupported

    if not str(framework.__version__).startswith("1."):
        raise NotSupported("sessions are TensorFlow 1's, and this is %s" % framework.__version__)
    if row["train"]:
        from .training import SessionTraining

        return SessionTraining(framework, row, place, styles.model("session", row["model"]))
    from .forward import forward_alone

    return forward_alone(framework, row, place, styles.model("session", row["model"]))

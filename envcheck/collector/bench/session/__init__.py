"""TensorFlow 1.15, as its users write it: a graph, a session, and `session.run(train_op)`."""

FRAMEWORK = "tensorflow"


def environ(row):
    """FP32 without TF32; no AMP by a variable, which clashes with a wrapped optimizer; XLA on CPUs, too."""
    found = {"TF_ENABLE_AUTO_MIXED_PRECISION": "0"}
    if row["precision"] == "fp32":
        found["NVIDIA_TF32_OVERRIDE"] = "0"
    if row["compiled"] and not row["gpus"]:
        found["TF_XLA_FLAGS"] = "--tf_xla_cpu_global_jit"
    return found


def build(framework, row, place):
    from ...kernels.failures import NotSupported
    from .training import SessionTraining

    if not str(framework.__version__).startswith("1."):
        raise NotSupported("sessions are TensorFlow 1's, and this is %s" % framework.__version__)
    return SessionTraining(framework, row, place)

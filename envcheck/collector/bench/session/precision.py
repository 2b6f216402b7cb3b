"""How precision and XLA are asked for in TensorFlow 1: types, a wrapped optimizer, the session's options."""

from ...kernels import framework_tensorflow
from ...kernels.failures import NotSupported

_ON, _OFF = 1, 2  # RewriterConfig.Toggle
# The rewrite to bfloat16, for CPUs, in Intel's builds and later ones.
_BFLOAT16 = ("auto_mixed_precision_mkl", "auto_mixed_precision_onednn_bfloat16")
_ENDLESS = float("inf")  # the scale with which every step overflows, whatever its type
_FIRST_TF32 = "8.0"


def check(tf, row, place):
    """Raises NotSupported for what this version, build or device does not have."""
    if row["way"] not in ("", "rewrite"):
        raise NotSupported("with sessions, AMP is a rewrite of the graph, and no %s" % row["way"])
    if row["half"] not in ("", "float16", "bfloat16"):
        raise NotSupported("no type %s" % row["half"])
    if row["precision"] == "amp" and row["half"] == "bfloat16":
        _bfloat16(tf)
    on_gpu = place.device == "gpu"
    if row["precision"] == "tf32" and not on_gpu:
        raise NotSupported("a CPU has no TF32")
    if not on_gpu:
        return
    adapter = framework_tensorflow.adapter(tf)
    absent = adapter.absent()
    if absent:
        raise RuntimeError(absent)
    capability = str(adapter.facts().get("compute_capability") or "")
    if row["precision"] == "tf32" and capability and _number(capability) < _number(_FIRST_TF32):
        raise NotSupported("compute capability %s has no TF32" % capability)


def _number(capability):
    return tuple(int(part) for part in capability.split("."))


def switch_tf32(tf, row):
    """By TensorFlow's own switch, which NVIDIA's builds have from 21.10 on."""
    experimental = getattr(getattr(tf, "config", None), "experimental", None)
    function = getattr(experimental, "enable_tensor_float_32_execution", None)
    if function is not None and row["precision"] in ("fp32", "tf32"):
        function(row["precision"] == "tf32")


def dtype(tf, row):
    """Of weights and inputs: 16 bits where everything is to have them."""
    if row["precision"] != "half":
        return tf.float32
    return tf.bfloat16 if row["half"] == "bfloat16" else tf.float16


def config(tf, row):
    """The ConfigProto of the row's session."""
    made = tf.ConfigProto(allow_soft_placement=True)
    made.gpu_options.allow_growth = True
    options = made.graph_options.rewrite_options
    options.auto_mixed_precision = _OFF
    if row["precision"] == "amp" and row["half"] == "bfloat16":
        setattr(options, _bfloat16(tf), _ON)
    elif row["precision"] == "amp":
        options.auto_mixed_precision = _ON
    level = tf.OptimizerOptions.ON_1 if row["compiled"] else tf.OptimizerOptions.DEFAULT
    made.graph_options.optimizer_options.global_jit_level = level
    return made


def wrapped(tf, row, optimizer):
    """The optimizer as AMP's users have it: with a loss scale, and the rewrite switched on."""
    if row["precision"] != "amp" or row["half"] == "bfloat16":
        return optimizer
    experimental = getattr(tf.train, "experimental", None)
    enable = getattr(experimental, "enable_mixed_precision_graph_rewrite", None)
    if enable is None:
        raise NotSupported("this TensorFlow has no enable_mixed_precision_graph_rewrite")
    if row["scaler"] == "stuck":
        scale = experimental.DynamicLossScale(_ENDLESS, multiplier=1.0)
        return enable(optimizer, loss_scale=scale)
    return enable(optimizer, loss_scale="dynamic")


def loss_scale(optimizer):
    """The tensor of the loss scale; None where there is none."""
    found = getattr(optimizer, "_loss_scale", None)
    return found() if callable(found) else found


def _bfloat16(tf):
    options = tf.ConfigProto().graph_options.rewrite_options
    for name in _BFLOAT16:
        if hasattr(options, name):
            return name
    raise NotSupported("this TensorFlow has no rewrite to bfloat16")

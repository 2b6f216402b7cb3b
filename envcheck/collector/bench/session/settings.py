"""How precision and XLA are switched on in TensorFlow 1."""

from ...kernels import framework_tensorflow
from ...kernels.failures import NotSupported
from ..models import MOMENTUM

_ON, _OFF = 1, 2  # RewriterConfig.Toggle
# The rewrite to bfloat16, for CPUs, in Intel's builds and later ones.
_BFLOAT16 = ("auto_mixed_precision_mkl", "auto_mixed_precision_onednn_bfloat16")
_FIRST_TF32 = (8, 0)


def check(tf, row, place):
    """Raises NotSupported for what this version, build or device does not have."""
    if row["together"]:
        raise NotSupported("with TensorFlow 1's sessions there is no %s" % row["together"])
    if row["precision"] == "amp" and row["half"] == "bfloat16":
        _bfloat16(tf)
    if place.device != "gpu":
        if row["precision"] == "tf32":
            raise NotSupported("a CPU has no TF32")
        return
    adapter = framework_tensorflow.adapter(tf)
    absent = adapter.absent()
    if absent:
        raise RuntimeError(absent)
    capability = str(adapter.facts().get("compute_capability") or "")
    number = tuple(int(part) for part in capability.split(".")) if capability else _FIRST_TF32
    if row["precision"] == "tf32" and number < _FIRST_TF32:
        raise NotSupported("compute capability %s has no TF32" % capability)


def switch_tf32(tf, row):
    """By TensorFlow's own switch, which NVIDIA's builds have from 21.10 on."""
    experimental = getattr(getattr(tf, "config", None), "experimental", None)
    function = getattr(experimental, "enable_tensor_float_32_execution", None)
    if function is not None and row["precision"] in ("fp32", "tf32"):
        function(row["precision"] == "tf32")


def config(tf, row):
    """The ConfigProto of the row's session."""
    made = tf.ConfigProto(allow_soft_placement=True)
    made.gpu_options.allow_growth = True
    options = made.graph_options.rewrite_options
    options.auto_mixed_precision = _OFF
    if row["precision"] == "amp":
        bfloat16 = row["half"] == "bfloat16"
        setattr(options, _bfloat16(tf) if bfloat16 else "auto_mixed_precision", _ON)
    level = tf.OptimizerOptions.ON_1 if row["compiled"] else tf.OptimizerOptions.DEFAULT
    made.graph_options.optimizer_options.global_jit_level = level
    return made


def optimizer(tf, row, model):
    """With AMP, in a loss scale and with the rewrite switched on."""
    if model.optimizer == "adam":
        made = tf.train.AdamOptimizer(model.rate)
    else:
        made = tf.train.MomentumOptimizer(model.rate, MOMENTUM)
    if row["precision"] != "amp" or row["half"] == "bfloat16":
        return made
    experimental = getattr(tf.train, "experimental", None)
    enable = getattr(experimental, "enable_mixed_precision_graph_rewrite", None)
    if enable is None:
        raise NotSupported("this TensorFlow has no enable_mixed_precision_graph_rewrite")
    return enable(made, loss_scale="dynamic")


def loss_scale(made):
    """The tensor of an optimizer's loss scale; None without one."""
    found = getattr(made, "_loss_scale", None)
    return found() if callable(found) else found


def _bfloat16(tf):
    options = tf.ConfigProto().graph_options.rewrite_options
    for name in _BFLOAT16:
        if hasattr(options, name):
            return name
    raise NotSupported("this TensorFlow has no rewrite to bfloat16")

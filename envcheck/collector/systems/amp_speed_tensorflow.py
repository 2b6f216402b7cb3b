"""What AMP gains in TensorFlow: a training step in 16 bits, in FP32 and in TF32, timed in turns.

The steps are those of amp_speed_torch, in a graph and a session, which TensorFlow 1 and 2 both have: the
casts are written down, as the graph rewrite and Keras's policies make them, so that every version computes
the same. What the rewrite would do by itself is switched off.
"""

from ..kernels import cupti, framework_tensorflow
from ..probes.tensorflow import build_info
from .running import records
from .shared.amp import turns

SYSTEM = "amp-tensor-cores"
FRAMEWORK = "tensorflow"
DEADLINE = 30.0
GPUS = 1
ALONE = True

_LARGE, _SMALL, _TINY = 4096, 2048, 64
_LARGE_MIB = 1000  # what the large product takes, and the convolutions of 32 images
_IMAGES = {_LARGE: 32, _SMALL: 8, _TINY: 2}
_SIDE = {_LARGE: 56, _SMALL: 56, _TINY: 8}
_NAMES = 16  # of kernels


def run(tf, params, tell):
    adapter = framework_tensorflow.adapter(tf)
    on_gpu = params["device"] == "gpu"
    absent = adapter.absent() if on_gpu else None
    if absent:
        raise records.CouldNotRun(absent)
    work = _TensorFlowSpeed(tf, on_gpu, adapter.facts() if on_gpu else {})
    n = _LARGE if (params["memory_mib"] or 0) >= _LARGE_MIB else _SMALL
    if not on_gpu:
        n = _TINY
    with tell.trial("product") as trial:
        work.time(trial, n, work.product, tiny=True)
    for name, size in (("product n+1", n + 1), ("product n-1", n - 1)):
        with tell.trial(name) as trial:
            work.time(trial, size, work.product)
    with tell.trial("convolution") as trial:
        work.time(trial, n, work.convolution, tiny=True)
        trial["n"] = _IMAGES[n]


class _TensorFlowSpeed(object):
    def __init__(self, tf, on_gpu, facts):
        self.tf, self.v1 = tf, tf.compat.v1
        self.on_gpu = on_gpu
        self.device = "/GPU:0" if on_gpu else "/CPU:0"
        self.facts = facts

    def switch(self, tf32):
        """Whether products and convolutions of 32 bits run in TF32; False where there is no switch (2.4)."""
        try:
            self.tf.config.experimental.enable_tensor_float_32_execution(tf32)
        except AttributeError:
            return False
        return True

    def product(self, n, rows, half):
        left, right = self._random([rows, n]), self._random([n, n])
        made = self.tf.matmul(self._cast(left, half), self._cast(right, half))
        return self._train(made, [left, right])

    def convolution(self, n, rows, half):
        """rows: of what is _IMAGES images for the whole of n."""
        tf = self.tf
        count = max(1, _IMAGES[n] * rows // n)
        images = self._random([count, _SIDE[n], _SIDE[n], 64])
        kernels = [self._random([3, 3, 64, 128]), self._random([3, 3, 128, 128])]
        dense = self._random([128, 256])
        made = self._cast(images, half)
        for kernel in kernels:
            made = tf.nn.conv2d(made, self._cast(kernel, half), [1, 1, 1, 1], "SAME")
            made = tf.nn.relu(made)
        made = tf.reduce_mean(made, axis=[1, 2])
        made = tf.matmul(made, self._cast(dense, half))
        return self._train(made, kernels + [dense])

    def _random(self, shape):
        return self.v1.Variable(self.v1.random.normal(shape, stddev=0.1), trainable=False)

    def _cast(self, value, half):
        return self.tf.cast(value, self.tf.float16) if half else self.tf.identity(value)

    def _train(self, made, weights):
        """A tensor for which all gradients have to be made.

        It needs a number out of each: one that nothing is taken from would be optimised away.
        """
        zeros = [[0] * len(weight.shape) for weight in weights]
        gradients = zip(self.v1.gradients(made, weights), zeros)
        corners = [self.tf.slice(one, begin, [1] * len(begin)) for one, begin in gradients]
        return self.tf.add_n([self.tf.reshape(corner, []) for corner in corners])

    def time(self, trial, n, build, tiny=False):
        """tiny: the same step with next to no work in it is timed, too: the host's part of it."""
        trial["n"] = n
        trial["float32_is"] = "FP32" if self.switch(False) else "its default"
        capability = self.facts.get("compute_capability")
        if capability:
            trial["gpu"] = self.facts.get("name", "")
            trial["compute_capability"] = capability
        with self.tf.Graph().as_default(), self.tf.device(self.device):
            steps = {"amp": (build(n, n, True), n), "float32": (build(n, n, False), n)}
            if tiny and capability and int(capability.split(".")[0]) >= 8 and self.switch(False):
                # Of a shape of its own, since a plan that was made in FP32 is kept by its shape.
                rows = n * 3 // 4
                steps["tf32"] = build(n, rows, False), rows
            if tiny:
                steps["host"] = build(_TINY, _TINY, True), _TINY
            with self.v1.Session(config=self._config()) as session:
                session.run(self.v1.global_variables_initializer())
                self._time(trial, n, session, steps)

    def _time(self, trial, n, session, steps):
        host = steps.pop("host", None)
        trial["operations"], trial["operations_half"] = self._count(session, steps["amp"][0])
        variants = [(name, self._run(session, step, name)) for name, (step, _) in steps.items()]
        for name, found in turns.milliseconds(variants).items():
            trial[name + "_ms"] = round(found * n / steps[name][1], 4)
        if host is not None:
            variants = [("host", self._run(session, host[0], "host"))]
            trial["host_ms"] = turns.milliseconds(variants, 1)["host"]
        if host is not None and self.on_gpu:
            self._name_kernels(trial, session, steps["amp"][0])

    def _count(self, session, step):
        """(products and convolutions that ran, those of them in 16 bits)"""
        v1, told = self.v1, self.v1.RunMetadata()
        session.run(step, options=v1.RunOptions(output_partition_graphs=True), run_metadata=told)
        nodes = [node for graph in told.partition_graphs for node in graph.node]
        types = [
            node.attr["T"].type
            for node in nodes
            if node.op.startswith(("MatMul", "_FusedMatMul", "Conv2D", "_FusedConv2D"))
        ]
        return len(types), types.count(self.tf.float16.as_datatype_enum)

    def _run(self, session, step, name):
        # A session's run has waited.
        timed = turns.host_clock(lambda: session.run(step), lambda: None)

        def prepared(count):
            self.switch(name == "tf32")
            return timed(count)

        return prepared

    def _config(self):
        config = self.v1.ConfigProto()
        config.gpu_options.allow_growth = True
        options = config.graph_options.rewrite_options
        if hasattr(options, "auto_mixed_precision"):  # 1.14
            options.auto_mixed_precision = type(options).OFF
        return config

    def _name_kernels(self, trial, session, step):
        info = build_info(self.tf)
        built = str(info.get("cuda_version") or info.get("cuda_version_number") or "")
        major = built.split(".")[0]
        with cupti.kernel_names(None, int(major) if major.isdecimal() else None) as seen:
            session.run(step)
        if isinstance(seen.found, list):
            trial["kernels"] = seen.found[:_NAMES]
        else:
            trial["kernels_unseen"] = seen.found.get("detail") or "no name was seen"

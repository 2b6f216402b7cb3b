"""A training step of two convolutions and a product in TensorFlow, and what is counted in its graph."""

import importlib
import time

HALF = {19: "float16", 14: "bfloat16"}  # DataType
_TINY = (8, 8, 8)  # batch, edge, channels
# A step of it takes milliseconds on a GPU: what is told of its pace means something.
_BIG = (32, 56, 128)
_MODEST = (16, 28, 64)
_BIG_MIB = 3000
_WARM = 3
_ROUNDS = 3
_STEPS = 5


def shape(params):
    """(batch, edge, channels), multiples of 8 on a GPU, where Tensor Cores want them."""
    if params["device"] != "gpu":
        return _TINY
    return _BIG if (params["memory_mib"] or 0) >= _BIG_MIB else _MODEST


def arrays(size):
    """The input and the three weights, the same every time."""
    numpy = importlib.import_module("numpy")  # which TensorFlow needs itself
    batch, edge, channels = size
    random = numpy.random.RandomState(7)

    def some(scale, *dimensions):
        return ((random.rand(*dimensions) - 0.5) * scale).astype("float32")

    small = 2.0 / channels
    kernels = [some(small, 3, 3, channels, channels) for _ in range(2)]
    return some(2.0, batch, edge, edge, channels), kernels + [some(small, channels, channels)]


def loss(tf, x, weights):
    for kernel in weights[:2]:
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME"))
    return tf.reduce_mean(tf.square(tf.matmul(tf.reduce_mean(x, [1, 2]), weights[2])))


def count(graphs):
    """Evidence of GraphDefs: casts to and from half types, convolutions and products with their types.

    What a graph calls is looked into where the graph itself has no convolution, as under XLA.
    """
    nodes = [node for graph in graphs for node in graph.node]
    told = count_nodes(nodes)
    if not told["convolutions"]:
        inner = [
            node for graph in graphs for one in graph.library.function for node in one.node_def
        ]
        xla = told["xla_nodes"]
        told = count_nodes(nodes + inner)
        told["xla_nodes"] = max(xla, told["xla_nodes"])
    return told


def count_nodes(nodes):
    told = {"nodes": len(nodes), "casts": 0, "xla_nodes": 0}
    told.update({"convolutions": 0, "half_convolutions": 0, "products": 0, "half_products": 0})
    types, places = set(), set()
    for node in nodes:
        if node.op == "Cast":
            ends = {node.attr["SrcT"].type, node.attr["DstT"].type}
            told["casts"] += bool(ends.intersection(HALF))
        if "Xla" in node.op:
            told["xla_nodes"] += 1
        kind = _kind(node.op)
        if not kind:
            continue
        told[kind] += 1
        places.add(node.device.rpartition("device:")[2].partition(":")[0] or "not told")
        half = HALF.get(node.attr["T"].type) if "T" in node.attr else None
        if half:
            told["half_" + kind] += 1
            types.add(half)
    told["types"] = sorted(types)
    told["places"] = sorted(places)
    return told


def _kind(op):
    if "Conv2D" in op or "Conv3D" in op:
        return "convolutions"
    return "products" if "MatMul" in op else ""


def pace(step, settle):
    """Milliseconds of a step, the best of a few rounds. settle(): waits until all steps are done."""
    for _ in range(_WARM):
        step()
    settle()
    best = None
    for _ in range(_ROUNDS):
        began = time.monotonic()
        for _ in range(_STEPS):
            step()
        settle()
        spent = (time.monotonic() - began) / _STEPS
        best = spent if best is None else min(best, spent)
    return round(best * 1e3, 3)


class SessionStep(object):
    """The step in a graph and Session of its own, as TensorFlow 1 and compat.v1 have them.

    wrap(optimizer): the one to use in its place. ``rewrite``: what to set in the RewriterConfig.
    """

    def __init__(self, tf, size, wrap=None, rewrite=None):
        self._v1 = tf.compat.v1
        self.graph = tf.Graph()
        with self.graph.as_default():
            x, values = arrays(size)
            self.weights = [
                self._v1.get_variable("w%d" % place, initializer=value, use_resource=True)
                for place, value in enumerate(values)
            ]
            # Fed, not a constant: Grappler would compute a tiny graph's beginning by itself.
            self._x = self._v1.placeholder(tf.float32, x.shape)
            self._factor = self._v1.placeholder_with_default(tf.constant(1.0), [])
            self._feed = {self._x: x}
            plain = self._v1.train.GradientDescentOptimizer(0.01)
            self.optimizer = wrap(plain) if wrap else plain
            total = loss(tf, self._x, self.weights) * self._factor
            self.operation = self.optimizer.minimize(total, var_list=self.weights)
            self._initialize = self._v1.global_variables_initializer()
        config = self._v1.ConfigProto(allow_soft_placement=True)
        config.gpu_options.allow_growth = True
        if rewrite is not None:
            rewrite(config.graph_options.rewrite_options)
        self.session = self._v1.Session(graph=self.graph, config=config)

    def __enter__(self):
        self.session.run(self._initialize)
        return self

    def __exit__(self, *_error):
        self.session.close()

    def step(self, factor=1.0):
        fed = dict(self._feed)
        fed[self._factor] = factor
        self.session.run(self.operation, fed)

    def graphs(self):
        """The GraphDefs that ran, of one step."""
        metadata = self._v1.RunMetadata()
        options = self._v1.RunOptions(output_partition_graphs=True)
        self.session.run(self.operation, self._feed, options=options, run_metadata=metadata)
        return metadata.partition_graphs

    def values(self):
        return self.session.run(self.weights)

    def scale(self):
        """The loss scale now; None where the optimizer has none."""
        found = getattr(self.optimizer, "_loss_scale", None)
        if found is None:
            return None
        with self.graph.as_default():
            value = float(self.session.run(found() if callable(found) else found))
        return int(value) if value < 1e15 and value == int(value) else value

    def pace(self):
        return pace(self.step, lambda: self.session.run(self.weights[2]))


def function_step(tf, size, timed):
    """(GraphDefs after optimisation, milliseconds or None) of the step as a new tf.function, run."""
    context = importlib.import_module("tensorflow.python.eager.context")
    values = arrays(size)
    x = tf.constant(values[0])
    weights = [tf.Variable(value) for value in values[1]]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            total = loss(tf, x, weights)
        for weight, gradient in zip(weights, tape.gradient(total, weights)):
            weight.assign_sub(0.01 * gradient)
        return total

    context.enable_run_metadata()
    try:
        step(x)
        metadata = context.export_run_metadata()
    finally:
        context.disable_run_metadata()
    spent = pace(lambda: step(x), weights[2].numpy) if timed else None
    return [one.post_optimization_graph for one in metadata.function_graphs], spent

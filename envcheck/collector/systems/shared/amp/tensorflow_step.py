"""A training step of two convolutions and a product in TensorFlow, and what is counted in its graph."""

import importlib

from .. import tensorflow_graphs

HALF = {19: "float16", 14: "bfloat16"}  # DataType
_BATCH, _EDGE, _CHANNELS = 8, 8, 8  # multiples of 8, where Tensor Cores want them


def arrays():
    """The input and the three weights, the same every time."""
    random = importlib.import_module("numpy").random.RandomState(7)  # TensorFlow needs numpy itself

    def some(scale, *dimensions):
        return ((random.rand(*dimensions) - 0.5) * scale).astype("float32")

    small = 2.0 / _CHANNELS
    weights = [some(small, 3, 3, _CHANNELS, _CHANNELS) for _ in range(2)]
    return some(2.0, _BATCH, _EDGE, _EDGE, _CHANNELS), weights + [some(small, _CHANNELS, _CHANNELS)]


def loss(tf, x, weights):
    for kernel in weights[:2]:
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME"))
    return tf.reduce_mean(tf.square(tf.matmul(tf.reduce_mean(x, [1, 2]), weights[2])))


def count(graphs):
    """Evidence of GraphDefs: casts to and from half types, convolutions and products with their types.

    What a graph calls is looked into where the graph itself has no convolution, as under XLA.
    """
    found = count_nodes([node for graph in graphs for node in graph.node])
    if not found["convolutions"]:
        nodes = [node for graph in graphs for node in tensorflow_graphs.nodes_of(graph)]
        found = dict(count_nodes(nodes), xla_nodes=found["xla_nodes"])
    return found


def count_nodes(nodes, halves=HALF):
    found = {"nodes": len(nodes), "casts": 0, "xla_nodes": 0}
    found.update({"convolutions": 0, "half_convolutions": 0, "products": 0, "half_products": 0})
    types, places = set(), set()
    for node in nodes:
        if node.op == "Cast":
            ends = {node.attr["SrcT"].type, node.attr["DstT"].type}
            found["casts"] += bool(ends.intersection(halves))
        found["xla_nodes"] += "Xla" in node.op
        kind = _kind(node.op)
        if not kind:
            continue
        found[kind] += 1
        places.add(node.device.rpartition("device:")[2].partition(":")[0] or "not known")
        half = halves.get(node.attr["T"].type) if "T" in node.attr else None
        if half:
            found["half_" + kind] += 1
            types.add(half)
    return dict(found, types=sorted(types), places=sorted(places))


def _kind(op):
    if "Conv2D" in op or "Conv3D" in op:
        return "convolutions"
    return "products" if "MatMul" in op else ""


def in_session(tf, wrap=None, rewrite=None):
    """What is counted in the step that ran in a Session.

    wrap(optimizer): the one to use in its place. rewrite(options): changes the RewriterConfig.
    """
    v1 = tf.compat.v1
    data, values = arrays()

    def build(x):
        weights = [
            v1.get_variable("w%d" % place, initializer=value, use_resource=True)
            for place, value in enumerate(values)
        ]
        optimizer = v1.train.GradientDescentOptimizer(0.01)
        optimizer = wrap(optimizer) if wrap else optimizer
        return optimizer.minimize(loss(tf, x, weights), var_list=weights)

    def configure(options):
        if rewrite is not None:
            rewrite(options.rewrite_options)

    return count(tensorflow_graphs.in_session(tf, data, build, configure)[1])


def in_function(tf):
    """What is counted, after optimisation, in the step as a new tf.function that has run."""
    x, values = arrays()
    weights = [tf.Variable(value) for value in values]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            total = loss(tf, x, weights)
        for weight, gradient in zip(weights, tape.gradient(total, weights)):
            weight.assign_sub(0.01 * gradient)
        return total

    found = tensorflow_graphs.in_function(step, tf.constant(x))[1]
    return count([one.post_optimization_graph for one in found])

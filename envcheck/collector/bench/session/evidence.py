"""What shows that a row's mode engaged: the graphs that its session ran, XLA's modules, bits, memory."""

import importlib
import os
import tempfile

from ...systems.shared.amp import tensorflow_step
from .. import hlo, tf32_bits

_EDGE = 256  # of the product whose bits are looked at
_KINDS = ("convolutions", "products")
_MOST_MODULES = 200
_MODULE_BYTES = 8 << 20
_dumps = []  # the folder that XLA writes its modules to
_HALVES = frozenset(tensorflow_step.HALF.values())


def write_down_modules():
    """Has XLA write each module to a file before it compiles it. Call it before the first graph runs."""
    if not _dumps:
        _dumps.append(tempfile.mkdtemp(prefix="envcheck-xla-"))
        flags = "--xla_dump_to=%s --xla_dump_hlo_as_text" % _dumps[0]
        os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " " + flags).strip()


def _modules():
    """The texts of all modules until now; none where nothing was written."""
    texts = []
    for folder in _dumps:
        for name in sorted(os.listdir(folder))[: 20 * _MOST_MODULES]:
            if name.endswith("before_optimizations.txt") and len(texts) < _MOST_MODULES:
                with open(os.path.join(folder, name), "rb") as file:
                    texts.append(file.read(_MODULE_BYTES).decode("utf-8", "replace"))
    return texts


def of_session(tf, session, operation):
    """Evidence of one more run of an operation: its graphs as they were after Grappler and XLA had them."""
    modules = _modules()  # before this run, which compiles graphs of its own once more
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    session.run(operation, options=options, run_metadata=metadata)
    return of_graphs(list(metadata.partition_graphs), modules)


def of_graphs(graphs, modules=()):
    """modules: the texts of what XLA compiled for them, whose operations are not in the graphs."""
    nodes = [node for graph in graphs for node in nodes_of(graph)]
    counted = tensorflow_step.count_nodes(nodes)
    found = {name: counted[name] for name in ("nodes", "casts", "places")}
    found["compiled_modules"] = sum(node.op == "_XlaCompile" for node in nodes)
    found["xla_runs"] = sum(node.op in ("_XlaRun", "XlaLaunch") for node in nodes)
    types = set(counted["types"])
    for kind in _KINDS:
        found[kind], found["half_" + kind] = counted[kind], counted["half_" + kind]
    if found["compiled_modules"] and not modules:
        found["hidden_by_compiler"] = True
        return found
    for module in modules if found["compiled_modules"] else ():
        inside = hlo.count(module)
        types.update(_HALVES.intersection(inside.pop("types")))
        for kind in _KINDS:
            found[kind] += inside[kind]
            found["half_" + kind] += inside["half_" + kind]
        if inside["unread"]:
            found["hidden_by_compiler"] = True
    if types or found["convolutions"] + found["products"]:
        found["math_dtype"] = ",".join(sorted(types)) or "float32"
    return found


def nodes_of(graph):
    """A graph's nodes, and those of each function that one of them calls."""
    functions = {one.signature.name: one for one in graph.library.function}
    nodes, called = list(graph.node), set()
    for node in nodes:  # which grows
        names = {attr.func.name for attr in node.attr.values() if attr.HasField("func")}
        for name in sorted((names | {node.op}).intersection(functions) - called):
            called.add(name)
            nodes += functions[name].node_def
    return nodes


def bits_of_tf32(tf, place, convolved):
    """By a convolution, or by a product, of this process and under the row's own settings."""
    numpy = importlib.import_module("numpy")
    first = _images(numpy) if convolved else _matrix(numpy)
    second = _filters(numpy) if convolved else numpy.ones(first.shape, dtype="float32")
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    # What the rewrite makes of it is another question.
    config.graph_options.rewrite_options.auto_mixed_precision = 2  # OFF
    with tf.Graph().as_default(), tf.device("/GPU:0" if place.device == "gpu" else "/CPU:0"):
        x, y = [tf.placeholder(tf.float32, one.shape) for one in (first, second)]
        # A stride of 2 keeps Winograd's and Fourier's transforms away.
        step = [1, 2, 2, 1]
        result = tf.nn.conv2d(x, y, strides=step, padding="SAME") if convolved else tf.matmul(x, y)
        with tf.Session(config=config) as session:
            made = session.run(result, {x: first, y: second})
    some = [made[number].ravel() for number in range(len(tf32_bits.FACTORS))]
    if convolved:
        some = [made[number, 2:-2, 2:-2, 0].ravel() for number in range(len(tf32_bits.FACTORS))]
    return tf32_bits.name([[float(one) for one in row] for row in some])


def _matrix(numpy):
    """A row has one of the factors, in its first place."""
    made = numpy.zeros((_EDGE, _EDGE), dtype="float32")
    made[: len(tf32_bits.FACTORS), 0] = tf32_bits.FACTORS
    return made


def _images(numpy):
    """An image holds one of the factors in its first channel, everywhere."""
    made = numpy.zeros((len(tf32_bits.FACTORS), 28, 28, 128), dtype="float32")
    for number, factor in enumerate(tf32_bits.FACTORS):
        made[number, :, :, 0] = factor
    return made


def _filters(numpy):
    made = numpy.zeros((3, 3, 128, 128), dtype="float32")
    made[1, 1, 0, :] = 1.0
    return made


def memory(tf, session, place):
    """The most that tensors took of a GPU; TensorFlow 1 does not report its pool."""
    if place.device != "gpu":
        return {}
    try:
        ops = importlib.import_module("tensorflow.contrib.memory_stats")
        with session.graph.as_default(), tf.device("/GPU:0"):
            return {"tensors_mib": int(session.run(ops.MaxBytesInUse())) >> 20}
    except (ImportError, AttributeError):
        return {}

"""What shows in a step's own graph whether its mode engaged."""

import importlib

from ...acceleration.amp import tensorflow_step
from ...kernels.vectors import VECTORS
from .. import hlo

_SIDE = 512  # of the product whose bits are looked at
_VECTORS = ("T1", "T2", "T3")  # TF32 holds the last alone


class Watched(object):
    """Runs a function once, and keeps the graph that TensorFlow made of it and ran."""

    def __init__(self):
        self.graph = None  # where this version shows none

    def run(self, function):
        context = importlib.import_module("tensorflow.python.eager.context")
        if not hasattr(context, "enable_run_metadata"):
            return function()
        context.enable_run_metadata()
        try:
            result = function()
            told = context.export_run_metadata()
        finally:
            context.disable_run_metadata()
        # What ran eagerly until now has graphs, too: small ones.
        made = [one.post_optimization_graph for one in told.function_graphs]
        self.graph = max(made, key=lambda graph: len(graph.node)) if made else None
        return result


def counted(graph):
    """{"convolutions", "half_convolutions", "products", "half_products", "casts", "math_dtype", …}."""
    told = tensorflow_step.count([graph])
    if not told["convolutions"] and not told["products"]:
        return {}
    names = ("convolutions", "half_convolutions", "products", "half_products", "casts")
    found = {name: told[name] for name in names}
    halves = found["half_convolutions"] + found["half_products"]
    found["math_dtype"] = ",".join(told["types"]) if halves else "float32"
    return found


def ran(watched, function, *given):
    """Evidence of the graph that ran, as Grappler left it; where none shows, of the one that was traced."""
    if watched.graph is not None:
        found = dict(counted(watched.graph), seen_in="graph that ran")
    else:
        graph = function.get_concrete_function(*given).graph.as_graph_def()
        found = dict(counted(graph), seen_in="traced graph")
    found["compiled_modules"] = 0
    return found


def compiled(function, *given):
    """What XLA makes of a compiled function, by its own text; without it, by the function's graph."""
    graph = function.get_concrete_function(*given).graph.as_graph_def()
    found = counted(graph)
    try:
        text = function.experimental_get_compiler_ir(*given)(stage="hlo")
    except Exception:  # not in this version, or not for a function like this one
        return dict(
            found, compiled_modules=int(must_compile(function, *given)), seen_in="traced graph"
        )
    found.update(in_text(text), compiled_modules=int(must_compile(function, *given)), seen_in="HLO")
    return found


def must_compile(function, *given):
    """Whether a function is one that TensorFlow either compiles by XLA or does not run at all."""
    made = function.get_concrete_function(*given)
    definition = getattr(made, "function_def", None)
    if definition is None:
        definition = made._inference_function.definition
    return bool(definition.attr["_XlaMustCompile"].b)


def in_text(text):
    """The same as ``counted``, of HLO."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    found = hlo.count(text)
    halves = [kind for kind in found.pop("types") if kind in tensorflow_step.HALF.values()]
    found["math_dtype"] = ",".join(halves) or "float32"
    if found.pop("unread"):
        found["hidden_by_compiler"] = True
    return found


def tf32_bits(tf, device):
    """ "fp32" or "tf32": by a product's bits, run as TensorFlow is set now; "not known" for any other."""
    numpy = importlib.import_module("numpy")
    values = [float(VECTORS[name].a[0]) for name in _VECTORS]
    left = numpy.zeros((_SIDE, _SIDE), "float32")
    for row in range(_SIDE):
        left[row, row] = values[row % len(values)]
    with tf.device(device):
        product = tf.matmul(tf.constant(left), tf.ones([_SIDE, _SIDE])).numpy()
    seen = [
        bool((product[place :: len(values)] == value).all()) for place, value in enumerate(values)
    ]
    if all(seen):
        return "fp32"
    return "tf32" if seen == [False, False, True] else "not known"

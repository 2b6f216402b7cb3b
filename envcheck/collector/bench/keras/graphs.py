"""What shows in a step's own graph whether its mode engaged."""

import importlib

from ...systems.shared.amp import tensorflow_step
from .. import hlo, tf32_bits

_SIDE = 512  # of the product whose bits are looked at


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
            metadata = context.export_run_metadata()
        finally:
            context.disable_run_metadata()
        # What ran eagerly until now has graphs, too: small ones.
        made = [one.post_optimization_graph for one in metadata.function_graphs]
        self.graph = max(made, key=lambda graph: len(graph.node)) if made else None
        return result


def counted(graph):
    """{"convolutions", "half_convolutions", "products", "half_products", "casts", "math_dtype", …}."""
    counts = tensorflow_step.count([graph])
    if not counts["convolutions"] and not counts["products"]:
        return {}
    names = ("convolutions", "half_convolutions", "products", "half_products", "casts")
    found = {name: counts[name] for name in names}
    halves = found["half_convolutions"] + found["half_products"]
    found["math_dtype"] = ",".join(counts["types"]) if halves else "float32"
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


def bits_of_tf32(tf, device):
    """By products, run as TensorFlow is set now."""
    found = []
    with tf.device(device):
        for factor in tf32_bits.FACTORS:
            product = tf.matmul(factor * tf.eye(_SIDE), tf.ones([_SIDE, _SIDE])).numpy()
            found.append({float(product.min()), float(product.max())})
    return tf32_bits.name(found)

"""Graphs of TensorFlow: their nodes, and those that ran."""

import importlib

from ...kernels.failures import NotSupported


def nodes_of(graph):
    """Its own, and those of the functions in its library."""
    return list(graph.node) + [node for one in graph.library.function for node in one.node_def]


def in_session(tf, data, build, configure):
    """(result, [GraphDef]) of a Session, as TensorFlow 1 and compat.v1 have them.

    build(x): makes what is run. x is fed: Grappler would compute a constant's share by itself.
    configure(options): changes the GraphOptions.
    """
    v1 = tf.compat.v1
    config = v1.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    configure(config.graph_options)
    metadata, options = v1.RunMetadata(), v1.RunOptions(output_partition_graphs=True)
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, data.shape)
        operation = build(x)
        with v1.Session(config=config) as session:
            session.run(v1.global_variables_initializer())
            found = session.run(operation, {x: data}, options=options, run_metadata=metadata)
    return found, metadata.partition_graphs


def in_function(function, *given):
    """(result, [RunMetadata.FunctionGraphs]) of a tf.function."""
    context = importlib.import_module("tensorflow.python.eager.context")
    if not hasattr(context, "enable_run_metadata"):
        raise NotSupported("this TensorFlow does not show the graph that ran")
    context.enable_run_metadata()
    try:
        found = function(*given)
        metadata = context.export_run_metadata()
    finally:
        context.disable_run_metadata()
    return found, metadata.function_graphs

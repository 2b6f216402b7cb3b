"""What a row is trained on: synthetic samples that lie on the device, or images that are read."""

from ...kernels.failures import NotSupported
from . import reading


def batches(tf, row, place, model, layers):
    """(inputs, targets): lists of tensors, which hold the next batch whenever they are asked for."""
    if row["data"] == "synthetic":
        if hasattr(model, "EPOCH"):
            return _next_of_an_epoch(tf, row, model, layers)
        return kept(tf, row, model, row["batch"], layers)
    if row["model"] != "resnet50":
        raise NotSupported("images are read for resnet50 alone")
    if not place.folder:
        raise ValueError("no folder of images is given")
    if row["data"] != "tf.data":
        raise NotSupported("TensorFlow 1's sessions read images through tf.data alone")
    if row["together"]:
        raise NotSupported("images are read on each GPU by itself")
    return reading.batches(tf, row, place, model, layers)


def kept(tf, row, model, count, layers):
    """So many samples, in variables: what is a constant to Grappler would be computed once and for all."""
    return [
        [tf.identity(_variable(tf, one)) for one in some]
        for some in model.samples(tf, row, count, layers)
    ]


def _variable(tf, value):
    # Each replica of a strategy has it, as the first has.
    return tf.Variable(
        value,
        trainable=False,
        collections=[tf.GraphKeys.GLOBAL_VARIABLES],
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


def _next_of_an_epoch(tf, row, model, layers):
    """One batch after the other, and from the first again."""
    batch = row["batch"]
    number = max(1, model.EPOCH // batch)
    place = _variable(tf, tf.zeros([], tf.int64))
    now = place.read_value()
    taken = []
    for some in model.samples(tf, row, number * batch, layers):
        shaped = [tf.reshape(one, [number, batch] + one.shape.as_list()[1:]) for one in some]
        taken.append([tf.gather(_variable(tf, one), now) for one in shaped])
    with tf.control_dependencies([one for some in taken for one in some]):
        after = tf.where(now + 1 < number, now + 1, tf.zeros_like(now))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, place.assign(after))
    return taken

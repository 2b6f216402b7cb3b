"""Rows of the style "keras" in a process of a real TensorFlow: prints what came out, as one JSON object.

Started as `python keras_rows.py ROOT [WHAT [FOLDER]]`, with the environment that the style asks for. WHAT:
"read" for images below FOLDER, "rank" for a rank of Horovod's; else all rows that need neither.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import tensorflow as tf

from envcheck.collector.bench import keras, styles
from envcheck.collector.bench.keras import bert, graphs, mlp, together, training
from envcheck.collector.bench.place import Place
from envcheck.collector.kernels.failures import NotSupported

ROW = {
    "name": "row",
    "what": "mlp",
    "model": "mlp",
    "style": "keras",
    "precision": "fp32",
    "half": "",
    "way": "",
    "scaler": "",
    "compiled": False,
    "tensorrt": False,
    "train": True,
    "batch": 8,
    "image": 0,
    "length": 0,
    "small": True,
    "data": "synthetic",
    "largest": False,
    "steps": 0,
    "seed": 3,
    "gpus": [],
    "together": "",
    "group": "",
}
SMALL = {
    "mlp": {"batch": 16},
    "mnist": {"batch": 32},
    "bert-base": {"batch": 2, "length": 16},
    "bert-large": {"batch": 2, "length": 16},
    "unet-2d": {"batch": 2, "image": 32},
    "unet-3d": {"batch": 1, "image": 16},
    "resnet50": {"batch": 4, "image": 32},
}
_STEP = 0.002  # of the loss
AMP = {"precision": "amp", "half": "bfloat16", "way": "policy"}
FP16 = {"precision": "amp", "half": "float16", "way": "policy", "scaler": "dynamic"}


def row(**wanted):
    return dict(ROW, **wanted)


def ran(steps=3, accuracy=False, place=None, **wanted):
    """What a row tells after so many steps."""
    try:
        made = keras.build(tf, row(**wanted), place or Place())
    except NotSupported as error:
        return {"not_supported": str(error)}
    losses, skipped = [], 0
    for _step in range(steps):
        skipped += made.run(1)
        losses.append(made.loss())
    told = {"parameters": made.parameters, "losses": losses, "skipped": skipped}
    told.update(evidence=made.evidence(), memory=made.memory())
    if accuracy:
        told["accuracy"] = made.accuracy()
    return told


def counted():
    """The parameters of every model in full size."""
    real, bert._normal = bert._normal, lambda tf: "zeros"  # which takes no time
    found = {}
    for name in styles.MODELS:
        model = styles.model("keras", name).make(
            tf, row(model=name, small=False, image=0, length=128)
        )
        found[name] = training.parameters(model)
        del model
    bert._normal = real
    return found


def gradient(name):
    """(the loss' slope along its gradient, as it is, and by finite differences)."""
    made = keras.build(tf, row(model=name, **SMALL[name]), Place())
    samples = training.KerasSamples(tf, made._row, made._file, "/CPU:0")
    inputs, targets = samples.first()
    variables = made.model.trainable_variables

    def loss():
        return made.loss_of(made.model(inputs, training=True), targets)

    with tf.GradientTape() as tape:
        now = loss()
    gradients = [tf.convert_to_tensor(one) for one in tape.gradient(now, variables)]
    slope = float(tf.linalg.global_norm(gradients))
    found, starts = [], [tf.identity(one) for one in variables]
    for sign in (1.0, -1.0):
        for one, start, each in zip(variables, starts, gradients, strict=True):
            one.assign(start + sign * _STEP / slope**2 / 2 * each)
        found.append(float(loss()))
    return slope, (found[0] - found[1]) / _STEP * slope


def overflowing(**wanted):
    """A row whose loss is no number of 16 bits."""
    real = mlp.loss
    mlp.loss = lambda tf, targets, outputs: real(tf, targets, outputs) * 3e37
    try:
        return ran(4, **dict(FP16, **wanted))
    finally:
        mlp.loss = real


def with_arguments():
    """The evidence of a compiled function that is called with something."""
    x = tf.ones([4, 4], tf.bfloat16)
    made = training.compiled(tf, lambda one: tf.matmul(one, one), True)
    made(x)
    return graphs.compiled(made, x)


def read(folder):
    for name in ("a", "b"):
        tf.io.gfile.makedirs(f"{folder}/{name}")
        for number in range(4):
            pixels = tf.random.uniform([40 + 8 * number, 60, 3], maxval=255, dtype=tf.int32)
            pixels = tf.cast(pixels, tf.uint8)
            data = (tf.io.encode_png if number % 2 else tf.io.encode_jpeg)(pixels)
            end = "png" if number % 2 else "JPG"
            tf.io.write_file(f"{folder}/{name}/{number}.{end}", data)
    place = Place(folder=folder)
    wanted = {"model": "resnet50", "image": 32, "batch": 2}
    told = {"tf.data": ran(2, place=place, data="tf.data", **wanted)}
    told["dali"] = ran(place=place, data="dali", **wanted)
    told["mlp"] = ran(place=place, data="tf.data")
    return told


def rank():
    """The whole, and a training on one device for comparison."""
    import os

    number, ranks = (int(os.environ[name]) for name in ("HOROVOD_RANK", "HOROVOD_SIZE"))
    told = {"rank": ran(4, place=Place(rank=number, ranks=ranks), together="horovod")}
    told["alone"] = ran(4)
    return told


def main():
    together._split_cpu(tf, 2)  # which comes before everything else
    together._split_cpu = lambda tf, number: None
    mnist = {"model": "mnist", "batch": 32}
    return {
        "version": tf.__version__,
        "parameters": counted(),
        "trained": {name: ran(6, model=name, **SMALL[name]) for name in styles.MODELS},
        "gradient": {name: gradient(name) for name in styles.MODELS if name != "bert-large"},
        "fp32": ran(40, accuracy=True, **mnist),
        "untrained": ran(1, accuracy=True, **mnist),
        "policy": ran(40, **dict(AMP, **mnist)),
        "rewrite": ran(40, **dict(AMP, way="rewrite", **mnist)),
        "stuck": ran(40, **dict(AMP, scaler="stuck", **mnist)),
        "stuck fp16": ran(4, **dict(FP16, scaler="stuck")),
        "half": ran(40, **dict(AMP, precision="half", way="", **mnist)),
        "fp16": ran(**FP16),
        "overflowing": overflowing(),
        "plain": ran(),
        "compiled": ran(compiled=True),
        "compiled amp": ran(compiled=True, **AMP),
        "compiled rewrite": ran(compiled=True, **dict(AMP, way="rewrite")),
        "compiled with arguments": with_arguments(),
        "forward": ran(train=False),
        "forward compiled": ran(train=False, compiled=True, **AMP),
        "tensorrt": ran(train=False, tensorrt=True),
        "ddp": ran(together="ddp"),
        "alone": ran(4, **FP16),
        "mirrored": ran(4, together="mirrored", **FP16),
    }


if sys.argv[2:3] == ["read"]:
    print(json.dumps(read(sys.argv[3])))
elif sys.argv[2:3] == ["rank"]:
    print(json.dumps(rank()))
else:
    print(json.dumps(main()))

"""The models, defined once: each a list of layers, which the styles interpret, and the samples it learns.

A layer is a kind and its options. Kinds with layers inside: "residual" adds what ``shortcut`` makes of the
input to what ``main`` makes of it, "concat" joins the input and what ``inner`` makes of it, and "heads" are
branches, each with an output of its own. Images and volumes have their channels last.
"""

import collections

Layer = collections.namedtuple("Layer", "kind options")
# layers(row), samples(draw, row): ([inputs], [classes to be found]), of one batch. rate: for the optimizer.
Model = collections.namedtuple("Model", "layers samples optimizer rate")
Bert = collections.namedtuple("Bert", "layers width heads vocabulary")

POSITIONS, TYPES = 512, 2  # BERT's
EPSILON = {"batch_norm": 1e-5, "layer_norm": 1e-12}
MOMENTUM = 0.9  # of SGD, and of batch normalisation's running statistics
_IMAGE_CLASSES, _DIGITS = 1000, 10
_MASKED, _DROPPED = 0.15, 0.1  # shares of a sequence's words, of BERT's numbers
_MLP_INPUTS = 1024


def layer(kind, **options):
    return Layer(kind, options)


RELU = layer("activation", name="relu")


def resnet50(row):
    """ResNet-50 v1.5: the stride of a bottleneck is in its 3x3 convolution."""

    def conv(filters, side, stride=1, zero=False):
        return [
            layer("conv", filters=filters, side=side, stride=stride, bias=False),
            layer("batch_norm", zero=zero),
        ]

    layers = conv(64, 7, 2) + [RELU, layer("max_pool", side=3, stride=2, same=True)]
    for stage, blocks in enumerate((3, 4, 6, 3)):
        filters = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            # The last scale begins at zero, so that a block begins as its shortcut.
            main = conv(filters, 1) + [RELU] + conv(filters, 3, stride) + [RELU]
            main += conv(4 * filters, 1, zero=True)
            shortcut = [] if block else conv(4 * filters, 1, stride)
            layers += [layer("residual", main=main, shortcut=shortcut), RELU]
    return layers + [layer("mean"), layer("dense", width=_IMAGE_CLASSES)]


def mnist(row):
    return [
        layer("conv", filters=32, side=3, same=False),
        RELU,
        layer("max_pool", side=2, stride=2),
        layer("flatten", cells=13 * 13),
        layer("dense", width=64),
        RELU,
        layer("dense", width=_DIGITS),
    ]


def mlp(row):
    layers = []
    for _layer in range(3):
        layers += [layer("dense", width=256 if row["small"] else 4096), RELU]
    return layers + [layer("dense", width=10)]


def unet(row):
    """U-Net with padding, in four levels: every pixel gets a class."""

    def twice(filters):
        return [layer("conv", filters=filters, side=3), RELU] * 2

    def level(number):
        filters = (8 if row["small"] else 64) << number
        if number == 4:
            return twice(filters)
        inner = [layer("max_pool", side=2, stride=2)] + level(number + 1)
        inner.append(layer("up", filters=filters))
        return twice(filters) + [layer("concat", inner=inner)] + twice(filters)

    return level(0) + [layer("conv", filters=2, side=1)]


def bert_size(row):
    return Bert(2, 128, 2, 1000) if row["small"] else Bert(12, 768, 12, 30522)


def bert(row):
    """BERT as published, with both heads of its pretraining: masked words, and the next sentence."""
    size = bert_size(row)
    dropped = 0.0 if row["small"] else _DROPPED
    drop = [layer("dropout", rate=dropped)] if dropped else []
    gelu, norm = layer("activation", name="gelu"), layer("layer_norm")

    def dense(width):
        return layer("dense", width=width, deviation=0.02)

    layers = [layer("embed", vocabulary=size.vocabulary, width=size.width), norm] + drop
    for _layer in range(size.layers):
        attention = layer("attention", width=size.width, heads=size.heads, dropped=dropped)
        wide = [dense(4 * size.width), gelu, dense(size.width)]
        layers += [layer("residual", main=[attention, dense(size.width)] + drop, shortcut=[]), norm]
        layers += [layer("residual", main=wide + drop, shortcut=[]), norm]
    words = [layer("masked"), dense(size.width), gelu, norm, layer("words")]
    follows = [layer("first"), dense(size.width), layer("activation", name="tanh"), dense(2)]
    return layers + [layer("heads", branches=[words, follows])]


def masked(length):
    """How many words of a sequence are masked."""
    return max(1, round(_MASKED * length))


# Samples, random. ``draw`` is a style's: normal(shape) and classes(shape, number), all different with every
# call, and constant(whole numbers).


def _image_samples(draw, row):
    side = row["image"] or 224
    images = draw.normal([row["batch"], side, side, 3])
    return [images], [draw.classes([row["batch"]], _IMAGE_CLASSES)]


def _digit_samples(draw, row):
    return [draw.normal([row["batch"], 28, 28, 1])], [draw.classes([row["batch"]], _DIGITS)]


def _mlp_samples(draw, row):
    return [draw.normal([row["batch"], _MLP_INPUTS])], [draw.classes([row["batch"]], 10)]


def _unet_samples(draw, row):
    shape = [row["batch"], row["image"] or 512, row["image"] or 512]
    return [draw.normal(shape + [1])], [draw.classes(shape, 2)]


def _bert_samples(draw, row):
    """Words, which of the two sentences each is of, and the places of those that are masked."""
    batch, length = row["batch"], row["length"] or 128
    number, vocabulary = masked(length), bert_size(row).vocabulary
    words = draw.classes([batch, length], vocabulary)
    types = [int(place >= length // 2) for place in range(length)]
    places = [place * (length // number) for place in range(number)]
    inputs = [words, draw.constant([types] * batch), draw.constant([places] * batch)]
    return inputs, [draw.classes([batch, number], vocabulary), draw.classes([batch], 2)]


MODELS = {
    "resnet50": Model(resnet50, _image_samples, "momentum", 0.01),
    "mnist": Model(mnist, _digit_samples, "adam", 0.001),
    "bert-base": Model(bert, _bert_samples, "adam", 0.0001),
    "unet-2d": Model(unet, _unet_samples, "adam", 0.0001),
    "mlp": Model(mlp, _mlp_samples, "momentum", 0.01),
}

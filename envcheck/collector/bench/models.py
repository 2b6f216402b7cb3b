"""The models, defined once: each a list of layers, which the styles interpret, and the samples it learns.

A layer is a kind and its options. Kinds with layers inside: "residual" adds what ``shortcut`` makes of the
input to what ``main`` makes of it, "concat" joins the input and what ``inner`` makes of it, and "heads" are
branches, each with an output of its own. Images and volumes have their channels last.
"""

import collections

Layer = collections.namedtuple("Layer", "kind options")
# layers(row), samples(draw, row, count): ([inputs], [classes to be found]). rate(row): the learning rate.
# epoch: samples of an epoch that can be learned; others: samples to test it with. 0: there are none.
Model = collections.namedtuple("Model", "layers samples optimizer rate epoch others")
Bert = collections.namedtuple("Bert", "layers width heads vocabulary")

POSITIONS, TYPES = 512, 2  # BERT's
EPSILON = {"batch_norm": 1e-5, "layer_norm": 1e-12}
MOMENTUM = 0.9  # of SGD, and of batch normalisation's running statistics
_IMAGE_CLASSES, _DIGITS = 1000, 10
_MASKED, _DROPPED = 0.15, 0.1  # shares of a sequence's words, of BERT's numbers
_MISTAKEN = 0.2  # of the digits, where losses are compared: the loss then stays well above zero
_BLOCK = 4  # pixels on a side with the same value in a digit's pattern
_SMALLER = 10  # times, an epoch on a machine without a GPU
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
    # Rows whose losses are compared drop nothing: other types would drop other numbers.
    dropped = _DROPPED if row["train"] and not row["steps"] and not row["small"] else 0.0
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


# Samples. ``draw`` is a style's: normal(shape), uniform(shape), classes(shape, number), all different with
# every call; pattern(shape), the same for a seed; take(array, places, axis), where(condition, a, b),
# constant(whole numbers), positive(array).


def _image_samples(draw, row, count):
    side = row["image"] or 224
    return [draw.normal([count, side, side, 3])], [draw.classes([count], _IMAGE_CLASSES)]


def _digit_samples(draw, row, count):
    """A pattern for each digit, under noise."""
    blocks = 28 // _BLOCK
    places = [place // _BLOCK for place in range(28)]
    patterns = draw.pattern([_DIGITS, blocks, blocks, 1])
    patterns = draw.take(draw.take(patterns, places, 1), places, 2)
    digits = draw.classes([count], _DIGITS)
    images = 0.3 * (draw.take(patterns, digits, 0) - 0.5 + draw.normal([count, 28, 28, 1]))
    if row["steps"]:
        wrong = draw.uniform([count]) < _MISTAKEN
        digits = draw.where(wrong, draw.classes([count], _DIGITS), digits)
    return [images], [digits]


def _mlp_samples(draw, row, count):
    return [draw.normal([count, _MLP_INPUTS])], [draw.classes([count], 10)]


def _unet_samples(draw, row, count):
    """Noise, and whether it is above zero."""
    side = row["image"] or 512
    noise = draw.normal([count, side, side])
    return [noise[..., None]], [draw.positive(noise)]


def _bert_samples(draw, row, count):
    """Random words; the masked ones are to be found as what they are, so that it can be learned."""
    length = row["length"] or 128
    number = masked(length)
    words = draw.classes([count, length], bert_size(row).vocabulary)
    types = [int(place >= length // 2) for place in range(length)]
    places = [place * (length // number) for place in range(number)]
    inputs = [words, draw.constant([types] * count), draw.constant([places] * count)]
    return inputs, [draw.take(words, places, 1), draw.classes([count], 2)]


def _deep_rate(row):
    return 0.001 if row["small"] else 0.0001


def _digit_rate(row):
    """Where losses are compared, Adam at the other rate makes much of a last bit."""
    return 0.0002 if row["steps"] else 0.001


MODELS = {
    "resnet50": Model(resnet50, _image_samples, "momentum", lambda row: 0.01, 0, 0),
    "mnist": Model(mnist, _digit_samples, "adam", _digit_rate, 60000, 10000),
    "bert-base": Model(bert, _bert_samples, "adam", _deep_rate, 0, 0),
    "unet-2d": Model(unet, _unet_samples, "adam", _deep_rate, 0, 0),
    "mlp": Model(mlp, _mlp_samples, "momentum", lambda row: 0.01, 0, 0),
}
IMAGE_SIDE, IMAGE_CLASSES = 224, _IMAGE_CLASSES  # of ResNet-50, for images that are read


def count(row):
    """How many samples a row's data has: batches of an epoch, or the one batch that is used again."""
    model = MODELS[row["model"]]
    epoch = model.epoch // (_SMALLER if row["small"] else 1)
    return max(1, epoch // row["batch"]) * row["batch"]


def others(row):
    """How many samples it is tested with."""
    return MODELS[row["model"]].others // (_SMALLER if row["small"] else 1)

"""ResNet-50 v1.5: the stride is in the 3×3 convolution of a bottleneck."""

from . import layers

OPTIMIZER = "momentum"
RATE = 0.01
CLASSES = 1000
_STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks, channels inside
_EXPANSION = 4


def _blocks():
    """(name, channels in, channels inside, stride) of every bottleneck."""
    inputs = 64
    for stage, (count, inside) in enumerate(_STAGES):
        for place in range(count):
            stride = 2 if stage and not place else 1
            yield "block%d_%d" % (stage + 1, place + 1), inputs, inside, stride
            inputs = _EXPANSION * inside


def _convolutions(inputs, inside, stride):
    """{name: (side, channels in, channels out, stride)} of a bottleneck."""
    outputs = _EXPANSION * inside
    found = {
        "1": (1, inputs, inside, 1),
        "2": (3, inside, inside, stride),
        "3": (1, inside, outputs, 1),
    }
    if inputs != outputs or stride != 1:
        found["shortcut"] = (1, inputs, outputs, stride)
    return found


def init(jax, row, key):
    some = layers.keys(jax, key)
    params, state = {}, {}

    def add(name, side, inputs, outputs):
        params[name] = layers.conv_init(jax, next(some), (side, side), inputs, outputs, bias=False)
        params[name + "_norm"] = layers.norm_init(jax, outputs)
        state[name + "_norm"] = layers.batch_norm_state(jax, outputs)

    add("stem", 7, 3, 64)
    for block, inputs, inside, stride in _blocks():
        for name, (side, some_in, some_out, _stride) in sorted(
            _convolutions(inputs, inside, stride).items()
        ):
            add("%s_%s" % (block, name), side, some_in, some_out)
    params["out"] = layers.dense_init(jax, next(some), _EXPANSION * _STAGES[-1][1], CLASSES)
    return params, state


def apply(jax, row, params, state, inputs, train):
    state = dict(state)

    def normal(name, x, stride=1, padding="SAME"):
        x = layers.conv(jax, params[name], x, stride, padding)
        norm = name + "_norm"
        x, state[norm] = layers.batch_norm(jax, params[norm], state[norm], x, train)
        return x

    x = jax.nn.relu(normal("stem", inputs, 2, [(3, 3), (3, 3)]))
    x = layers.max_pool(jax, x, 3, 2, [(1, 1), (1, 1)])
    for block, _inputs, _inside, stride in _blocks():
        shortcut = x
        if block + "_shortcut" in params:
            shortcut = normal(block + "_shortcut", x, stride)
        y = jax.nn.relu(normal(block + "_1", x))
        y = jax.nn.relu(normal(block + "_2", y, stride, [(1, 1), (1, 1)]))
        x = jax.nn.relu(normal(block + "_3", y) + shortcut)
    return layers.dense(jax, params["out"], x.mean((1, 2))), state


def loss(jax, row, outputs, targets):
    return layers.cross_entropy(jax, outputs, targets)


def data(jax, row, key, batch):
    one, other = jax.random.split(key)
    inputs = jax.random.normal(one, (batch, row["image"], row["image"], 3))
    return inputs, jax.random.randint(other, (batch,), 0, CLASSES)

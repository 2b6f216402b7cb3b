"""The training loop, the same for all of JAX's models: a step is one function, compiled."""

from ...kernels.failures import NotSupported
from .. import hlo, models, tf32_bits
from .layers import JaxDraw, loss, outputs, parameters

# What a loss scale begins with, and after how many good steps it doubles.
_SCALE, _GROWTH = 2.0**15, 2000
_PRECISION = {"fp32": "float32", "tf32": "tensorfloat32"}
_BETAS, _EPSILON = (0.9, 0.999), 1e-8
_SIDE = 256  # of the product that shows TF32: Tensor Cores take it


class JaxTraining(object):
    """A Training (collector/bench/__init__.py)."""

    def __init__(self, jax, row, place):
        _check(row)
        self._jax, self._row = jax, row
        self._model = models.MODELS[row["model"]]
        self._layers = self._model.layers(row)
        self._devices = _devices(jax, row, place)
        self._together = row["together"] == "mirrored"
        self._on_gpu = place.device == "gpu"
        self._half = getattr(jax.numpy, row["half"]) if row["precision"] == "amp" else None
        if row["precision"] in _PRECISION:
            jax.config.update("jax_default_matmul_precision", _PRECISION[row["precision"]])
        self._held, self._data = self._made()
        self.parameters = sum(one.size for one in jax.tree_util.tree_leaves(self._held["params"]))
        self._skipped = 0
        self._last = self._text = None
        self._step = self._ready()
        if models.others(row) and row["train"]:
            self.accuracy = self._accuracy

    def _made(self):
        """(what a step takes and returns, all samples)."""
        jax, row = self._jax, self._row
        numpy, tree = jax.numpy, jax.tree_util.tree_map
        key, own = jax.random.split(jax.random.PRNGKey(row["seed"]))
        some = len(self._devices)  # each GPU has its own samples

        def samples(own):
            return self._model.samples(JaxDraw(jax, own), row, some * models.count(row))

        data = jax.jit(samples)(own)
        params, state = jax.jit(lambda key: parameters(jax, self._layers, key, data[0]))(key)
        held = {"params": params, "state": state}
        if row["train"]:
            held.update(count=numpy.zeros((), "int32"), first=tree(numpy.zeros_like, params))
            if self._model.optimizer == "adam":
                held["second"] = tree(numpy.zeros_like, params)
            if row["scaler"]:
                zero = numpy.zeros((), "int32")
                held["scaler"] = {"scale": numpy.float32(_SCALE), "good": zero, "skipped": zero}
        if self._together:
            data = tree(lambda one: one.reshape((some, -1) + one.shape[1:]), data)
            data = jax.pmap(lambda one: one, devices=self._devices)(data)
        return held, data

    # The pure functions.

    def _cast(self, tree):
        """Everything that is a float, in the row's 16-bit type."""
        jax, half = self._jax, self._half

        def narrow(one):
            return one.astype(half) if jax.numpy.issubdtype(one.dtype, jax.numpy.floating) else one

        return tree if half is None else jax.tree_util.tree_map(narrow, tree)

    def _outputs(self, params, state, inputs, train):
        params, inputs = self._cast(params), self._cast(inputs)
        return outputs(self._jax, self._layers, params, state, inputs, train)

    def objective(self, params, state, inputs, targets):
        """(loss, state)."""
        found, state = self._outputs(params, state, inputs, True)
        return loss(self._jax, targets, found), state

    def _forward(self, held, data):
        inputs, _targets = self.batch(held, data)
        return self._outputs(held["params"], held["state"], inputs, False)[0]

    def batch(self, held, data):
        """The next batch of an epoch's samples."""
        jax, size = self._jax, self._row["batch"]
        whole = jax.tree_util.tree_leaves(data)[0].shape[0] // size
        if whole == 1:
            return data
        start = held.get("count", 0) % whole * size
        return jax.tree_util.tree_map(
            lambda one: jax.lax.dynamic_slice_in_dim(one, start, size), data
        )

    def _train(self, held, data):
        """One step: (what is held after it, loss)."""
        jax, tree = self._jax, self._jax.tree_util.tree_map
        inputs, targets = self.batch(held, data)
        scaler = held.get("scaler")
        scale = 1.0 if scaler is None else scaler["scale"]

        def scaled(params):
            found, state = self.objective(params, held["state"], inputs, targets)
            return found * scale, (found, state)

        grads, (found, state) = jax.grad(scaled, has_aux=True)(held["params"])
        if self._together:
            grads, found, state = tree(self._mean, (grads, found, state))
        after = dict(held, count=held["count"] + 1, state=state)
        if scaler is None:
            return self._updated(after, grads), found
        grads = tree(lambda one: one / scale.astype(one.dtype), grads)
        finite = jax.numpy.stack(
            [jax.numpy.isfinite(one).all() for one in jax.tree_util.tree_leaves(grads)]
        ).all()
        kept = dict(held, count=after["count"])
        where = jax.numpy.where
        after = tree(lambda new, old: where(finite, new, old), self._updated(after, grads), kept)
        return dict(after, scaler=self._moved(scaler, finite)), found

    def _mean(self, one):
        """Of all GPUs; what is no float (a random key) is everywhere the same."""
        jax = self._jax
        mean = jax.numpy.issubdtype(one.dtype, jax.numpy.floating)
        return jax.lax.pmean(one, "gpus") if mean else one

    def _moved(self, scaler, finite):
        """The loss scale after a step."""
        numpy = self._jax.numpy
        scale, good = scaler["scale"], numpy.where(finite, scaler["good"] + 1, 0)
        grown = numpy.where(good >= _GROWTH, scale * 2, scale)
        return {
            "scale": numpy.where(finite, grown, numpy.maximum(scale / 2, 1.0)),
            "good": numpy.where(good >= _GROWTH, 0, good),
            "skipped": (scaler["skipped"] + numpy.where(finite, 0, 1)).astype("int32"),
        }

    def _updated(self, held, grads):
        tree, rate = self._jax.tree_util.tree_map, self._model.rate(self._row)
        if self._model.optimizer == "momentum":
            first = tree(lambda old, new: models.MOMENTUM * old + new, held["first"], grads)
            params = tree(lambda p, m: p - rate * m, held["params"], first)
            return dict(held, params=params, first=first)
        one, two = _BETAS
        count = held["count"].astype("float32")
        first = tree(lambda m, g: one * m + (1 - one) * g, held["first"], grads)
        second = tree(lambda v, g: two * v + (1 - two) * g * g, held["second"], grads)
        rate = rate * (1 - two**count) ** 0.5 / (1 - one**count)

        def move(p, m, v):
            return p - (rate * m / (v**0.5 + _EPSILON)).astype(p.dtype)

        params = tree(move, held["params"], first, second)
        return dict(held, params=params, first=first, second=second)

    # Compiled, and run.

    def _ready(self):
        """The step, compiled for its arguments, which are on their devices then."""
        jax = self._jax
        function = self._train if self._row["train"] else self._forward
        # A step may write over its arguments' memory on a GPU.
        given = (0,) if self._on_gpu and self._row["train"] else ()
        if self._together:
            self._held = _copied(jax, self._held, self._devices)
            step = jax.pmap(function, axis_name="gpus", devices=self._devices, donate_argnums=given)
        else:
            step = jax.jit(function, donate_argnums=given)
        if not hasattr(step, "lower"):  # before 0.3
            return step
        lowered = step.lower(self._held, self._data)
        compiled = lowered.compile()
        self._text = _text(lowered), _text(compiled)
        return compiled

    def run(self, steps):
        for _step in range(steps):
            if self._row["train"]:
                self._held, self._last = self._step(self._held, self._data)
            else:
                self._last = self._step(self._held, self._data)
        self._jax.tree_util.tree_map(lambda one: one.block_until_ready(), (self._held, self._last))
        if "scaler" not in self._held:
            return 0
        before, self._skipped = self._skipped, int(self._one(self._held["scaler"]["skipped"]))
        return self._skipped - before

    def _one(self, value):
        """Of one GPU, where several hold the same."""
        return value[0] if self._together else value

    def loss(self):
        if self._row["train"]:
            return float(self._one(self._last))
        targets = self.batch(self._held, self._data)[1]
        return float(loss(self._jax, targets, self._last))

    def evidence(self):
        found = hlo.evidence(*(self._text or ("", "")), on_gpu=self._on_gpu)
        found["tf32_bits"] = self._tf32_bits()
        if "scaler" in self._held:
            found["loss_scale"] = float(self._one(self._held["scaler"]["scale"]))
            found["skipped_steps"] = int(self._one(self._held["scaler"]["skipped"]))
        if self._together:
            found["replicas"] = len(self._devices)
        return found

    def _tf32_bits(self):
        """By products of its own, under the precision that this row has."""
        jax, numpy = self._jax, self._jax.numpy
        product = jax.jit(lambda one, other: numpy.dot(one, other))
        found = []
        for factor in tf32_bits.FACTORS:
            left = numpy.full((_SIDE, _SIDE), factor, "float32")
            result = product(left, numpy.eye(_SIDE, dtype="float32"))
            found.append({float(result.min()), float(result.max())})
        return tf32_bits.name(found)

    def memory(self):
        found = {}
        for device in self._devices:
            stats = getattr(device, "memory_stats", lambda: None)() or {}
            pool = stats.get(
                "peak_pool_bytes", stats.get("pool_bytes", stats.get("bytes_reserved"))
            )
            for name, peak in (("tensors_mib", stats.get("peak_bytes_in_use")), ("pool_mib", pool)):
                if peak:
                    found[name] = max(found.get(name, 0), int(peak) >> 20)
        return found

    def _accuracy(self):
        """On other samples of the same patterns."""
        jax, row = self._jax, dict(self._row, steps=0)  # without mistaken targets
        own = jax.random.split(jax.random.PRNGKey(row["seed"]))[1]

        def right(params, state, own):
            draw = JaxDraw(jax, own, other=True)
            inputs, targets = self._model.samples(draw, row, models.others(row))
            (found,), _state = self._outputs(params, state, inputs, False)
            return (found.argmax(-1) == targets[0]).mean()

        held = jax.tree_util.tree_map(self._one, [self._held["params"], self._held["state"]])
        return float(jax.jit(right)(held[0], held[1], own))


def _check(row):
    """Raises NotSupported."""
    if not row["compiled"]:
        raise NotSupported("JAX always compiles: its rows are compiled ones")
    if row["data"] != "synthetic":
        raise NotSupported("JAX has no reader of images: its rows train on synthetic data")
    if row["together"] not in ("", "mirrored"):
        raise NotSupported(
            "JAX trains on several GPUs by pmap in one process, not by %s" % row["together"]
        )
    if row["tensorrt"]:
        raise NotSupported("JAX has no TensorRT")
    if row["precision"] == "half" or (row["precision"] == "amp" and row["way"] not in ("", "cast")):
        raise NotSupported("JAX has no %s: mixed precision is a matter of casts" % row["way"])


def _devices(jax, row, place):
    """Those that the row runs on. Raises NotSupported."""
    platform = "gpu" if place.device == "gpu" else "cpu"
    try:
        found = jax.devices(platform)
    except RuntimeError as error:  # its way of saying that it has none
        raise NotSupported("JAX sees no %s: %s" % (platform.upper(), " ".join(str(error).split())))
    return found if row["together"] == "mirrored" else found[:1]


def _copied(jax, held, devices):
    """The same on every device, each with a first axis for them."""
    copy = jax.pmap(lambda _own, one: one, in_axes=(0, None), devices=devices)
    return copy(jax.numpy.arange(len(devices)), held)


def _text(stage):
    """A module as text; "" where this version does not show it."""
    for ask in (
        lambda: stage.as_text(),
        lambda: "\n".join(one.to_string() for one in stage.runtime_executable().hlo_modules()),
        lambda: str(stage.compiler_ir()),
    ):
        try:
            text = ask()
        except Exception:
            continue
        if text:
            return text
    return ""

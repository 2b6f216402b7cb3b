"""The training loop, the same for all of JAX's models: a step is one function, compiled."""

from ...kernels.failures import NotSupported
from .. import hlo, tf32_bits

# What a loss scale begins with, and after how many good steps it doubles.
_SCALE, _GROWTH = 2.0**15, 2000
# A scale that loses every gradient: below FP16's smallest; BF16 has FP32's exponents, so above its largest.
_STUCK = {"float16": 2.0**-40, "bfloat16": float("inf")}
_PRECISION = {"fp32": "float32", "tf32": "tensorfloat32"}
_BETAS, _EPSILON = (0.9, 0.999), 1e-8
_MOMENTUM = 0.9
_SIDE = 256  # of the product that shows TF32: Tensor Cores take it


class JaxTraining(object):
    """A Training (collector/bench/__init__.py)."""

    def __init__(self, jax, row, place, model):
        _check(row)
        self._jax, self._row, self._model = jax, row, model
        self._devices = _devices(jax, row, place)
        self._on_gpu = place.device == "gpu"
        self._half = (
            getattr(jax.numpy, row["half"]) if row["precision"] in ("amp", "half") else None
        )
        if row["precision"] in _PRECISION:
            jax.config.update("jax_default_matmul_precision", _PRECISION[row["precision"]])
        params, held, self._data = self._made()
        self.parameters = sum(one.size for one in jax.tree_util.tree_leaves(params))
        self._held = (
            dict(held, params=params)
            if row["train"]
            else {"params": params, "state": held["state"]}
        )
        self._skipped = 0
        self._last = self._text = None
        self._step = self._ready()

    def _made(self):
        jax, row = self._jax, self._row
        key, own = jax.random.split(jax.random.PRNGKey(row["seed"]))

        def make(key):
            params, state = self._model.init(jax, row, key)
            if row["precision"] == "half":
                params = self.cast(params)
            return params, state

        params, state = jax.jit(make)(key)
        held = {"state": state, "count": jax.numpy.zeros((), "int32")}
        if row["train"]:
            zeros = jax.tree_util.tree_map(jax.numpy.zeros_like, params)
            held["first"] = zeros
            if self._model.OPTIMIZER == "adam":
                held["second"] = jax.tree_util.tree_map(jax.numpy.zeros_like, params)
            if row["scaler"]:
                held["scaler"] = self._new_scaler()
        some = len(self._devices)
        data = jax.jit(lambda own: self._model.data(jax, row, own, some * row["batch"]))(own)
        if self._together:  # each GPU has its own samples
            data = jax.tree_util.tree_map(
                lambda one: one[: len(one) // some * some].reshape((some, -1) + one.shape[1:]), data
            )
            data = jax.pmap(lambda one: one, devices=self._devices)(data)
        return params, held, data

    def _new_scaler(self):
        numpy = self._jax.numpy
        stuck = self._row["scaler"] == "stuck"
        return {
            "scale": numpy.float32(_STUCK[self._row["half"]] if stuck else _SCALE),
            "good": numpy.zeros((), "int32"),
            "skipped": numpy.zeros((), "int32"),
        }

    @property
    def _together(self):
        return self._row["together"] == "mirrored"

    # -- the pure functions

    def cast(self, tree):
        """Everything that is a float, in the row's 16-bit type."""
        jax, half = self._jax, self._half

        def narrow(one):
            return one.astype(half) if jax.numpy.issubdtype(one.dtype, jax.numpy.floating) else one

        return tree if half is None else jax.tree_util.tree_map(narrow, tree)

    def objective(self, params, state, inputs, targets):
        """(loss, state)."""
        outputs, state = self._model.apply(
            self._jax, self._row, self.cast(params), state, self.cast(inputs), True
        )
        return self._model.loss(self._jax, self._row, outputs, targets), state

    def _forward(self, held, data):
        inputs, _targets = self._batch(held, data)
        return self._model.apply(
            self._jax, self._row, self.cast(held["params"]), held["state"], self.cast(inputs), False
        )[0]

    def _batch(self, held, data):
        """The next batch of samples that are more than one."""
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
        inputs, targets = self._batch(held, data)
        scaler = held.get("scaler")
        scale = 1.0 if scaler is None else scaler["scale"]

        def scaled(params):
            loss, state = self.objective(params, held["state"], inputs, targets)
            return loss * scale, (loss, state)

        grads, (loss, state) = jax.grad(scaled, has_aux=True)(held["params"])
        if self._together:
            grads, loss, state = tree(self._mean, (grads, loss, state))
        after = dict(held, count=held["count"] + 1, state=state)
        if scaler is None:
            return self._updated(after, grads), loss
        grads = tree(lambda one: one / scale.astype(one.dtype), grads)
        finite = jax.numpy.stack(
            [jax.numpy.isfinite(one).all() for one in jax.tree_util.tree_leaves(grads)]
        ).all()
        updated = self._updated(after, grads)
        kept = dict(held, count=after["count"])
        after = tree(lambda new, old: jax.numpy.where(finite, new, old), updated, kept)
        return dict(after, scaler=self._moved(scaler, finite)), loss

    def _mean(self, one):
        """Of all GPUs; what is no float (a random key) is everywhere the same."""
        jax = self._jax
        mean = jax.numpy.issubdtype(one.dtype, jax.numpy.floating)
        return jax.lax.pmean(one, "gpus") if mean else one

    def _moved(self, scaler, finite):
        """The loss scale after a step."""
        where = self._jax.numpy.where
        scale, good = scaler["scale"], where(finite, scaler["good"] + 1, 0)
        if self._row["scaler"] == "dynamic":
            grown = where(good >= _GROWTH, scale * 2, scale)
            scale = where(finite, grown, self._jax.numpy.maximum(scale / 2, 1.0))
            good = where(good >= _GROWTH, 0, good)
        skipped = scaler["skipped"] + where(finite, 0, 1)
        return {"scale": scale, "good": good, "skipped": skipped.astype("int32")}

    def _updated(self, held, grads):
        tree, rate = self._jax.tree_util.tree_map, self._model.RATE
        if self._row["steps"]:
            rate = getattr(self._model, "COMPARED_RATE", rate)
        if self._model.OPTIMIZER == "momentum":
            first = tree(lambda old, new: _MOMENTUM * old + new, held["first"], grads)
            params = tree(lambda p, m: p - rate * m, held["params"], first)
            return dict(held, params=params, first=first)
        one, two = _BETAS
        count = held["count"].astype("float32")
        first = tree(lambda m, g: one * m + (1 - one) * g, held["first"], grads)
        second = tree(lambda v, g: two * v + (1 - two) * g * g, held["second"], grads)
        rate = rate * (1 - two**count) ** 0.5 / (1 - one**count)

        def move(p, m, v):
            return p - (rate * m / (v**0.5 + _EPSILON)).astype(p.dtype)

        return dict(
            held, params=tree(move, held["params"], first, second), first=first, second=second
        )

    # -- compiled, and run

    def _ready(self):
        """The step, compiled for its arguments, which are on their devices then."""
        jax = self._jax
        function = self._train if self._row["train"] else self._forward
        if self._together:
            self._held = _copied(jax, self._held, self._devices)
            step = jax.pmap(
                function, axis_name="gpus", devices=self._devices, donate_argnums=self._given
            )
        else:
            step = jax.jit(function, donate_argnums=self._given)
        if not hasattr(step, "lower"):  # before 0.3
            return step
        lowered = step.lower(self._held, self._data)
        compiled = lowered.compile()
        self._text = _text(lowered), _text(compiled)
        return compiled

    @property
    def _given(self):
        """What a step may write over: its arguments' memory, on a GPU."""
        return (0,) if self._on_gpu and self._row["train"] else ()

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
        """Of one GPU, where there are several that hold the same."""
        return value[0] if self._together else value

    def loss(self):
        if self._row["train"]:
            return float(self._one(self._last))
        targets = self._batch(self._held, self._data)[1]
        return float(self._model.loss(self._jax, self._row, self._last, targets))

    def evidence(self):
        found = hlo.evidence(*(self._text or ("", "")), on_gpu=self._on_gpu)
        found["tf32_bits"] = self._tf32_bits()
        if "scaler" in self._held:
            scaler = self._held["scaler"]
            found["loss_scale"] = float(self._one(scaler["scale"]))
            found["skipped_steps"] = int(self._one(scaler["skipped"]))
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
            told = getattr(device, "memory_stats", lambda: None)() or {}
            pool = told.get("peak_pool_bytes", told.get("pool_bytes", told.get("bytes_reserved")))
            for name, peak in (("tensors_mib", told.get("peak_bytes_in_use")), ("pool_mib", pool)):
                if peak:
                    found[name] = max(found.get(name, 0), int(peak) >> 20)
        return found

    @property
    def accuracy(self):
        """A method, where the model has other samples to be asked about."""
        if not hasattr(self._model, "others") or not self._row["train"]:
            raise AttributeError("accuracy")
        return self._accuracy

    def _accuracy(self):
        jax, row = self._jax, self._row
        own = jax.random.split(jax.random.PRNGKey(row["seed"]))[1]

        def right(held, own):
            inputs, targets = self._model.others(jax, row, own)
            found = self._model.apply(
                jax, row, self.cast(held["params"]), held["state"], self.cast(inputs), False
            )[0]
            return (found.argmax(-1) == targets).mean()

        held = {name: self._held[name] for name in ("params", "state")}
        if self._together:
            held = jax.tree_util.tree_map(lambda one: one[0], held)
        return float(jax.jit(right)(held, own))


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
    if row["precision"] == "amp" and row["way"] not in ("", "cast"):
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
    some = len(devices)
    return jax.pmap(lambda _own, one: one, in_axes=(0, None), devices=devices)(
        jax.numpy.arange(some), held
    )


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

"""The training loop, the same for all of JAX's models: a step is one function, compiled.

Mixed precision is a matter of casts, to bfloat16, which needs no loss scale.
"""

from ...kernels.failures import NotSupported
from .. import hlo, models, tf32_bits
from .layers import JaxDraw, loss, outputs, parameters

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
        self._device = _device(jax, place)
        self._on_gpu = place.device == "gpu"
        self._half = getattr(jax.numpy, row["half"]) if row["precision"] == "amp" else None
        if row["precision"] in _PRECISION:
            jax.config.update("jax_default_matmul_precision", _PRECISION[row["precision"]])
        self._held, self._data = self._made()
        self.parameters = sum(one.size for one in jax.tree_util.tree_leaves(self._held["params"]))
        self._last = self._text = None
        self._step = self._ready()

    def _made(self):
        """(what a step takes and returns, the samples)."""
        jax, row = self._jax, self._row
        numpy, tree = jax.numpy, jax.tree_util.tree_map
        key, own = jax.random.split(jax.random.PRNGKey(row["seed"]))
        data = jax.jit(lambda own: self._model.samples(JaxDraw(jax, own), row))(own)
        params, state = jax.jit(lambda key: parameters(jax, self._layers, key, data[0]))(key)
        held = {"params": params, "state": state, "count": numpy.zeros((), "int32")}
        held["first"] = tree(numpy.zeros_like, params)
        if self._model.optimizer == "adam":
            held["second"] = tree(numpy.zeros_like, params)
        return held, data

    def _cast(self, tree):
        """Everything that is a float, in the row's 16-bit type."""
        jax, half = self._jax, self._half

        def narrow(one):
            return one.astype(half) if jax.numpy.issubdtype(one.dtype, jax.numpy.floating) else one

        return tree if half is None else jax.tree_util.tree_map(narrow, tree)

    def objective(self, params, state, inputs, targets):
        """(loss, state)."""
        params, inputs = self._cast(params), self._cast(inputs)
        found, state = outputs(self._jax, self._layers, params, state, inputs)
        return loss(self._jax, targets, found), state

    def _train(self, held, data):
        """One step: (what is held after it, loss)."""
        inputs, targets = data

        def objective(params):
            found, state = self.objective(params, held["state"], inputs, targets)
            return found, (found, state)

        grads, (found, state) = self._jax.grad(objective, has_aux=True)(held["params"])
        after = dict(held, count=held["count"] + 1, state=state)
        return self._updated(after, grads), found

    def _updated(self, held, grads):
        tree, rate = self._jax.tree_util.tree_map, self._model.rate
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

    def _ready(self):
        """The step, compiled for its arguments, which are on their device then."""
        # A step may write over its arguments' memory on a GPU.
        step = self._jax.jit(self._train, donate_argnums=(0,) if self._on_gpu else ())
        if not hasattr(step, "lower"):  # before 0.3
            return step
        lowered = step.lower(self._held, self._data)
        compiled = lowered.compile()
        self._text = _text(lowered), _text(compiled)
        return compiled

    def run(self, steps):
        for _step in range(steps):
            self._held, self._last = self._step(self._held, self._data)
        self._jax.tree_util.tree_map(lambda one: one.block_until_ready(), (self._held, self._last))
        return 0

    def loss(self):
        return float(self._last)

    def evidence(self):
        found = hlo.evidence(*(self._text or ("", "")), on_gpu=self._on_gpu)
        found["tf32_bits"] = self._tf32_bits()
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
        stats = getattr(self._device, "memory_stats", lambda: None)() or {}
        pool = stats.get("peak_pool_bytes", stats.get("pool_bytes", stats.get("bytes_reserved")))
        peaks = {"tensors_mib": stats.get("peak_bytes_in_use"), "pool_mib": pool}
        return {name: int(peak) >> 20 for name, peak in peaks.items() if peak}


def _check(row):
    """Raises NotSupported."""
    if not row["compiled"]:
        raise NotSupported("JAX always compiles: its rows are compiled ones")
    if row["together"]:
        raise NotSupported("JAX's rows run on one GPU")
    if row["precision"] == "amp" and row["half"] != "bfloat16":
        raise NotSupported("JAX's mixed precision is bfloat16 here")


def _device(jax, place):
    """The one that the row runs on. Raises NotSupported."""
    platform = "gpu" if place.device == "gpu" else "cpu"
    try:
        return jax.devices(platform)[0]
    except RuntimeError as error:  # its way of saying that it has none
        raise NotSupported("JAX sees no %s: %s" % (platform.upper(), " ".join(str(error).split())))


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

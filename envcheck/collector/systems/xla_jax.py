"""XLA in JAX: a compiled function's Python runs once, to be traced, and leaves an optimised module behind.

With jit disabled it runs at every call, and each operation by itself.
"""

import importlib

from .running import records

SYSTEM = "xla"
FRAMEWORKS = ("jax",)
DEADLINE = 20.0

_CALLS = 2


def run(jax, params, tell):
    reference = None
    with tell.trial("disable_jit", control=True) as trial:
        if not hasattr(jax, "disable_jit"):
            raise records.NotSupported("this JAX has no jax.disable_jit")
        with jax.disable_jit():
            reference = _call(jax, trial, None)
    with tell.trial("jit") as trial:
        _call(jax, trial, reference)


def _call(jax, trial, reference):
    """Call a function that is to be compiled: its values."""
    numpy = importlib.import_module("numpy")
    runs = []

    def step(x):
        runs.append(x)
        y = jax.numpy.tanh(x * 2.0 + 1.0)
        z = jax.numpy.exp(-y) * jax.numpy.sin(y) + jax.numpy.log1p(jax.numpy.abs(y))
        return (z * z + y).sum(axis=1)

    x = jax.numpy.asarray(numpy.arange(2048, dtype="float32").reshape(64, 32) / 2048)
    function = jax.jit(step)
    results = [function(x) for _ in range(_CALLS)]
    values = numpy.asarray(results[-1])
    trial["platform"] = jax.devices()[0].platform
    trial["calls"] = _CALLS
    trial["python_runs"] = len(runs)
    modules = _modules(function, x) if len(runs) < _CALLS else []
    if modules is not None:
        trial["modules"] = len(modules)
        trial["fusions"] = sum(text.count(" fusion(") for text in modules)
    trial["result"] = float(values.sum())
    if reference is not None:
        trial["difference"] = float(abs(values - reference).max() / abs(reference).max())
    return values


def _modules(function, x):
    """The optimised modules of a compiled function, as text; None where this version does not show them."""
    if not hasattr(function, "lower"):
        return None
    compiled = function.lower(x).compile()
    if hasattr(compiled, "as_text"):
        return [compiled.as_text() or ""]
    if hasattr(compiled, "runtime_executable"):
        return [one.to_string() for one in compiled.runtime_executable().hlo_modules()]
    return None

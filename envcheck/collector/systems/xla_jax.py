"""XLA in JAX: a compiled function's Python runs once, to be traced, and leaves an optimised module behind.

With jit disabled it runs at every call, and each operation by itself.
"""

import importlib

from .running import records
from .shared import fused

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
        return fused.step(jax.numpy, x).sum(axis=1)

    x = jax.numpy.asarray(fused.data())
    function = jax.jit(step)
    results = [function(x) for _ in range(_CALLS)]
    values = numpy.asarray(results[-1])
    trial["calls"] = _CALLS
    trial["python_runs"] = len(runs)
    if len(runs) >= _CALLS:
        trial["modules"] = 0
    elif hasattr(function, "lower"):
        compiled = function.lower(x).compile()
        if hasattr(compiled, "as_text"):  # from 0.4 on
            trial["modules"] = 1
            trial["fusions"] = (compiled.as_text() or "").count(" fusion(")
    trial.compare(values, reference)
    return values

"""XLA in JAX: a compiled function leaves an optimised HLO module, an uncompiled one leaves none."""

from .. import telling

SYSTEM = "xla"
FRAMEWORK = "jax"
DEADLINE = 20.0


def run(jax, params, tell):
    numpy = jax.numpy

    def step(x):
        return (numpy.sin(x) * x + 1).sum()

    x = numpy.ones((64, 64))
    with tell.trial("jit") as trial:
        lowered = jax.jit(step).lower(x)
        compiled = lowered.compile()
        text = compiled.as_text() or ""
        trial["modules"] = text.count("HloModule ")
        trial["fusions"] = text.count(" fusion(")
        trial["result"] = float(compiled(x))
        trial["platform"] = jax.devices()[0].platform
    with tell.trial("disable_jit", control=True) as trial:
        if not hasattr(jax, "disable_jit"):
            raise telling.NotSupported("this JAX has no jax.disable_jit")
        traced = []

        def counted(x):
            traced.append(isinstance(x, jax.core.Tracer))
            return step(x)

        with jax.disable_jit():
            trial["result"] = float(jax.jit(counted)(x))
        trial["modules"] = sum(traced)

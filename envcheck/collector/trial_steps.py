"""The trials themselves, in the worker that ``trials`` starts: what each framework is made to do."""

import time

from . import framework
from .worker.messages import Ended

_WORDS = 1800  # characters of an error


def work(params, tell):
    """params: {"framework", "device": "gpu" or "cpu"}."""
    module, why_not = framework.load(params["framework"])
    if module is None:
        raise Ended(why_not)
    tell.begin()
    for trial, function in _TRIALS[params["framework"]](module, params["device"]):
        tell.stage(trial, trial)
        started = time.monotonic()
        try:
            function()
        except BaseException as error:
            words = "%s: %s" % (type(error).__name__, error)
            # This version has another interface than the trial thinks: that says nothing about the GPU.
            other = isinstance(error, (AttributeError, TypeError, ImportError, NotImplementedError))
            outcome = "not-supported" if other else "failed"
            tell.result({"outcome": outcome, "error": words[:_WORDS]}, trial)
        else:
            seconds = round(time.monotonic() - started, 3)
            tell.result({"outcome": "ok", "seconds": seconds}, trial)


def _convolutions(run_one):
    """(trial, function) for each convolution that is tried."""
    return [
        ("conv%dd %s" % (dimensions, precision), lambda d=dimensions, p=precision: run_one(d, p))
        for dimensions in (2, 3)
        for precision in ("float32", "float16")
    ]


def _tensorflow(tf, device):
    device = "/GPU:0" if device == "gpu" else "/CPU:0"
    if getattr(tf, "__version__", "").startswith("1."):
        return _convolutions(lambda d, p: _tensorflow_1(tf, device, d, p))

    def compiled():
        def step(x):
            return tf.reduce_sum(tf.sin(x) * x)

        try:
            function = tf.function(step, jit_compile=True)
        except TypeError:  # before 2.5
            function = tf.function(step, experimental_compile=True)
        with tf.device(device):
            float(function(tf.ones([64])).numpy())

    def convolved(dimensions, precision):
        with tf.device(device):
            image = tf.ones([1] + [8] * dimensions + [8], getattr(tf, precision))
            kernel = tf.ones([3] * dimensions + [8, 8], getattr(tf, precision))
            with tf.GradientTape() as tape:
                tape.watch([image, kernel])
                result = tf.reduce_sum(_tensorflow_convolution(tf, image, kernel, dimensions))
            for gradient in tape.gradient(result, [image, kernel]):
                gradient.numpy()

    return [("xla", compiled)] + _convolutions(convolved)


def _tensorflow_1(tf, device, dimensions, precision):
    with tf.Graph().as_default(), tf.device(device):
        image = tf.ones([1] + [8] * dimensions + [8], getattr(tf, precision))
        kernel = tf.ones([3] * dimensions + [8, 8], getattr(tf, precision))
        result = tf.reduce_sum(_tensorflow_convolution(tf, image, kernel, dimensions))
        gradients = tf.gradients(result, [image, kernel])
        config = tf.compat.v1.ConfigProto(gpu_options={"allow_growth": True})
        with tf.compat.v1.Session(config=config) as session:
            session.run(gradients)


def _tensorflow_convolution(tf, image, kernel, dimensions):
    convolve = tf.nn.conv2d if dimensions == 2 else tf.nn.conv3d
    return convolve(image, kernel, strides=[1] * (dimensions + 2), padding="SAME")


def _torch(torch, device):
    device = "cuda:0" if device == "gpu" else "cpu"

    def convolved(dimensions, precision):
        options = {"dtype": getattr(torch, precision), "device": device, "requires_grad": True}
        image = torch.ones([1, 8] + [8] * dimensions, **options)
        kernel = torch.ones([8, 8] + [3] * dimensions, **options)
        convolve = torch.nn.functional.conv2d if dimensions == 2 else torch.nn.functional.conv3d
        convolve(image, kernel, padding=1).sum().backward()
        float(image.grad.sum()) + float(kernel.grad.sum())

    return _convolutions(convolved)


def _jax(jax, device):
    place = jax.devices(device)[0]
    numpy = jax.numpy

    def compiled():
        x = jax.device_put(numpy.ones((64,)), place)
        float(jax.jit(lambda x: (numpy.sin(x) * x).sum())(x))

    def convolved(dimensions, precision):
        image = jax.device_put(numpy.ones([1, 8] + [8] * dimensions, precision), place)
        kernel = jax.device_put(numpy.ones([8, 8] + [3] * dimensions, precision), place)

        def loss(image, kernel):
            return jax.lax.conv(image, kernel, [1] * dimensions, "SAME").sum()

        for gradient in jax.jit(jax.grad(loss, (0, 1)))(image, kernel):
            gradient.block_until_ready()

    return [("xla", compiled)] + _convolutions(convolved)


_TRIALS = {"tensorflow": _tensorflow, "torch": _torch, "jax": _jax}

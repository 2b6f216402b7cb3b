"""Whether FP32 convolutions take their factors in as TF32: by bits that TF32 does not hold.

An image of a batch holds one signature vector (kernels/vectors.py) in every place, one term a channel; a
filter has the other factors at its centre and is zero elsewhere. Where the two vectors are the same, the
result is that vector's dot product and nothing else, all the more since a stride of 2 keeps Winograd and
Fourier transforms away. S1 and S1n have two terms, whose factors TF32 holds; their sum is cut by Tensor Cores
and rounded by CUDA cores.
"""

import array
import contextlib
import os
from fractions import Fraction

from ..kernels.failures import NotSupported
from ..kernels.vectors import VECTORS, Vector, encode, text
from .running import ranks, records
from .shared import convolving
from .shared.convolving import Shape

SYSTEM = "tf32"
FRAMEWORKS = ("tensorflow", "torch", "jax")
GPUS = 1
DEADLINE = 60.0

# Two sizes, since cuDNN may take a kernel without TF32 for one and not for the other.
_SHAPES = (Shape(2, 32, 128, 128, 15, 3, 2), Shape(2, 16, 512, 512, 7, 3, 2))
_SMALL = (Shape(2, 8, 16, 12, 9, 3, 2),)
# TF32 holds it, and FP16, whose fraction is as long, does not.
_RANGE = Vector("R", (Fraction(2) ** -30 * (1 + Fraction(1, 1024)),), (Fraction(1),), (0,), 16)
_VECTORS = [VECTORS[name] for name in ("T1", "T2", "T3", "S1", "S1n")] + [_RANGE]
_DIFFERENT = 4  # outputs of a vector that are reported
_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
_VARIABLES = (_OVERRIDE, "JAX_DEFAULT_MATMUL_PRECISION")
_SECONDS = 40.0


def run(framework, params, tell):
    """The default, the framework's switch, and where that does not end it the override, in a process."""
    capability = convolving.capability() if params["device"] == "gpu" else None
    if capability is not None and capability < convolving.FIRST["TF32"]:
        raise records.NotApplicable("compute capability %d.%d has no TF32" % capability)
    side = convolving.side_of(framework, params)
    absent = side.absent()
    if absent:
        raise records.CouldNotRun(absent)
    measure(side, tell)
    with tell.trial("%s=0" % _OVERRIDE, control=True) as trial:
        started = ranks.run(params, 1, _SECONDS, environ=lambda _rank: {_OVERRIDE: "0"})
        trial.update(ranks.answers(started)[0])


def measure(side, tell):
    with tell.trial("default") as trial:
        trial["switch"] = side.flag()
        trial["environment"] = ["%s=%s" % (n, os.environ[n]) for n in _VARIABLES if n in os.environ]
        trial.update(bits(side))
        with contextlib.suppress(NotSupported):
            trial["cudnn"] = side.cudnn()["version"]
    for before, (name, allowed) in enumerate((("switch off", False), ("switch on", True)), 1):
        with tell.trial(name, control=not allowed) as trial:
            side.set_tf32(allowed)
            trial["switch"] = side.flag()
            trial.update(bits(side, before))


def rank(framework, params, tell):
    return bits(convolving.side_of(framework, params))


def bits(side, before=0):
    """{"128 channels": ["T1 3F801800 x 3F800000 = 3F802000", …]}, of each size.

    before: how many settings this process has run. What a framework planned for a shape may be kept, with
    the switch as it was then, so each setting has a shape of its own.
    """
    found = {}
    for shape in _SHAPES if side.on_gpu else _SMALL:
        own = shape._replace(batch=shape.batch - before)
        found["%d channels" % shape.inputs] = lines(side, own)
    return found


def lines(side, shape):
    """One convolution, a line a vector: its terms, and every output that came, the most frequent first."""
    made = side.convolve(shape, "FP32", *_numbers(shape))[0]
    result = array.array("I", array.array("f", made).tobytes())
    length = shape.places[2]
    if len(result) != shape.batch * shape.outputs * length:
        raise ValueError("%d words came" % len(result))
    found = [{} for _ in _VECTORS]
    for n in range(shape.batch):
        for o in range(n % len(_VECTORS), shape.outputs, len(_VECTORS)):
            start = (n * shape.outputs + o) * length
            plane = result[start : start + length]
            counts = found[n % len(_VECTORS)]
            for word in set(plane):
                counts[word] = counts.get(word, 0) + plane.count(word)
    return [_line(vector, counts) for vector, counts in zip(_VECTORS, found)]


def _line(vector, counts):
    often = sorted(counts, key=lambda word: -counts[word])[:_DIFFERENT]
    terms = zip(*[[text(encode(v, "fp32"), "fp32") for v in some] for some in vector[1:3]])
    words = [text(word, "fp32") for word in often] + ["more"] * (len(counts) > _DIFFERENT)
    return "%s %s = %s" % (vector.name, " + ".join(map(" x ".join, terms)), " or ".join(words))


def _numbers(shape):
    """Images and filters: number n holds vector n, and they begin again after the last."""
    image, filter_, _result = shape.places
    images, filters, zeros = [], [], [0.0] * (filter_ // 2)
    for n in range(shape.batch):
        for value in _channels(n, _VECTORS[n % len(_VECTORS)].a, shape):
            images += [value] * image
    for o in range(shape.outputs):
        for value in _channels(o, _VECTORS[o % len(_VECTORS)].b, shape):
            filters += zeros + [value] + zeros
    return images, filters


def _channels(number, values, shape):
    """A number for each input channel."""
    found = [0.0] * shape.inputs
    for slot, value in zip(_VECTORS[number % len(_VECTORS)].slots, values):
        found[slot] = float(value)
    return found

"""Whether FP32 convolutions take their factors in as TF32: by bits that TF32 does not hold.

An image of a batch holds one signature vector (kernels/vectors.py) in every place, one term a channel; a
filter has the other factors at its centre and is zero elsewhere. Where the two vectors are the same, the
result is that vector's dot product and nothing else, all the more since a stride of 2 keeps Winograd and
Fourier transforms away (see convolutions): what FP32 holds and TF32 does not is there or gone. S1 and S1n
have two terms, whose factors TF32 holds; their sum is cut by Tensor Cores and rounded by CUDA cores.
"""

import array
import contextlib
import os
from fractions import Fraction

from ..kernels.vectors import VECTORS, Vector, encode, pack, text
from . import ranks, telling
from .convolutions import FIRST, Shape, places

# Two sizes, since cuDNN may take a kernel without TF32 for one and not for the other.
SHAPES = (Shape(2, 32, 128, 128, 29, 3, 2), Shape(2, 16, 512, 512, 15, 3, 2))
SMALL = (Shape(2, 8, 16, 12, 9, 3, 2),)
_MIB = 256  # what a GPU must have to spare for the larger of them, with cuDNN's workspace
# TF32 holds it, and FP16, whose fraction is as long, does not.
_RANGE = Vector("R", (Fraction(2) ** -30 * (1 + Fraction(1, 1024)),), (Fraction(1),), (0,), 16)
_VECTORS = [VECTORS[name] for name in ("T1", "T2", "T3", "S1", "S1n")] + [_RANGE]
_DIFFERENT = 4  # outputs of a vector that are told
_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
_VARIABLES = (
    _OVERRIDE,
    "JAX_DEFAULT_MATMUL_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
)
_SECONDS = 45.0  # for the process with the override, which imports the framework again


def run(side, params, tell):
    """Run all settings. side: as for convolutions.run."""
    capability = side.capability()
    if capability is not None and capability < FIRST["TF32"]:
        raise telling.NotApplicable("compute capability %d.%d has no TF32" % capability)
    # Before this process has a context: a GPU may be open to one process alone.
    with tell.trial("%s=0" % _OVERRIDE, control=True) as trial:
        (other,) = ranks.run(params, 1, _SECONDS, environ=lambda _rank: {_OVERRIDE: "0"})
        if other.answer is None:
            raise RuntimeError(other.reason)
        for key, value in sorted(other.answer.items()):
            trial[key] = value
    lacking = side.absent()
    if lacking:
        raise telling.CouldNotRun(lacking)
    with tell.trial("default") as trial:
        trial["switch"] = side.flag()
        trial["environment"] = ["%s=%s" % (n, os.environ[n]) for n in _VARIABLES if n in os.environ]
        for key, value in sorted(measure(side, params).items()):
            trial[key] = value
        with contextlib.suppress(Exception):  # where it has none, or one inside another library
            trial["cudnn"] = side.cudnn()["version"]
    for before, (name, allowed) in enumerate((("switch off", False), ("switch on", True)), 1):
        with tell.trial(name, control=not allowed) as trial:
            side.set_tf32(allowed)
            trial["switch"] = side.flag()
            for key, value in sorted(measure(side, params, before).items()):
                trial[key] = value


def rank(side, params):
    """The evidence of the default, in a process of its own with another environment."""
    lacking = side.absent()
    if lacking:
        raise telling.CouldNotRun(lacking)
    return measure(side, params)


def measure(side, params, before=0):
    """{"128 channels": ["T1 3F801800 x 3F800000 = 3F802000", …]}, of each size that there is room for.

    before: how many settings this process has run. What a framework planned for a shape may be kept, with
    the switch as it was then, so each setting has a shape of its own.
    """
    if not side.on_gpu:
        shapes = SMALL
    elif (params["memory_mib"] or _MIB) < _MIB:
        shapes = SHAPES[:1]
    else:
        shapes = SHAPES
    told = {}
    for shape in shapes:
        own = shape._replace(batch=shape.batch - before)
        told["%d channels" % shape.inputs] = lines(side, own)
    return told


def lines(side, shape):
    """One convolution, a line a vector: its terms, and every output that came, the most frequent first."""
    result = array.array("I")
    result.frombytes(side.words(shape, image(shape), filter_(shape)))
    _image, _kernel, length = places(shape)
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
    told = []
    for vector, counts in zip(_VECTORS, found):
        often = sorted(counts, key=lambda word: -counts[word])[:_DIFFERENT]
        terms = zip(*[[text(encode(v, "fp32"), "fp32") for v in some] for some in vector[1:3]])
        words = [text(word, "fp32") for word in often] + ["more"] * (len(counts) > _DIFFERENT)
        told.append(
            "%s %s = %s" % (vector.name, " + ".join(map(" x ".join, terms)), " or ".join(words))
        )
    return told


def image(shape):
    """The images as bytes: image n holds vector n, and begins again after the last."""
    size, _kernel, _result = places(shape)
    return b"".join(
        word * size
        for n in range(shape.batch)
        for word in _channels(_VECTORS[n % len(_VECTORS)].a, n, shape)
    )


def filter_(shape):
    """The filters as bytes, likewise."""
    _image, size, _result = places(shape)
    zeros = bytes(4 * (size // 2))
    return b"".join(
        zeros + word + zeros
        for o in range(shape.outputs)
        for word in _channels(_VECTORS[o % len(_VECTORS)].b, o, shape)
    )


def _channels(values, number, shape):
    """A word for each input channel."""
    slots = _VECTORS[number % len(_VECTORS)].slots
    words = [bytes(4)] * shape.inputs
    for slot, value in zip(slots, values):
        words[slot] = pack(encode(value, "fp32"), "fp32")
    return words

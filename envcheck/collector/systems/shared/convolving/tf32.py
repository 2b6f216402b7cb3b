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

from ....kernels.vectors import VECTORS, Vector, encode, pack, text
from ...running import ranks, records
from .. import convolving
from .reference import FIRST, Shape, places

# Two sizes, since cuDNN may take a kernel without TF32 for one and not for the other.
SHAPES = (Shape(2, 32, 128, 128, 29, 3, 2), Shape(2, 16, 512, 512, 15, 3, 2))
SMALL = (Shape(2, 8, 16, 12, 9, 3, 2),)
_MIB = 256  # what a GPU must have to spare for the larger of them, with cuDNN's workspace
# TF32 holds it, and FP16, whose fraction is as long, does not.
_RANGE = Vector("R", (Fraction(2) ** -30 * (1 + Fraction(1, 1024)),), (Fraction(1),), (0,), 16)
_VECTORS = [VECTORS[name] for name in ("T1", "T2", "T3", "S1", "S1n")] + [_RANGE]
_DIFFERENT = 4  # outputs of a vector that are told
_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
_TAKEN = ("busy or unavailable", "DEVICE_UNAVAILABLE", "devices are busy")
_VARIABLES = (
    _OVERRIDE,
    "JAX_DEFAULT_MATMUL_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
)
_SECONDS = 25.0  # for the work of each process


def run(params, tell):
    """Run the default and the framework's switch in one process, the override in another beside it."""
    capability = convolving.capability() if params["device"] == "gpu" else None
    if capability is not None and capability < FIRST["TF32"]:
        raise records.NotApplicable("compute capability %d.%d has no TF32" % capability)
    own, other = (_once_more(params, one) for one in _start(params, (False, True), tell))
    if own.answer is None:
        raise records.CouldNotRun(own.reason)
    with tell.trial("%s=0" % _OVERRIDE, control=True) as trial:
        (answer,) = ranks.answers([other])
        trial.update(answer)
    for trial, key in own.answer:
        tell.pass_on(trial, key)


def _start(params, overrides, tell=None):
    """A process for each: with the override, or with the environment as it is."""
    return ranks.run(
        params,
        len(overrides),
        _SECONDS if tell is not None else 2 * _SECONDS,  # the import counts, too
        environ=lambda rank: {_OVERRIDE: "0"} if overrides[rank] else {},
        more=lambda rank: {"override": overrides[rank]},
        tell=tell,
    )


def _once_more(params, rank):
    """The same alone, where it found the GPU taken: it may be open to one process at a time."""
    if rank.answer is not None or not any(word in rank.reason for word in _TAKEN):
        return rank
    return _start(params, (bool(rank.number),))[0]


def rank(side, params):
    """With the override: the evidence of the default. Without: the records of all trials."""
    lacking = side.absent()
    if lacking:
        raise records.CouldNotRun(lacking)
    if params["override"]:
        return measure(side, params)
    kept = records.KeptTrials()
    with kept.trial("default") as trial:
        trial["switch"] = side.flag()
        trial["environment"] = ["%s=%s" % (n, os.environ[n]) for n in _VARIABLES if n in os.environ]
        trial.update(measure(side, params))
        with contextlib.suppress(Exception):  # where it has none, or one inside another library
            trial["cudnn"] = side.cudnn()["version"]
    for before, (name, allowed) in enumerate((("switch off", False), ("switch on", True)), 1):
        with kept.trial(name, control=not allowed) as trial:
            side.set_tf32(allowed)
            trial["switch"] = side.flag()
            trial.update(measure(side, params, before))
    return kept.trials


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

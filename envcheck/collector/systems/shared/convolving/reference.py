"""Convolutions whose right result is known: the numbers, a reference in plain integers, and the trials.

The inputs are small integers. Whatever order a kernel sums in, and in FP16 too, every sum on its way is an
integer that its type holds exactly, so the result is exact or wrong. That holds for kernels that multiply
and add what they are given; those of Winograd and by Fourier transforms, which round, need a stride of 1
(NVIDIA's cuDNN API reference, tables of cudnnConvolutionForward and its backward passes). The stride is 2
therefore, but in one trial, in FP32, whose results must lie next to the right integer: Winograd's largest
tile, F(4x4, 3x3), is off by some 1e-4 there, computed in a simulation, and by 0.6 with 10-bit fractions.

One case has random 24-bit significands. A sum of n products, in any order, is off by at most
n u / (1 - n u) times the sum of the products' magnitudes (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd edition, section 3.1); u is 2^-23 here, one unit in the last place, so that sums may be
truncated. TF32 rounds each factor first, by at most 2^-10 of it: 2^-9 + 2^-20 of each product.
"""

from collections import namedtuple
from fractions import Fraction
from math import ldexp

from ....kernels.failures import NotSupported
from ...running import records

FORWARD, INPUT, FILTER = PASSES = ("forward", "input gradient", "filter gradient")
# The first compute capability with the type; as products.FIRST, but that FP16 is a type of all.
FIRST = {"TF32": (8, 0), "BF16": (8, 0)}

# edge: of the image, in each dimension; kernel: of the filter. No padding.
Shape = namedtuple("Shape", "dimensions batch inputs outputs edge kernel stride")
# numbers: of the image, the filter and the result's gradient, each a flat list in the order batch or
# outputs, channels, places. Their values are these times 2 to the scale.
Case = namedtuple("Case", "shape image filter gradient scale")
# values: exact, of the three passes, each a flat list; magnitudes: of each, the sum of its products'.
Right = namedtuple("Right", "values magnitudes terms")
Trial = namedtuple("Trial", "name type case")

FLAT = Shape(2, 2, 8, 16, 9, 3, 2)
SOLID = Shape(3, 1, 8, 8, 7, 3, 2)
PLAIN = Shape(2, 1, 8, 16, 10, 3, 1)
_BITS = 24
_TYPES = ("FP32", "TF32", "FP16", "BF16")


def places(shape):
    """How many places an image's channel, a filter's and a result's have."""
    edge = (shape.edge - shape.kernel) // shape.stride + 1
    return shape.edge**shape.dimensions, shape.kernel**shape.dimensions, edge**shape.dimensions


def integers(shape, seed=1):
    """The Case with numbers from -2 to 2, the same each time."""
    return _case(shape, seed, lambda word: word % 5 - 2, 0)


def significands(shape, seed=1):
    """The Case with numbers of 24 bits, between -1 and 1."""
    return _case(shape, seed, lambda word: (word | 1) - (1 << _BITS - 1), 1 - _BITS)


def floats(case):
    """The image, the filter and the result's gradient as FP32 holds them."""
    return [
        [ldexp(number, case.scale) for number in numbers]
        for numbers in (case.image, case.filter, case.gradient)
    ]


def _case(shape, seed, number, scale):
    image, kernel, result = places(shape)
    counts = (
        shape.batch * shape.inputs * image,
        shape.outputs * shape.inputs * kernel,
        shape.batch * shape.outputs * result,
    )
    words = _random(seed)
    return Case(shape, *[[number(next(words)) for _ in range(count)] for count in counts], scale)


def _random(seed):
    """24-bit words, by a linear congruence modulo 2^64 (Knuth's MMIX), of which the upper bits are taken."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        yield state >> 64 - _BITS


def right(case):
    """The Right of a Case: convolutions as deep learning has them, without turning the filter round."""
    shape = case.shape
    image, kernel, result = places(shape)
    reach = _reach(shape)
    x = _rows(case.image, image)  # by batch and input channel
    w = _rows(case.filter, kernel)  # by output and input channel
    g = _rows(case.gradient, result)  # by batch and output channel
    values, magnitudes = [], []
    for sign in (int, abs):
        a, b, c = ([[sign(v) for v in row] for row in rows] for rows in (x, w, g))
        made = (
            _forward(shape, a, b, reach),
            _to_image(shape, b, c, reach),
            _to_filter(shape, a, c, reach),
        )
        (magnitudes if sign is abs else values).extend(made)
    terms = shape.inputs * kernel, shape.outputs * kernel, shape.batch * result
    return Right(values, magnitudes, terms)


def _rows(numbers, length):
    return [numbers[start : start + length] for start in range(0, len(numbers), length)]


def _reach(shape):
    """For each place of the filter, the places of the image that it meets, in the result's order."""
    edge = (shape.edge - shape.kernel) // shape.stride + 1

    def all_places(size):
        found = [()]
        for _ in range(shape.dimensions):
            found = [place + (i,) for place in found for i in range(size)]
        return found

    def index(place):
        flat = 0
        for i in place:
            flat = flat * shape.edge + i
        return flat

    return [
        [index([shape.stride * i + j for i, j in zip(out, tap)]) for out in all_places(edge)]
        for tap in all_places(shape.kernel)
    ]


def _forward(shape, x, w, reach):
    made = []
    for n in range(shape.batch):
        for o in range(shape.outputs):
            total = [0] * len(reach[0])
            for c in range(shape.inputs):
                plane = x[n * shape.inputs + c]
                for weight, met in zip(w[o * shape.inputs + c], reach):
                    if weight:
                        total = [t + weight * plane[i] for t, i in zip(total, met)]
            made += total
    return made


def _to_image(shape, w, g, reach):
    made = []
    for n in range(shape.batch):
        for c in range(shape.inputs):
            total = [0] * shape.edge**shape.dimensions
            for o in range(shape.outputs):
                gradient = g[n * shape.outputs + o]
                for weight, met in zip(w[o * shape.inputs + c], reach):
                    if weight:
                        for value, i in zip(gradient, met):
                            total[i] += weight * value
            made += total
    return made


def _to_filter(shape, x, g, reach):
    made = []
    for o in range(shape.outputs):
        for c in range(shape.inputs):
            for met in reach:
                made.append(
                    sum(
                        value * x[n * shape.inputs + c][i]
                        for n in range(shape.batch)
                        for value, i in zip(g[n * shape.outputs + o], met)
                    )
                )
    return made


def compared(case, known, results):
    """What a convolution's results are beside the right ones, as a trial's evidence.

    known: the Right. results: of the passes, each a flat list of floats. outputs: how many there are;
    differ: how many of them are not exact, or, of random significands, off by more than FP32 explains; far:
    how many are not next to the right integer; largest: the largest deviation. first: one that differs, in
    words; differ in: the passes with such ones. share and share tf32, of random significands: the largest
    deviation beside what FP32, and TF32, explain.
    """
    step = Fraction(2) ** (2 * case.scale)
    told = {"outputs": 0, "differ": 0, "far": 0}
    largest, share, wide, differing = Fraction(0), Fraction(0), Fraction(0), []
    for name, values, magnitudes, terms, got in zip(
        PASSES, known.values, known.magnitudes, known.terms, results
    ):
        if len(got) != len(values):
            raise ValueError("%s: %d numbers came, not %d" % (name, len(got), len(values)))
        told["outputs"] += len(values)
        for place, (value, magnitude, came) in enumerate(zip(values, magnitudes, got)):
            exact = value * step if case.scale else value
            if came == exact:
                continue
            off = abs(Fraction(came) - exact) if came - came == 0 else None
            if off is not None:
                largest = max(largest, off)
            if off is not None and case.scale:
                narrow = _explained(terms, magnitude * step, 0)
                share = max(share, off / narrow)
                wide = max(wide, off / _explained(terms, magnitude * step, _TF32))
                if off <= narrow:
                    continue
            told["differ"] += 1
            told["far"] += off is None or 2 * off >= 1
            told.setdefault("first", "%s, place %d: %.9g, not %.9g" % (name, place, came, exact))
            if off is None:
                told["no_numbers"] = told.get("no_numbers", 0) + 1
            if name not in differing:
                differing.append(name)
    told["largest"] = float(largest)
    if case.scale:
        told["share"], told["share_tf32"] = float(share), float(wide)
    if differing:
        told["differ_in"] = differing
    return told


_U = Fraction(1, 1 << 23)
_TF32 = Fraction(1, 1 << 9) + Fraction(1, 1 << 20)


def _explained(terms, magnitude, factors):
    """By how much a sum may be off. factors: how far a product may be from that of the true factors."""
    return ((1 + factors) * (1 + terms * _U / (1 - terms * _U)) - 1) * magnitude


def trials():
    """All Trials, the plainest first.

    What a framework planned for a shape may be kept, with the switch for TF32 as it was then: TF32 has
    shapes of its own, and so has the case that shows it.
    """
    cases = {shape: integers(shape) for shape in (FLAT, SOLID)}
    fewer = {shape: integers(shape._replace(outputs=shape.outputs - 4)) for shape in cases}
    found = []
    for shape in (FLAT, SOLID):
        for kind in _TYPES:
            case = (fewer if kind == "TF32" else cases)[shape]
            found.append(Trial("%dD %s" % (shape.dimensions, kind), kind, case))
    found.append(Trial("2D FP32, stride 1", "FP32", integers(PLAIN)))
    found.append(Trial("2D FP32, 24-bit numbers", "FP32", significands(FLAT._replace(batch=1))))
    return found


def run(side, tell):
    """Run all trials. side: a framework's, one of the package convolving."""
    lacking = side.absent()
    if lacking:
        raise records.CouldNotRun(lacking)
    capability = side.capability()
    references, ran_by = {}, {}
    with tell.trial("nothing convolved yet", control=True) as trial:
        trial["cudnn_libraries"] = len(side.cudnn_files())
    for name, kind, case in trials():
        with tell.trial(name) as trial:
            if capability is not None and capability < FIRST.get(kind, (0, 0)):
                raise NotSupported("compute capability %d.%d has no %s" % (capability + (kind,)))
            if kind == "TF32" and not side.on_gpu:
                raise NotSupported("a CPU has no TF32")
            try:
                results = side.convolve(case.shape, kind, *floats(case))
            except Exception as error:
                if lacks(error):
                    raise NotSupported(records.one_line(error))
                raise
            if kind in ("FP32", "TF32") and side.tf32:
                trial["tf32"] = side.tf32
            if id(case) not in references:
                references[id(case)] = right(case)
            trial.update(compared(case, references[id(case)], results))
            if not ran_by:
                ran_by = side.ran_by()
                trial.update(ran_by)
    side.without_cudnn(tell)
    with tell.trial("cuDNN") as trial:
        trial.update(side.cudnn())
        trial["cudnn_libraries"] = len(side.cudnn_files())


def lacks(error):
    """Whether an exception says that this build has no such convolution for this type and device."""
    words = "%s: %s" % (type(error).__name__, error)
    return isinstance(error, NotImplementedError) or any(
        one in words
        for one in (
            "No OpKernel was registered",
            "no supported kernel for",
            "not implemented for",
            "Could not find device for node",
        )
    )

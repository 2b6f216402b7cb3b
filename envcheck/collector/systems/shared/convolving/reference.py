"""Convolutions whose right result is known: small integers, and a reference in plain integers.

Whatever order a kernel sums in, and in FP16 too, every sum on its way is an integer that its type holds
exactly, so the result is exact or wrong. The stride is 2, since kernels of Winograd and by Fourier
transforms, which round, need a stride of 1 (NVIDIA's cuDNN API reference, cudnnConvolutionForward).
"""

from itertools import product

from . import Shape

PASSES = ("forward", "input gradient", "filter gradient")
FLAT = Shape(2, 2, 8, 16, 9, 3, 2)
SOLID = Shape(3, 1, 8, 8, 7, 3, 2)


def integers(shape):
    """The image, the filter and the result's gradient: numbers from -2 to 2, the same each time."""
    state, found = 1, []
    for size, places in zip(shape.sizes, shape.places):
        numbers = []
        for _ in range(size[0] * size[1] * places):
            # A linear congruence modulo 2^64 (Knuth's MMIX), of which the upper bits are taken.
            state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
            numbers.append((state >> 40) % 5 - 2)
        found.append(numbers)
    return found


def right(shape, image, filter_, gradient):
    """Of the three passes, each a flat list: convolutions without turning the filter round."""
    planes, edge = shape.places, shape.sizes[2][-1]
    met = []  # (place of the result, of the filter, of the image)
    for out in product(range(edge), repeat=shape.dimensions):
        for tap in product(range(shape.kernel), repeat=shape.dimensions):
            there = [shape.stride * i + j for i, j in zip(out, tap)]
            met.append((_index(out, edge), _index(tap, shape.kernel), _index(there, shape.edge)))
    y, dx, dw = [0] * len(gradient), [0] * len(image), [0] * len(filter_)
    channels = range(shape.batch), range(shape.outputs), range(shape.inputs)
    for n, o, c in product(*channels):
        at_image = (n * shape.inputs + c) * planes[0]
        at_filter = (o * shape.inputs + c) * planes[1]
        at_result = (n * shape.outputs + o) * planes[2]
        for p, t, i in met:
            p, t, i = at_result + p, at_filter + t, at_image + i
            y[p] += image[i] * filter_[t]
            dx[i] += filter_[t] * gradient[p]
            dw[t] += image[i] * gradient[p]
    return y, dx, dw


def _index(place, size):
    flat = 0
    for i in place:
        flat = flat * size + i
    return flat


def compared(known, results):
    """Evidence: how many outputs there are, how many are not exact, the first of those, and the passes."""
    found, passes = {"outputs": 0, "differ": 0}, []
    for name, values, came in zip(PASSES, known, results):
        if len(came) != len(values):
            raise ValueError("%s: %d numbers came, not %d" % (name, len(came), len(values)))
        wrong = [place for place, value in enumerate(values) if came[place] != value]
        found["outputs"] += len(values)
        found["differ"] += len(wrong)
        if wrong:
            passes.append(name)
            first = "%s, place %d: %.9g, not %d"
            found.setdefault("first", first % (name, wrong[0], came[wrong[0]], values[wrong[0]]))
    if passes:
        found["differ_in"] = passes
    return found

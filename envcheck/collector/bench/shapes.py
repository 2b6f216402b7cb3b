"""Products and convolutions of many shapes, around round numbers: what each takes, and its kernels.

In the framework's own words (kernels/framework_*.py), random numbers, one process for all shapes; each
round has all of them in turn, so that a clock that falls falls for all.
"""

import time

from ..facts import unavailable
from ..kernels import cupti, framework_jax, framework_tensorflow, framework_torch
from ..kernels.adapter import explain
from ..kernels.failures import NotSupported
from ..worker.messages import one_line

MODEL = "shapes"  # of a row that runs them
# What the edge is, beside a round number: each multiple once, the number itself, and one below it.
BESIDE = (-1, 0, 1, 2, 4, 8, 16, 32, 64)
_SMALL_BESIDE = (-1, 0, 1, 8, 16)
_LONG = 65536  # rows of products whose other sides are small: a layer of a network over a batch
_IMAGES, _KERNEL = 32, 3
# (round number, pixels on a side): fewer channels have larger images, as in a network.
_PIXELS = ((64, 56), (256, 28), (1024, 14))
_PRODUCTS = (64, 1024, 4096)
_SMALL = 64
SECONDS = 0.05  # of a repetition, about
_SMALL_SECONDS = 0.01
BUDGET = 150.0  # seconds for all of it: shapes that come later have fewer repetitions, or none
_MOST_KERNELS = 8
_MOST = 10000  # operations of a repetition
_SETTINGS = {"fp32": "switch-off", "tf32": "switch-on", "half": "half"}
_TYPES = {"": ("fp32", "float32"), "float16": ("fp16", "float16"), "bfloat16": ("bf16", "bfloat16")}


def planned(small):
    """(operation, edge, round number, sizes) of all shapes."""
    found, some = [], _SMALL_BESIDE if small else BESIDE
    for around in (_SMALL,) if small else _PRODUCTS:
        for beside in some:
            edge = around + beside
            rows = edge if around > _SMALL else 1024 if small else _LONG
            found.append(("product", edge, around, [rows, edge, edge]))
    for around, pixels in ((_SMALL, 14),) if small else _PIXELS:
        for beside in some:
            edge, images = around + beside, 2 if small else _IMAGES
            found.append(("convolution", edge, around, [images, pixels, edge, edge, _KERNEL]))
    return found


def build(framework, row, place, clock=time.monotonic):
    """What child.py runs, a round a step. Raises NotSupported where the framework has no such device."""
    return ShapesAtWork(_adapter(framework, row, place), row, place.device == "gpu", clock)


def _adapter(framework, row, place):
    gpu = place.device == "gpu"
    if row["style"] == "torch":
        made = framework_torch.adapter(framework, "cuda:0" if gpu else "cpu")
    elif row["style"] == "jax":
        made = framework_jax.adapter(framework, "gpu" if gpu else "cpu")
    else:
        made = framework_tensorflow.adapter(framework, "/GPU:0" if gpu else "/CPU:0")
    lacking = made.absent() if gpu or row["style"] == "jax" else None
    if lacking is not None:
        raise NotSupported(lacking)
    return made


class ShapesAtWork(object):
    """A Training (collector/bench/__init__.py) that trains nothing: a step is a round of all shapes."""

    parameters = 0

    def __init__(self, adapter, row, on_gpu, clock):
        self._adapter, self._on_gpu, self._clock = adapter, on_gpu, clock
        self._setting = self._chosen(_SETTINGS[row["precision"]])
        self._type, dtype = _TYPES[row["half"]]
        self._seconds = _SMALL_SECONDS if row["small"] else SECONDS
        self._until = clock() + BUDGET
        self._prepared = False
        self._unseen = None if on_gpu else unavailable("absent", "it ran on the CPU")
        self._shapes = [
            ShapeAtWork(*one, dtype=dtype, kernels=unavailable("not-collected"))
            for one in planned(row["small"])
        ]

    def _chosen(self, setting):
        """The switch as it is wanted; as it is, where this version has none and TF32 is its default."""
        try:
            self._adapter.switch(setting)
        except NotSupported:
            if setting != "switch-on":
                raise
            return "default"
        return setting

    def run(self, steps):
        for _round in range(steps):
            if not self._prepared:
                self._each(self._prepare)
                self._prepared = True
            self._each(self._time)
        return 0

    def _each(self, do):
        for one in self._shapes:
            if one.told["reason"]:
                continue
            if self._clock() >= self._until:
                if not one.told["seconds"]:
                    one.told["reason"] = "no time left (%g s were given)" % BUDGET
                continue
            try:
                do(one)
            except Exception as error:
                function = "the %s" % one.told["operation"]
                one.told["reason"] = one_line(": ".join(explain(error, function)))
                one.work = None  # with its memory

    def _prepare(self, one):
        """Compiled, chosen and planned for this shape, and its kernels named."""
        make = getattr(self._adapter, one.told["operation"])
        one.work = make(self._setting, self._type, tuple(one.told["sizes"]))
        one.work.once()
        one.work.once()
        one.told["kernels"] = self._kernels(one.work)
        took = one.work.seconds(2) / 2
        if took < self._seconds / 16:
            took = one.work.seconds(8) / 8
        one.count = max(1, min(_MOST, round(self._seconds / max(took, 1e-7))))
        one.work.seconds(one.count)  # a session plans for each count of its own

    def _time(self, one):
        one.told["seconds"].append(one.work.seconds(one.count) / one.count)

    def _kernels(self, work):
        if self._unseen is not None:
            return self._unseen
        built = str(self._adapter.built_cuda() or "").partition(".")[0]
        with cupti.kernel_names(None, int(built) if built.isdecimal() else None) as seen:
            work.once()
        if isinstance(seen.found, list):
            return seen.found[:_MOST_KERNELS]
        if seen.found["unavailable"] != "absent":
            self._unseen = seen.found  # it will not be seen of the others either
        return seen.found

    def shapes(self):
        """The ShapeRates so far."""
        return [one.told for one in self._shapes]

    def evidence(self):
        return {"setting": self._adapter.call(self._setting), "timer": self._adapter.timer}

    def memory(self):
        return {}


class ShapeAtWork(object):
    def __init__(self, operation, edge, around, sizes, dtype, kernels):
        self.told = {
            "operation": operation,
            "sizes": sizes,
            "edge": edge,
            "around": around,
            "dtype": dtype,
            "seconds": [],
            "kernels": kernels,
            "reason": "",
        }
        self.work = None  # a Product
        self.count = 1  # of a repetition

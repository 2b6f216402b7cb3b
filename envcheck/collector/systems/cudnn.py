"""Convolutions in each framework, against a reference: 2D and 3D, each type, forward and backward."""

from ..kernels.failures import NotSupported
from .running import records
from .shared import convolving
from .shared.convolving import reference

SYSTEM = "cudnn"
FRAMEWORKS = ("tensorflow", "torch", "jax")
GPUS = 1
DEADLINE = 60.0  # XLA compiles each of them

_LACKS = (
    "No OpKernel was registered",
    "no supported kernel for",
    "not implemented for",
    "Could not find device for node",
)


def run(framework, params, tell):
    measure(convolving.side_of(framework, params), tell)


def measure(side, tell):
    absent = side.absent()
    if absent:
        raise records.CouldNotRun(absent)
    capability = convolving.capability() if side.on_gpu else None
    with tell.trial("nothing convolved yet", control=True) as trial:
        trial["cudnn_libraries"] = len(side.cudnn_files())
    for shape in (reference.FLAT, reference.SOLID):
        for kind in convolving.TYPES:
            with tell.trial("%dD %s" % (shape.dimensions, kind)) as trial:
                _convolve(trial, side, shape, kind, capability)
                trial["cudnn"] = side.by_cudnn()
    with tell.trial("cuDNN") as trial:
        trial.update(side.cudnn())
        trial["cudnn_libraries"] = len(side.cudnn_files())


def _convolve(trial, side, shape, kind, capability):
    if capability is not None and capability < convolving.FIRST.get(kind, (0, 0)):
        raise NotSupported("compute capability %d.%d has no %s" % (capability + (kind,)))
    if kind == "TF32":
        if not side.on_gpu:
            raise NotSupported("a CPU has no TF32")
        # What a framework planned for a shape may be kept, with the switch as it was then.
        shape = shape._replace(outputs=shape.outputs - 4)
    if side.on_gpu and kind in ("FP32", "TF32"):
        try:
            side.set_tf32(kind == "TF32")
        except NotSupported:
            if kind == "TF32":
                raise
    numbers = reference.integers(shape)
    try:
        results = side.convolve(shape, kind, *numbers)
    except Exception as error:
        words = "%s: %s" % (type(error).__name__, error)
        if isinstance(error, NotImplementedError) or any(one in words for one in _LACKS):
            raise NotSupported(records.one_line(error))
        raise
    trial.update(reference.compared(reference.right(shape, *numbers), results))

"""The rows of each WHAT, as one GPU (or the CPU) would run them: model, modes, batches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from ..facts.base import known
from ..facts.bench import LeftOut
from . import shapes
from .making import (
    Planned,
    PlannedRow,
    amp,
    fits,
    halved,
    largest,
    largest_that_fits,
    make,
    modes,
    timed,
)
from .places import BenchPlace
from .request import BenchRequest

RESNET_BATCHES = (128, 256, 512)
PARITY_STEPS = 300
SMALL_STEPS = 60  # of parity, on a CPU


def rows_of(what: str, place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    """Rows of one WHAT, and what of it is left out; raises BatchTooLarge."""
    yield from _OF[what](place, request)


def _resnet50(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    image = 224 if place.gpus else 32
    if not place.gpus:
        yield from timed(place, request, "resnet50", "resnet50", (8,), rank=1, image=image)
        yield from _reading(place, request, 8)
        return
    main = resnet_main(place, request)
    batches = sorted({main, *_resnet_batches(place)})
    yield from timed(
        place, request, "resnet50", "resnet50", batches, compiled=True, main=main, image=image
    )
    if request.inference:
        yield from _tensorrt(place, main)
    elif request.batch is None:
        yield from largest(place, "resnet50", "resnet50", batches[-1], image=image)
    yield from _reading(place, request, main)


def _resnet_batches(place: BenchPlace) -> list[int]:
    """Those of 128, 256 and 512 that fit with AMP; where none does, the largest below that fits."""
    template = make(place, "resnet50", "resnet50", "", image=224, **amp(place))
    having = [
        batch
        for batch in RESNET_BATCHES
        if fits(place, msgspec.structs.replace(template, batch=batch))
    ]
    return having or [largest_that_fits(place, (64, 32, 16, 8), template)]


def resnet_main(place: BenchPlace, request: BenchRequest) -> int:
    """The batch of rows that are compared most: 256, or the largest below that fits in 32 bits, too."""
    if request.batch is not None:
        return request.batch
    template = make(place, "resnet50", "resnet50", "", image=224)
    return largest_that_fits(place, (256, 128, 64, 32, 16, 8), template)


def _tensorrt(place: BenchPlace, batch: int) -> Iterator[Planned]:
    name = f"resnet50 forward amp tf-trt {batch}"
    if place.framework.name != "tensorflow":
        return
    if known(place.framework.tensorrt_build) is False:
        yield LeftOut(name, f"{place.title} was built without TensorRT")
        return
    fields = {**amp(place), "scaler": "", "train": False, "tensorrt": True}
    group = f"resnet50 forward {batch}"
    row = make(place, "resnet50", "resnet50", name, image=224, batch=batch, group=group, **fields)
    yield PlannedRow(row)


def _reading(place: BenchPlace, request: BenchRequest, batch: int) -> Iterator[Planned]:
    """ResNet-50 with images that are read, beside the same with data that is there already."""
    if not request.folder or request.inference:
        return
    if place.style != "keras":
        why = "images are read in TensorFlow 2 alone, through tf.data and DALI"
        yield LeftOut("resnet50 with images from --data", why)
        return
    ways: list[Literal["tf.data", "dali"]] = ["tf.data"]
    if any(name.startswith("nvidia-dali-") for name in place.packages):
        ways.append("dali")
    mode = next((one for one in reversed(modes(place)) if not one.why_not), None)
    for way in ways if mode is not None else ():
        assert mode is not None
        name = f"resnet50 {mode.label} {batch} {way}"
        row = make(
            place,
            "resnet50",
            "resnet50",
            name,
            image=224 if place.gpus else 32,
            batch=batch,
            data=way,
            group=f"resnet50 {batch}",
            **mode.fields,
        )
        yield PlannedRow(row)


def _mnist(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    if request.inference:
        yield LeftOut("mnist forward", "its rows are about training: an epoch, and the accuracy")
        return
    batch = request.batch or 128
    yield from timed(place, request, "mnist", "mnist", (batch,), image=28)
    if not place.gpus:
        return
    without = place.why_not("amp")
    if place.style == "keras" and not without:
        fields = {**amp(place), "image": 28, "batch": batch, "group": f"mnist {batch}"}
        rewrite = {**fields, "way": "rewrite"}
        yield PlannedRow(make(place, "mnist", "mnist", f"mnist amp rewrite {batch}", **rewrite))
        mirrored = {**fields, "together": "mirrored", "group": f"mnist {batch} mirrored"}
        yield PlannedRow(make(place, "mnist", "mnist", f"mnist amp mirrored {batch}", **mirrored))
    if request.batch is None:
        yield from largest(place, "mnist", "mnist", 4096, image=28)


def _bert(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    model = "bert-base"
    if not place.gpus:
        yield from timed(place, request, "bert", model, (4,), rank=3, length=32)
        return
    for length, most in ((128, 64), (512, 16)):
        batch = halved(place, model, most, length=length)
        yield from timed(place, request, "bert", model, (batch,), length=length)


def _unet(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    if not place.gpus:
        yield from timed(place, request, "unet", "unet-2d", (2,), rank=4, image=32)
        return
    batch = halved(place, "unet-2d", 8, image=512)
    yield from timed(place, request, "unet", "unet-2d", (batch,), image=512)


def _mlp(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    batch = 8192 if place.gpus else 64
    yield from timed(place, request, "mlp", "mlp", (batch,), rank=2)


def _parity(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    """Losses from one seed."""
    fields = {
        "image": 28,
        "batch": request.batch or (128 if place.gpus else 64),
        "steps": PARITY_STEPS if place.gpus else SMALL_STEPS,
        "group": "parity",
    }
    for mode in modes(place):
        name = f"parity {mode.label}"
        if mode.why_not:
            yield LeftOut(name, mode.why_not)
        else:
            yield PlannedRow(make(place, "parity", "mnist", name, **{**mode.fields, **fields}))


def _shapes(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    """A row a precision, whose process walks the shapes; FP32 where there are no Tensor Cores."""
    gpu = place.gpus[0].address if place.gpus else None
    asked = shapes.rows(place.style, gpu, small=gpu is None)
    here = [row for row in asked if not place.why_not(row.precision)]
    for row in asked:
        if row not in here:
            yield LeftOut(f"shapes {row.precision}", place.why_not(row.precision))
    for row in here or shapes.rows(place.style, None, small=False):
        yield PlannedRow(msgspec.structs.replace(row, name=f"shapes {row.precision}", gpus=[]))


def telling(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    """Where nobody asked for anything in particular: ResNet-50 in all modes at one batch, and BERT."""
    if not place.gpus:
        for what in ("resnet50", "mlp", "bert"):
            yield from rows_of(what, place, request)
        return
    ranks = {"amp": 0, "fp32": 1, "tf32": 2}
    at_main = msgspec.structs.replace(request, batch=resnet_main(place, request))
    for one in rows_of("resnet50", place, at_main):
        if isinstance(one, LeftOut):
            yield one
        else:
            label = one.row.precision if not one.row.compiled or place.style == "jax" else ""
            yield one._replace(rank=ranks.get(label, 3))
    for one in rows_of("bert", place, request):
        if isinstance(one, PlannedRow) and (one.row.length, one.row.precision) == (128, "amp"):
            yield one._replace(rank=4, each=False)


_OF: dict[str, Callable[[BenchPlace, BenchRequest], Iterator[Planned]]] = {
    "resnet50": _resnet50,
    "mnist": _mnist,
    "bert": _bert,
    "unet": _unet,
    "mlp": _mlp,
    "parity": _parity,
    "shapes": _shapes,
}

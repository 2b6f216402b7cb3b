"""The rows of each WHAT, as one GPU (or the CPU) would run them: model, modes, batches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ..facts.bench import LeftOut
from .making import Planned, PlannedRow, fits, halved, largest_that_fits, make, timed
from .places import BenchPlace
from .request import BenchRequest

_BATCHES = (128, 256, 512)  # of ResNet-50


def rows_of(what: str, place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    """Rows of one WHAT, and what of it is left out; raises BatchTooLarge."""
    yield from _OF[what](place, request)


def _resnet50(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    if not place.gpus:
        yield from timed(place, request, "resnet50", "resnet50", (8,), rank=1, image=32)
        return
    main = resnet_main(place, request)
    template = make(place, "resnet50", "resnet50", "", image=224, precision="amp", half=place.half)
    having = [
        batch for batch in _BATCHES if fits(place, msgspec.structs.replace(template, batch=batch))
    ]
    having = having or [largest_that_fits(place, (64, 32, 16, 8), template)]
    batches = sorted({main, *having})
    model = "resnet50"
    yield from timed(place, request, model, model, batches, compiled=True, main=main, image=224)


def resnet_main(place: BenchPlace, request: BenchRequest) -> int:
    """The batch of rows that are compared most: 256, or the largest below that fits in 32 bits, too."""
    if request.batch is not None:
        return request.batch
    template = make(place, "resnet50", "resnet50", "", image=224)
    return largest_that_fits(place, (256, 128, 64, 32, 16, 8), template)


def _mnist(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    yield from timed(place, request, "mnist", "mnist", (128,), image=28)


def _bert(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    if not place.gpus:
        yield from timed(place, request, "bert", "bert-base", (4,), rank=3, length=32)
        return
    for length, most in ((128, 64), (512, 16)):
        batch = halved(place, "bert-base", most, length=length)
        yield from timed(place, request, "bert", "bert-base", (batch,), length=length)


def _unet(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    if not place.gpus:
        yield from timed(place, request, "unet", "unet-2d", (2,), rank=4, image=32)
        return
    batch = halved(place, "unet-2d", 8, image=512)
    yield from timed(place, request, "unet", "unet-2d", (batch,), image=512)


def _mlp(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    yield from timed(place, request, "mlp", "mlp", (8192 if place.gpus else 64,), rank=2)


def telling(place: BenchPlace, request: BenchRequest) -> Iterator[Planned]:
    """Without WHAT: ResNet-50 in all modes at one batch, and BERT."""
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
}

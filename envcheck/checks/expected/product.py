"""A profile of several products: whether this machine is one of them."""

from __future__ import annotations

from ...attributes.values import gpus_counted
from ..driver_state import NO_GPUS
from ..reading import CouldNotRun, Skip, SnapshotView
from ..verdicts import Passed, Verdicts, check, fail
from .common import place, product_of, profile_of

_MOST = 12


UNKNOWN_PRODUCT = fail(
    "product-not-in-profile",
    "the profile has no machine like this one",
    "The profile has no machine like this one ({place}): this has {gpus}, and it knows {products}.",
    "Use a profile of this product, or write the baseline again with machines like this one.",
    "nvidia-smi -L",
)


@check(
    "EXP-012",
    title="The profile knows machines like this one",
    causes=[UNKNOWN_PRODUCT],
    about="A profile may have several products ([[products]]), each named by its GPUs. A machine is compared"
    " with the tables of its own product, or of the only product with other counts of the same GPUs.",
    sources=("the profile",),
    follows=NO_GPUS,
)
def product_is_known(view: SnapshotView) -> Verdicts:
    profile = profile_of(view)
    if not profile.products:
        raise Skip("the profile has no products ([[products]])")
    try:
        there = view.gpus
    except Skip as why:
        raise CouldNotRun(str(why)) from None
    product = product_of(view)
    if product is not None:
        yield Passed(f"compared with {product.name.value}")
        return
    names = [str(one.name.value) for one in profile.products]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    counted = gpus_counted(there) or "no GPU"
    yield UNKNOWN_PRODUCT.found(
        evidence=[view.evidence("machine.nvml.gpus", counted)],
        place=place(view),
        gpus=counted,
        products=f"{'; '.join(names[:_MOST])}{more}",
    )

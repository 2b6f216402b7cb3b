"""A profile of several products: whether this machine is one of them."""

from __future__ import annotations

from collections.abc import Iterator

from ...comparison.attributes import gpus_counted
from ...facts.missing import CouldNotRun, Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..driver_state import NO_GPUS
from ..registry import check
from .common import place, product_of, profile_of

_MOST = 12


@check(
    "EXP-012",
    title="The profile knows machines like this one",
    problem="the profile has no machine like this one",
    about="A profile may be of several products ([[products]], as `envcheck fleet baseline` writes it), each"
    " named by its GPUs. A machine is held against its own product's tables; one with fewer or more of the"
    " same GPUs against those, too, where no other product has them. A machine of none of them was held"
    " against nothing but what the profile says of all.",
    sources=("the profile",),
    follows=NO_GPUS,
)
def product_is_known(view: SnapshotView) -> Iterator[Verdict]:
    profile = profile_of(view)
    if not profile.products:
        raise Skip("the profile is of no product in particular ([[products]])")
    try:
        there = view.gpus
    except Skip as why:
        raise CouldNotRun(str(why)) from None
    product = product_of(view)
    if product is not None:
        yield Passed(f"held against {product.name.value}")
        return
    names = [str(one.name.value) for one in profile.products]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    counted = gpus_counted(there) or "no GPU"
    yield Finding(
        "fail",
        f"The profile has no machine like this one ({place(view, profile.products[0].name)}): this has"
        f" {counted}, and it knows {'; '.join(names[:_MOST])}{more}.",
        evidence=[view.evidence("machine.nvml.gpus", counted)],
        remedy=Remedy(
            "Hold it against a profile of its own product, or make the baseline again with machines like it.",
            ["nvidia-smi -L"],
        ),
    )

"""The check that holds a GPU against what its product is sold as: also where all peers are wrong alike."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.products import SoldAs, product
from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import NotKnown, Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Passed, Remedy, Verdict
from ..driver_state import NO_GPUS
from ..gpus import address_of, finding, judge_gpus
from ..peer_groups import is_vgpu
from ..registry import check

_MEMORY = 0.9  # of the product's: ECC of GDDR and the driver take up to 8 %
_POWER = 0.75  # of the product's: clouds and vendors order boards with somewhat lower defaults


@check(
    "GPU-026",
    title="The GPU has what its product has",
    problem="has less than its product",
    about="A GPU is held against what NVIDIA and others say of its product (envcheck's table): a fault that"
    " all GPUs of a machine share is not seen by comparing them. Much less memory than the product's is a"
    " failure; a default power limit under three quarters of the product's is a warning. NVLinks are judged"
    " by GPU-013, the PCIe link by GPU-010. Products that the table does not have are not judged, nor are"
    " virtual GPUs.",
    sources=("envcheck/data/products.csv",),
    follows=(*NO_GPUS, "GPU-021", "GPU-024"),
)
def gpu_is_its_product(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _product(view, gpu))


def _product(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    name = need(gpu.name, "the product's name")
    sold = product(name)
    if is_vgpu(gpu):
        raise Skip("a virtual GPU is a part of its product")
    if sold is None:
        raise NotKnown(f"what {name} has")
    found = [*_memory(view, gpu, sold), *_power(view, gpu, sold)]
    yield from found or [Passed(f"{name}: memory and default power limit are the product's")]


def _memory(view: SnapshotView, gpu: Gpu, sold: SoldAs) -> Iterator[Verdict]:
    total = known(gpu.memory_total_mib)
    if total is None or not sold.memory_gb or total >= _MEMORY * sold.memory_gb * 1024:
        return
    yield finding(
        view,
        "fail",
        gpu,
        f"It has {total} MiB of memory, its product {sold.memory_gb} GB: a part of the memory is missing.",
        "name memory_total_mib",
        Remedy(
            "Power the machine off and on; if the memory is still missing, have the board diagnosed by its"
            " vendor.",
            [f"nvidia-smi -q -d MEMORY,ROW_REMAPPER -i {address_of(gpu)}"],
        ),
        "has less memory than its product",
    )


def _power(view: SnapshotView, gpu: Gpu, sold: SoldAs) -> Iterator[Verdict]:
    default = known(gpu.power_default_limit_w)
    if default is None or not sold.power_w or default >= _POWER * sold.power_w:
        return
    yield finding(
        view,
        "warn",
        gpu,
        f"Its default power limit is {default:g} W, its product's {sold.power_w} W: under load its clocks"
        " stay far below the product's.",
        "name power_default_limit_w power_max_limit_w vbios",
        Remedy(
            "Ask the vendor whether the board was ordered so; if not, for the VBIOS that belongs to it.",
            ["nvidia-smi --query-gpu=pci.bus_id,vbios_version,power.default_limit --format=csv"],
        ),
        "has a lower default power limit than its product",
    )

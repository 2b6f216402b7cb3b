"""The check that compares a GPU with its product's figures: also if all peers have the same fault."""

from __future__ import annotations

from ...data.products import product
from ..gpus import found, gpu_check
from ..peer_groups import is_vgpu
from ..reading import Gpu, NotKnown, Skip, SnapshotView, known, need
from ..verdicts import Passed, Verdicts, fail, warn

_MEMORY = 0.9  # of the product's: ECC of GDDR and the driver take up to 8 %
_POWER = 0.75  # of the product's: clouds and vendors order boards with somewhat lower defaults

LESS_MEMORY = fail(
    "less-memory-than-product",
    "has less memory than its product",
    "It has {mib} MiB of memory, its product {gb} GB: a part of the memory is missing.",
    "Power the machine off and on; if the memory is still missing, have the board diagnosed by its vendor.",
    "nvidia-smi -q -d MEMORY,ROW_REMAPPER -i {gpu}",
)
LESS_POWER = warn(
    "less-power-than-product",
    "has a lower default power limit than its product",
    "Its default power limit is {own:g} W, its product's {sold:g} W: its clocks stay far lower.",
    "Ask the vendor whether the board was ordered this way; if not, ask for its VBIOS.",
    "nvidia-smi --query-gpu=pci.bus_id,vbios_version,power.default_limit --format=csv",
)


@gpu_check(
    "GPU-026",
    title="The GPU has what its product has",
    causes=(LESS_MEMORY, LESS_POWER),
    about="A GPU is compared with the published values of its product: comparing the GPUs of a machine does"
    " not show a fault that all of them share.",
    sources=["envcheck/data/products.csv"],
    follows=("GPU-021", "GPU-024"),
)
def gpu_is_its_product(view: SnapshotView, gpu: Gpu) -> Verdicts:
    name = need(gpu.name, "the product's name")
    sold = product(name)
    if is_vgpu(gpu):
        raise Skip("a virtual GPU is a part of its product")
    if sold is None:
        raise NotKnown(f"what {name} has")
    total, default = known(gpu.memory_total_mib), known(gpu.power_default_limit_w)
    short = []
    if total is not None and sold.memory_gb and total < _MEMORY * sold.memory_gb * 1024:
        fields = "name memory_total_mib"
        short += [found(view, LESS_MEMORY, gpu, fields, mib=total, gb=sold.memory_gb)]
    if default is not None and sold.power_w and default < _POWER * sold.power_w:
        fields = "name power_default_limit_w power_max_limit_w vbios"
        short += [found(view, LESS_POWER, gpu, fields, own=default, sold=sold.power_w)]
    yield from short
    if not short:
        yield Passed(f"{name}: memory and default power limit are the product's")

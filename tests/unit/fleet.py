"""A fleet of simulated machines on which all is well: products × circumstances × driver branches."""

from __future__ import annotations

from collections.abc import Iterator

import h100
from fleet_machines import (
    contained,
    driver_side,
    kubernetes_node,
    machine,
    mig,
    single_in_vm,
    slurm,
    vgpu,
    virtual,
    wsl,
)
from fleet_products import BRANCHES, PRODUCTS, USUAL, gpu
from h100 import NOT_SUPPORTED
from msgspec.structs import replace
from whole import host

from envcheck.facts.gpu import MigInstance, NvLink
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot


def odd() -> Iterator[tuple[str, Snapshot]]:
    """Machines that look odd and are well."""
    named = {product.name: product for product in PRODUCTS}
    big, small = named["NVIDIA GeForce RTX 4090"], named["NVIDIA GeForce RTX 3060"]
    both = [gpu(big, 0, USUAL), gpu(small, 1, USUAL)]
    yield "an RTX 4090 beside an RTX 3060", machine(big, count=2, gpus=both)

    laptop = big._replace(
        name="NVIDIA GeForce RTX 4070 Laptop GPU", memory=8188, lanes=8, power=115
    )
    unsaid = dict.fromkeys(("power_limit_w", "power_default_limit_w"), NOT_SUPPORTED)
    yield "a laptop", machine(laptop, gpus=[gpu(laptop, 0, USUAL, **unsaid)])

    slow = gpu(small, 0, USUAL, pcie_width=4)
    slot = h100.pci_device(
        h100.ADDRESSES[0], device_id="10de:2504", link_width=4, slot_max_link_width=4
    )
    yield "a card in a slot of four lanes", machine(small, gpus=[slow], pci=Pci(devices=[slot]))

    card = named["NVIDIA A100 80GB PCIe"]
    links = [NvLink(link=n, active=True, crc_errors=0, replay_errors=0) for n in range(12)]
    idle = [replace(link, active=False) for link in links]
    pair = [gpu(card, n, USUAL, nvlinks=links) for n in range(2)]
    yield "two cards with NVLink bridges", machine(card, gpus=pair, count=2)
    four = [*pair, *(gpu(card, n, USUAL, nvlinks=idle) for n in (2, 3))]
    yield "bridges on two of four cards", machine(card, gpus=four, count=4)

    board = named["NVIDIA A100-SXM4-40GB"]._replace(switch=False)
    yield "a board of four modules without NVSwitch", machine(board, count=4)
    divided = [
        gpu(board, 0, USUAL, mig_enabled=True, mig_pending=True, nvlinks=idle,
            mig_instances=[MigInstance(gpu_instance=1, compute_instance=0, uuid="MIG-<uuid-1>")]),
        *(gpu(board, n, USUAL) for n in range(1, 8)),
    ]  # fmt: skip
    switched = named["NVIDIA A100-SXM4-40GB"]
    yield (
        "MIG on one of eight",
        machine(
            switched, gpus=divided, count=8, cuda=h100.cuda(divided[1:], driver_api_version="13.0")
        ),
    )

    rack = named["NVIDIA B200"]._replace(name="NVIDIA GB200", memory=189471, device_id="2941")
    member = {"fabric_cluster": "7b1c0e6c-3c5c-4d0e-9a43-6a8d53b1b0aa", "fabric_clique": 32766}
    yield (
        "four of a rack's GPUs",
        machine(
            rack,
            gpus=[gpu(rack, n, USUAL, **member) for n in range(4)],
            count=4,
            host=host(architecture="aarch64"),
            kernel=driver_side(rack, BRANCHES[USUAL][0], 4, services=[]),
        ),
    )

    busy = named["NVIDIA H100 80GB HBM3"]
    working = {
        "utilization_percent": 100, "performance_state": "P0", "clock_sm_mhz": 1755,
        "power_draw_w": 692.0, "clock_event_reasons": ["sw_power_cap"], "temperature_c": 66,
        "memory_temperature_c": 84,
    }  # fmt: skip
    at_work = [gpu(busy, n, USUAL, **working) for n in range(8)]
    yield "eight GPUs under full load", machine(busy, gpus=at_work, count=8)


def fleet() -> Iterator[tuple[str, Snapshot]]:
    """(name, Snapshot) of each machine."""
    yield from odd()
    for product in PRODUCTS:
        usual = min(USUAL, product.until)
        eight = 8 if product.module and product.links > 6 else 4
        yield f"{product.name}, alone", machine(product, usual)
        yield f"{product.name}, {eight}", machine(product, usual, eight)
        yield f"{product.name}, container", contained(product, usual)
        if not product.consumer:
            yield f"{product.name}, one in a VM", single_in_vm(product, usual)
            yield f"{product.name}, Slurm job", slurm(product, usual, eight)
            yield f"{product.name}, pod", contained(product, usual, "kubernetes")
            yield f"{product.name}, node of Kubernetes", kubernetes_node(product, usual, eight)
        if product.module:
            yield f"{product.name}, {eight} in a VM", virtual(product, usual, eight)
        if product.vgpu:
            yield f"{product.vgpu}", vgpu(product, usual)
        if product.mig:
            yield f"{product.name}, MIG", mig(product, usual)
        if product.consumer or product.name.startswith("NVIDIA RTX"):
            yield f"{product.name}, WSL", wsl(product, usual)
        for branch in BRANCHES:
            if product.since <= branch <= product.until and branch != usual:
                yield f"{product.name}, driver {branch}", machine(product, branch, eight)

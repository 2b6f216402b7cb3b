"""The simulated machines of `envcheck demo`, made of the builders that the tests use."""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent / "unit"))

import bench_told
import deep_working
import h100
import modes_machine
import modes_target
import tensor_runs
from whole import whole

from envcheck.bench.plan import plan
from envcheck.bench.request import BenchRequest
from envcheck.facts.base import Probe
from envcheck.facts.gpu import Gpu, NvLink
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Collector, Document, Snapshot
from envcheck.facts.target import Environment

FOLDER = Path(__file__).parents[1] / "envcheck" / "data" / "demos"

# What the redaction tokens of the builders stand for on these machines.
NAMES = {"<host-1>": "train-07", "<home-1>": "/home/ann", "<user-1>": "ann"}

# Where a probe has its facts from, for all of them that have no source of their own.
SOURCES = {
    "host": "/proc, /sys",
    "pci": "/sys/bus/pci/devices",
    "kernel": "/proc, /sys and /dev",
    "nvml": "NVML",
    "nvidia_smi": "nvidia-smi -q -x",
    "cuda": "libcuda.so.1",
    "containers": "container engines and toolkit",
    "network": "/sys/class/net, /sys/class/infiniband, NCCL's settings",
    "interpreter": "the interpreter itself",
    "environment": "the target's environment variables",
    "packages": "metadata in the directories of sys.path",
    "packaging_config": "pip's and uv's configuration files and variables",
    "loader": "dlopen in forked children of the target's interpreter",
    "tensorflow": "import tensorflow",
    "micro_kernels": "micro-kernels",
    "acceleration": "the systems, run",
    "bench": "the models, run",
}

IDLE: dict[str, Any] = {
    "memory_used_mib": 4,
    "memory_free_mib": 81018,
    "temperature_c": 31,
    "temperature_margin_c": 56,
    "memory_temperature_c": 38,
    "power_draw_w": 71.0,
    "clock_sm_mhz": 345,
    "clock_event_reasons": ["gpu_idle"],
    "utilization_percent": 0,
    "processes": [],
}


def idle(**changes: Any) -> list[Gpu]:
    """Eight H100s without work; ``changes`` are facts of one of them."""
    return [
        h100.gpu(n, **(IDLE | (changes if n == h100.VICTIM else {}))) for n in range(h100.COUNT)
    ]


def of(gpus: list[Gpu], target: Document | None = None, **probes: Any) -> Snapshot:
    seen = {"nvml": h100.nvml(gpus), "nvidia_smi": h100.smi(gpus), "cuda": h100.cuda(gpus)}
    return whole(target, **(seen | probes))


def healthy() -> Snapshot:
    return tensor_runs.with_micro_kernels(of(idle()), "tensorflow", cublas="12.5.3")


def heat() -> Snapshot:
    """All GPUs at work, so the micro-kernels leave them alone."""
    hot = {
        "clock_event_reasons": ["hw_slowdown", "hw_thermal_slowdown"],
        "clock_sm_mhz": 345,
        "temperature_c": 86,
        "temperature_margin_c": 1,
        "power_draw_w": 171.0,
        "memory_temperature_c": 88,
        "slowdown_hw_thermal_us": 1_260_000_000,
    }
    return of([h100.gpu(n, **(hot if n == h100.VICTIM else {})) for n in range(h100.COUNT)])


def odd() -> Snapshot:
    """A PCIe link at half its width, and two NVLinks down, on one GPU at work."""
    links = [
        NvLink(link=n, active=n not in (4, 5), crc_errors=0, replay_errors=0) for n in range(18)
    ]
    devices = [
        replace(device, link_width=8) if device.address == h100.ADDRESSES[h100.VICTIM] else device
        for device in h100.sections()["pci"].devices
    ]
    changes = {"pcie_width": 8, "nvlinks": links}
    gpus = [h100.gpu(n, **(changes if n == h100.VICTIM else {})) for n in range(h100.COUNT)]
    return of(gpus, pci=Pci(devices=devices))


def silent_systems() -> Snapshot:
    """All GPUs proven; clusters switched off by a variable, and a Horovod that was built without NCCL."""
    well = healthy()
    target = well.target
    assert target is not None and target.environment is not None
    environment = replace(
        target.environment, facts=Environment(variables={"TF_XLA_FLAGS": "--tf_xla_auto_jit=-1"})
    )
    return deep_working.looked(
        replace(well, target=replace(target, environment=environment)),
        deep_working.clustering(deep_working.UNCLUSTERED),
        deep_working.horovod(nccl=False, operations=["GLOO_ALLREDUCE"]),
    )


def bench() -> Snapshot:
    """ResNet-50 on eight GPUs, one of which is held back by heat while it trains."""
    well = of(idle())
    rows = plan(BenchRequest(what=["resnet50"]), well).rows
    return bench_told.benched(well, bench_told.trained(rows, slow=h100.ADDRESSES[h100.VICTIM]))


# name: what it shows in one line, and what makes it
DEMOS: dict[str, tuple[str, Callable[[], Snapshot]]] = {
    "healthy": ("8 × H100, healthy, all Tensor Core modes proven", healthy),
    "heat": ("one GPU of eight is throttled by heat", heat),
    "driver-update": (
        "the driver was updated, but its module was not reloaded",
        modes_machine.mismatch,
    ),
    "blind-tensorflow": (
        "TensorFlow sees no GPU: its CUDA wheels are missing",
        modes_target.no_and_cuda,
    ),
    "silent-systems": ("XLA and Horovod are on but do nothing", silent_systems),
    "bench": ("ResNet-50 on 8 × H100, one of which is throttled by heat", bench),
    "odd-machine": ("one GPU has fewer NVLinks and PCIe lanes than its peers", odd),
}


def wired(document: Document) -> Document:
    """With sockets and PCIe switches: two GPUs a switch, each with its adapter, four a socket."""
    if document.pci is None or document.pci.facts is None:
        return document
    above: dict[str, tuple[int, list[str]]] = {}
    for number, address in enumerate(h100.ADDRESSES):
        root = int(h100.ADDRESSES[number - number % 2][5:7], 16) - 6
        port = f"0000:{root + 2:02x}:{number % 2:02}.0"
        above[address] = (number // 4, [f"0000:{root:02x}:01.0", f"0000:{root + 1:02x}:00.0", port])
    devices = [
        replace(device, numa_node=above[device.address][0], bridges=above[device.address][1])
        if device.address in above
        else device
        for device in document.pci.facts.devices
    ]
    pci = replace(document.pci.facts, devices=devices)
    document = replace(document, pci=replace(document.pci, facts=pci))
    nvml = document.nvml.facts if document.nvml is not None else None
    if nvml is not None and isinstance(nvml.pairs, list):
        pairs = [
            replace(one, level=_level(above[one.first], above[one.second])) for one in nvml.pairs
        ]
        document = replace(document, nvml=replace(document.nvml, facts=replace(nvml, pairs=pairs)))
    network = document.network.facts if document.network is not None else None
    if network is None or not isinstance(network.rdma, list) or len(network.rdma) != h100.COUNT:
        return document
    rdma = [
        replace(
            adapter,
            address=f"{address[:5]}{int(address[5:7], 16) - 1:02x}:00.0",
            bridges=[*bridges[:2], f"{bridges[2][:-4]}{2 + number % 2:02}.0"],
            numa_node=node,
            link_gts=32.0,
            link_width=16,
            max_link_gts=32.0,
            max_link_width=16,
        )
        for number, (adapter, (address, (node, bridges))) in enumerate(
            zip(network.rdma, above.items(), strict=True)
        )
    ]
    facts = replace(network, rdma=rdma)
    return replace(document, network=replace(document.network, facts=facts))


def _level(first: tuple[int, list[str]], second: tuple[int, list[str]]) -> str:
    """As nvidia-smi topo calls the way between two GPUs."""
    if first[0] != second[0]:
        return "SYS"
    return "PIX" if first[1][:2] == second[1][:2] else "NODE"


def sourced(document: Document) -> Document:
    """With sources as the collector names them, and the collector's name."""
    probes = {
        name: replace(probe, sources={"*": SOURCES[name]})
        for name in document.__struct_fields__
        if isinstance(probe := getattr(document, name), Probe) and probe.facts is not None
    }
    return replace(document, collector=Collector(version="simulated", python="3.11.9"), **probes)


def build(name: str) -> bytes:
    """The Snapshot as it lies in the package: with names instead of redaction's tokens."""
    title, made = DEMOS[name]
    snapshot = made()
    snapshot = replace(
        snapshot,
        redacted=False,
        simulated=title,
        machine=sourced(wired(snapshot.machine)),
        target=snapshot.target and sourced(snapshot.target),
    )
    text = msgspec.json.encode(snapshot).decode()
    for token, value in NAMES.items():
        text = text.replace(token, value)
    text = re.sub(r"<uuid-(\d+)>", lambda n: str(uuid.uuid5(uuid.NAMESPACE_OID, n[1])), text)
    text = re.sub(r"<serial-(\d+)>", lambda n: f"165432{int(n[1]):07}", text)
    assert not re.search(r"<[a-z]+-\d+>", text)
    return text.encode() + b"\n"


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in DEMOS:
        (FOLDER / f"{name}.json").write_bytes(build(name))

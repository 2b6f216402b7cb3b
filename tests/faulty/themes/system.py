"""The system around the GPUs: disks, limits, shared memory, the network that NCCL takes."""

from __future__ import annotations

from world.contents import Library, Link
from world.machine import LIB, Machine
from world.pci import SWITCH, bridge, pci, switch_acs_on

from ..changes import both, files, machine
from ..model import Collection

FAULTS = Collection("network and system")
add = FAULTS.add


add(
    "the home directory's disk is full",
    lambda m: m.mounts.append(("/root", "size=8m,mode=700")),
    ("HOST-005", r"/root|<home", r"free|full|space|MiB", r"df|du|free|prune|XDG|space|another"),
)
add(
    "/dev/shm of 64 MiB in a container",
    machine(shm="size=64m"),
    ("HOST-008", r"/dev/shm|", r"64", r"--shm-size|--ipc|shm"),
    base="container",
)
add(
    "64 open files a process",
    lambda m: m.limits.update(RLIMIT_NOFILE=64),
    ("HOST-009", r"", r"\b64\b|open files", r"ulimit|nofile"),
)


HCA = {
    "node_type": "1: CA",
    "fw_ver": "28.39.1002",
    "hca_type": "MT4129",
    "board_id": "MT_0000000838",
}
PORT = {
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "rate": "400 Gb/sec (4X NDR)",
    "link_layer": "InfiniBand",
    "lid": "0x11",
    "sm_lid": "0x1",
}


def rdma(m: Machine, count: int = 2, **port: str) -> None:
    """ConnectX-7 below one PCIe switch with each of the first GPUs, with this port 1."""
    values = {f"ports/1/{key}": value for key, value in (PORT | port).items()}
    for n in range(count):
        place = _switched(m, n)
        m.devices.append(
            pci(
                place,
                vendor="0x15b3",
                device="0x1021",
                **{"class": "0x020700"},
                driver="mlx5_core",
                numa_node=str(n // 4),
            )
        )
        name = f"mlx5_{n}"
        folder = f"/sys/devices/{place}/infiniband/{name}"
        m.write(f"/sys/class/infiniband/{name}", Link(f"../../devices/{place}/infiniband/{name}"))
        m.write(f"{folder}/device", Link("../.."))
        for key, value in (HCA | values).items():
            m.write(f"{folder}/{key}", value + "\n")
        _name(m, f"{folder}/ports/1", n, values["ports/1/link_layer"])
        for counter in ("link_downed", "symbol_error", "port_rcv_errors"):
            m.write(f"{folder}/ports/1/counters/{counter}", "0\n")
        m.write(f"/dev/infiniband/uverbs{n}", "")
    m.write("/dev/infiniband/rdma_cm", "")
    m.write("/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so", Library("versioned"))
    m.modules += ["nvidia_peermem", "mlx5_ib", "mlx5_core", "ib_uverbs", "ib_core"]
    for name in ("libibverbs", "libmlx5", "librdmacm"):
        m.write(f"{LIB}/{name}.so.1", Library("versioned"))


def _switched(m: Machine, index: int) -> str:
    """Puts a switch above a GPU, as servers have it; the place beside the GPU."""
    gpu = m.of(index)
    root = gpu.place.rpartition("/")[0]
    bus = int(gpu.address[5:7], 16)
    upper = f"{root}/0000:{bus - 2:02x}:00.0"
    m.devices.append(bridge(upper, **SWITCH))
    for slot in range(2):
        m.devices.append(bridge(f"{upper}/0000:{bus - 1:02x}:{slot:02x}.0", **SWITCH))
    gpu.place = f"{upper}/0000:{bus - 1:02x}:00.0/{gpu.address}"
    return f"{upper}/0000:{bus - 1:02x}:01.0/0000:{bus + 1:02x}:00.0"


def _name(m: Machine, port: str, number: int, link_layer: str) -> None:
    """A port's GIDs; of Ethernet the addresses of its interface."""
    local = f"fe80:0000:0000:0000:a288:c203:00ab:{number:04x}\n"
    empty = ":".join(["0000"] * 8) + "\n"
    filled = 1 if link_layer == "InfiniBand" else 4
    for index in range(16):
        m.write(f"{port}/gids/{index}", local if index < filled else empty)
    if link_layer == "Ethernet":
        for index in range(filled):
            m.write(f"{port}/gid_attrs/ndevs/{index}", f"ens{number + 1}np0\n")


# How much memory may be locked is this machine's own, which nobody in a name space may raise.
ALSO = "HOST-009"
NET = "NET-0\\d\\d|HOST-009|BND-0\\d\\d|PCI-0\\d\\d|GPU-03[56]|ENV-01\\d"


def _no_peer_memory(m: Machine) -> None:
    """With the open modules DMA-BUF would do without it."""
    rdma(m)
    m.modules.remove("nvidia_peermem")
    m.flavour = "proprietary"
    m.packages = {name.replace("-open", ""): version for name, version in m.packages.items()}


add(
    "no peer memory with InfiniBand",
    _no_peer_memory,
    (NET, r"", r"peermem", r"modprobe nvidia.peermem"),
    also=ALSO,
)


add(
    "ACS between the GPUs and their network cards",
    both(rdma, lambda m: switch_acs_on(m.devices)),
    ("PCI-007|PCI-0(09|10)|NET-0\\d\\d", r"", r"ACS", r"setpci|ACS|BIOS|iommu"),
)


def _no_nodes(m: Machine) -> None:
    rdma(m, 1)
    for path in [path for path in m.files if path.startswith("/dev/infiniband/")]:
        del m.files[path]


add(
    "no /dev/infiniband for the cards that /sys has",
    _no_nodes,
    (f"{NET}|CTR-\\d+", r"", r"/dev/infiniband|RDMA", r"--device|/dev/infiniband|rdma"),
    base="container",
)


def _put(m: Machine, adapter: str, **values: str) -> None:
    """Into the files of its port."""
    folder = next(path for path in m.files if path.endswith(f"infiniband/{adapter}/ports/1/state"))
    for name, value in values.items():
        m.write(folder.removesuffix("state") + name, value + "\n")


ROCE = {"link_layer": "Ethernet", "lid": "0x0", "sm_lid": "0x0"}
add(
    "a RoCE port is down",
    both(
        lambda m: rdma(m, **ROCE),
        lambda m: _put(m, "mlx5_0", state="1: DOWN", phys_state="3: Disabled"),
    ),
    (NET, r"mlx5_0", r"down|disabled", r"cable|ip link|port|switch|ibv"),
    also=ALSO,
)


add(
    "one GiB of memory",
    machine(memory_gib=1, available_gib=1),
    ("HOST-004", r"", r"memory|GiB|MiB", r"memory|swap|machine|instance"),
    base="t4",
)


CELERON = (
    "processor\t: 0\nmodel name\t: Intel(R) Celeron(R) CPU G1840\nflags\t\t: fpu sse4_1 sse4_2\n\n"
)
add(
    "a CPU without AVX",
    files({"/proc/cpuinfo": CELERON}),
    ("HOST-002", r"", r"AVX", r"AVX|CPU|build|conda|machine"),
    base="rtx4090",
)


def _rails(m: Machine) -> None:
    """Four RoCE ports, each with an interface, for the first four of the GPUs."""
    rdma(m, 4, **ROCE)
    for n in range(4):
        for file, text in {"flags": "0x1003", "operstate": "up", "mtu": "9000"}.items():
            m.write(f"/sys/class/net/ens{n + 1}np0/{file}", f"{text}\n")


add(
    "a RoCE port at half the rate of the others",
    both(_rails, lambda m: _put(m, "mlx5_2", rate="200 Gb/sec (4X HDR)")),
    (NET, r"mlx5_2", r"200 Gb", r"cable|mtu|switch"),
    also=ALSO,
)
add(
    "a RoCE port with another MTU than the others",
    both(_rails, files({"/sys/class/net/ens3np0/mtu": "1500\n"})),
    (NET, r"mlx5_2", r"MTU", r"cable|mtu|switch"),
    also=ALSO,
)

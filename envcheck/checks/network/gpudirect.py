"""Checks on what RDMA between GPUs of several machines needs: libraries, a module, locked memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.base import NOT_COLLECTED, Maybe, Unavailable, known
from ...facts.missing import Skip
from ...facts.network import RdmaDevice, RdmaPort
from ...facts.view import SnapshotView, facts_of, need
from ...findings.causes import Cause
from ...findings.commands import fill_in
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..driver_state import NO_GPUS, container
from ..nvidia_devices import host_facts, is_loaded, kernel_facts
from ..registry import check
from ..system_commands import on_system
from .common import fabric, for_data_centres, gpus, network, place, setting

# The kernel's driver, and libibverbs' for it.
_PROVIDERS = {"mlx5_core": "mlx5", "mlx4_core": "mlx4", "bnxt_en": "bnxt_re"}
# Adapters that GPUDirect RDMA goes through by NVIDIA's own modules.
_BY_PEERMEM = ("mlx5_core", "mlx4_core")
_DMABUF_KERNEL = (5, 12)
_LEAST_LOCKED_KIB = 64 * 1024  # what NCCL registers at least on a machine with several GPUs


def _serving(view: SnapshotView) -> list[tuple[RdmaDevice, RdmaPort]]:
    """The ports that serve GPUs; raises CannotJudge where there are none of either."""
    facts = facts_of(view.machine.network, "the network")
    need(facts.rdma, "RDMA adapters")
    ports = fabric(facts)
    if not ports:
        raise Skip("no active RDMA port that serves GPUs")
    if not gpus(view):
        raise Skip("there is no GPU")
    return ports


def _names(ports: list[tuple[RdmaDevice, RdmaPort]]) -> str:
    return ", ".join(place(*one) for one in ports)


_OVER_TCP = "NCCL cannot use {ports}, and goes over TCP."
NO_LIBRARY = Cause(
    "libibverbs-missing",
    "warn",
    headline="libibverbs is missing",
    sentence="libibverbs.so.1 is not {where}: " + _OVER_TCP,
)
NO_PROVIDER = Cause(
    "libibverbs-driver-missing",
    "warn",
    headline="libibverbs has no driver for the adapters",
    sentence="libibverbs is {where}, and its driver for {missing} is not ('no userspace device-specific"
    " driver found'): " + _OVER_TCP,
)
NO_NODES = Cause(
    "uverbs-missing",
    "warn",
    headline="programs cannot reach the RDMA adapters",
    sentence="/dev/infiniband/uverbs* are not {where}: " + _OVER_TCP,
    remedy="Load the module that makes them.",
    commands=["sudo modprobe ib_uverbs"],
)


@check(
    "NET-005",
    title="Programs can reach the RDMA adapters",
    causes=[NO_LIBRARY, NO_PROVIDER, NO_NODES],
    about="NCCL loads libibverbs.so.1 when it starts, and that a driver for the adapter (libmlx5 for"
    " ConnectX). Most images do not have them, nor does a fresh system: NCCL then goes over TCP, says so only"
    " with NCCL_DEBUG=INFO ('Failed to open libibverbs.so', 'NET/Socket'), and two machines can be slower"
    " than one. The device nodes"
    " /dev/infiniband/uverbs* must be there, too. Judged where an active port serves GPUs, in the container"
    " that was looked into (its nodes: BND-009) or here.",
    sources=(
        "horovod#476",
        "nccl-tests#41",
        "rdma-core, libibverbs: providers",
        "Debian packages ibverbs-providers, libibverbs1",
    ),
    follows=("BND-009",),
)
def libraries(view: SnapshotView) -> Iterator[Verdict]:
    ports = _serving(view)
    facts = network(view)
    library = facts.libibverbs
    inside = view.seen is not view.machine and view.seen.network is not view.machine.network
    where = "in the container" if inside else "here"
    rdma = view.evidence("machine.network.rdma", _names(ports))
    if not inside:
        yield from _nodes(view, ports)
    if isinstance(library, Unavailable) and library.unavailable == "absent":
        yield NO_LIBRARY.found(
            about("library", "libibverbs.so.1"),
            [view.evidence("seen.network.libibverbs"), rdma],
            advice=_install(view, inside),
            where=where,
            ports=_names(ports),
        )
        return
    found = need(library, "libibverbs")
    wanted = {
        _PROVIDERS[known(device.driver) or ""]
        for device, _ in ports
        if known(device.driver) in _PROVIDERS
    }
    missing = sorted(wanted - set(need(facts.rdma_providers, "libibverbs' drivers")))
    if missing and not known(facts.rdma_providers) and not found.startswith(("/lib", "/usr/lib")):
        raise Skip(f"where {found} looks for its drivers is not known")
    if not missing:
        yield Passed(found)
        return
    yield NO_PROVIDER.found(
        about("library", f"lib{missing[0]}"),
        [view.evidence("seen.network.rdma_providers"), rdma],
        advice=_install(view, inside),
        where=where,
        missing=", ".join(missing),
        ports=_names(ports),
    )


def _nodes(view: SnapshotView, ports: list[tuple[RdmaDevice, RdmaPort]]) -> Iterator[Finding]:
    """The nodes by which programs reach the adapters, where the doctor itself runs."""
    host = view.machine.host
    fact: Maybe[list[str]] = (
        NOT_COLLECTED if host is None or host.facts is None else host.facts.rdma_nodes
    )
    if isinstance(fact, Unavailable) and fact.unavailable != "absent":
        return
    if any(name.startswith("uverbs") for name in known(fact) or []):
        return
    inside = container(view)
    start = Remedy(
        "Start the container with them.",
        [
            "docker run --gpus all --device /dev/infiniband --ulimit memlock=-1 --network host"
            f" {fill_in('IMAGE', 'your image')}"
        ],
    )
    yield NO_NODES.found(
        evidence=[
            view.evidence("machine.host.rdma_nodes"),
            view.evidence("machine.network.rdma", _names(ports)),
        ],
        advice=start if inside else None,
        where="in this container" if inside else "there",
        ports=_names(ports),
    )


def _install(view: SnapshotView, inside: bool) -> Remedy:
    commands = on_system(view, "rdma-libraries")
    if inside:
        return Remedy(
            "Install them in the image, or start from one of NVIDIA's, which have them.",
            [
                "apt-get install -y libibverbs1 ibverbs-providers  # in the Dockerfile, on Debian or Ubuntu"
            ],
        )
    return Remedy("Install the RDMA libraries.", commands)


NO_GPUDIRECT = Cause(
    "gpudirect-unavailable",
    "warn",
    headline="GPUDirect RDMA is not available",
    sentence="nvidia_peermem is not loaded, and DMA-BUF is not available here ({kernel}, {flavour} modules):"
    " what {ports} send and receive is copied through the host's memory.",
    remedy="Load it, now and at each boot. Where it says 'Invalid argument', the driver was installed before"
    " the RDMA stack (MOFED, DOCA): install the driver again.",
    commands=[
        "sudo modprobe nvidia-peermem",
        "echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf",
    ],
)


@check(
    "NET-006",
    title="RDMA adapters reach the GPUs' memory",
    causes=[NO_GPUDIRECT],
    about="GPUDirect RDMA lets a network adapter read and write a GPU's memory. It needs the module"
    " nvidia_peermem (nv_peer_mem with drivers before 470), which nothing loads by itself, or DMA-BUF: the"
    " open kernel modules on Linux 5.12 or later, and CUDA 11.7. Without it NCCL copies through the host's"
    " memory, and its log lacks 'GDRDMA'. Judged where a data-centre GPU has an active RDMA port of NVIDIA's"
    " (mlx5) that serves GPUs.",
    sources=(
        "nv_peer_memory#56",
        "NVIDIA driver README, GPUDirect RDMA Peer Memory Client",
        "NVIDIA NCCL user guide, NCCL_DMABUF_ENABLE: Linux 5.12, open modules, CUDA 11.7",
        "NVIDIA GPU operator, GPUDirect RDMA",
    ),
    follows=(*NO_GPUS, "KRN-003"),
)
def peer_memory(view: SnapshotView) -> Iterator[Verdict]:
    ports = [one for one in _serving(view) if known(one[0].driver) in _BY_PEERMEM]
    if not ports:
        raise Skip("the RDMA adapters are not NVIDIA's")
    if not for_data_centres(view):
        raise Skip("no data-centre GPU")
    kernel = kernel_facts(view)
    modules = {one.name for one in need(kernel.modules, "the loaded modules")}
    loaded = sorted(modules & {"nvidia_peermem", "nv_peer_mem"})
    if loaded:
        yield Passed(loaded[0])
        return
    if is_loaded(kernel) is False:
        raise Skip("the nvidia module is not loaded")
    release = known(kernel.release) or known(host_facts(view).kernel)
    version = re.match(r"(\d+)\.(\d+)", release or "")
    flavour = need(kernel.driver_flavour, "whether the modules are the open ones")
    off = setting(network(view), "NCCL_DMABUF_ENABLE")
    if flavour == "open" and (off is None or off.value != "0"):
        if version is None:
            raise Skip("the kernel's version is not known")
        if (int(version[1]), int(version[2])) >= _DMABUF_KERNEL:
            yield Passed(f"by DMA-BUF (open modules, Linux {version[0]})")
            return
    yield NO_GPUDIRECT.found(
        evidence=[
            view.evidence("machine.kernel.modules", ", ".join(sorted(modules))),
            view.evidence("machine.kernel.driver_flavour"),
            view.evidence("machine.network.rdma", _names(ports)),
        ],
        kernel=f"Linux {version[0]}" if version else "this kernel",
        flavour=flavour,
        ports=_names(ports),
    )


LOCKED = Cause(
    "memlock-too-low",
    "warn",
    headline="too little memory may be locked for RDMA",
    sentence="This user may lock only {kib} KiB of memory, and {ports} need more: NCCL over RDMA cannot"
    " register its buffers ('ibv_reg_mr failed: Cannot allocate memory').",
    remedy="Raise the limit, then log in again.",
    commands=[
        "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n'"
        " | sudo tee /etc/security/limits.d/rdma.conf"
    ],
)


@check(
    "NET-007",
    title="A user may lock memory for RDMA",
    causes=[LOCKED],
    about="RDMA pins the memory that it registers, and the limit on locked memory counts that for everybody"
    " but root: with the distributions' 8 MiB NCCL ends with 'ibv_reg_mr failed: Cannot allocate memory'."
    " Judged on the machine itself, where an active port serves GPUs; in containers HOST-009 and BND-007 do.",
    sources=(
        "nccl-tests#206",
        "NVIDIA NCCL user guide, troubleshooting: InfiniBand",
        "getrlimit(2), RLIMIT_MEMLOCK",
        "limits.conf(5)",
    ),
)
def locked_memory(view: SnapshotView) -> Iterator[Verdict]:
    ports = _serving(view)
    if container(view):
        raise Skip("in a container HOST-009 judges it")
    host = facts_of(view.machine.host, "the limits")
    soft, hard = need(host.memlock_kib, "the limit on locked memory"), known(host.memlock_hard_kib)
    if need(host.is_root, "who looks") or soft == -1 or soft >= _LEAST_LOCKED_KIB:
        yield Passed(
            "no limit" if soft == -1 else f"{soft} KiB" if not host.is_root else "root has no limit"
        )
        return
    raised = hard == -1 or (hard or 0) >= _LEAST_LOCKED_KIB
    shell = Remedy("Raise it in the shell that starts the job.", ["ulimit -l unlimited"])
    yield LOCKED.found(
        evidence=[
            view.evidence("machine.host.memlock_kib"),
            view.evidence("machine.network.rdma", _names(ports)),
        ],
        advice=shell if raised else None,
        kib=soft,
        ports=_names(ports),
    )

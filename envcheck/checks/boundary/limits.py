"""Checks on what a container leaves to GPU work: shared and locked memory, processes, RDMA devices."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import Unavailable, known
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..host.limits import DEFAULT_SHM_MIB
from ..registry import check
from .common import engine, image

FEW_PROCESSES = 4096  # twice what podman gives


@check(
    "BND-006",
    title="/dev/shm inside is large enough",
    problem="/dev/shm in the container is too small",
    about="NCCL, and data loaders with worker processes, exchange data through /dev/shm. A container gets"
    " 64 MB of it unless told otherwise; what does not fit ends in 'No space left on device', a bus error or"
    " a hang of all ranks. As HOST-008, for the container that was looked into.",
    sources=("nccl#290", "nccl#342", "NVIDIA containers user guide, --shm-size"),
)
def shared_memory(view: SnapshotView) -> Iterator[Verdict]:
    host = facts_of(view.inside.host, "the container's limits")
    total = need(host.shm_total_mib, "/dev/shm inside")
    if total == 0:
        yield Passed("no limit")  # tmpfs with size=0, podman's --shm-size=0
        return
    if total > DEFAULT_SHM_MIB:
        yield Passed(f"{total} MiB")
        return
    yield Finding(
        "warn",
        f"/dev/shm has {total} MiB in the container: NCCL between GPUs and data loaders with workers need"
        " more, and die or hang.",
        subjects=about("container", view.inside.location),
        evidence=[view.evidence("target.host.shm_total_mib")],
        remedy=_remedy(view, "--shm-size=1g"),
    )


@check(
    "BND-007",
    title="The container may lock memory for RDMA",
    problem="the container may lock too little memory",
    about="RDMA (InfiniBand, RoCE), which NCCL uses between machines, pins the memory it registers, and the"
    " limit on locked memory counts that. Judged where the host has an RDMA device. As HOST-009, for the"
    " container that was looked into.",
    sources=("NVIDIA containers user guide, --ulimit memlock", "getrlimit(2)"),
)
def locked_memory(view: SnapshotView) -> Iterator[Verdict]:
    host = facts_of(view.inside.host, "the container's limits")
    limit = need(host.memlock_kib, "the limit on locked memory inside")
    outside = view.machine.host
    devices = (
        None if outside is None or outside.facts is None else known(outside.facts.rdma_devices)
    )
    if limit == -1:
        yield Passed("no limit")
        return
    if not devices:
        raise Skip("the host has no RDMA device")
    yield Finding(
        "warn",
        f"The container may lock only {limit} KiB of memory, and {', '.join(devices)} need more: NCCL over"
        " RDMA cannot register its buffers.",
        subjects=about("container", view.inside.location),
        evidence=[
            view.evidence("target.host.memlock_kib"),
            view.evidence("machine.host.rdma_devices"),
        ],
        remedy=_remedy(view, "--ulimit memlock=-1"),
    )


@check(
    "BND-008",
    title="The container may have enough processes and threads",
    problem="the container may have too few processes and threads",
    about="podman limits a container to 2048 processes and threads, unless told otherwise; docker sets none."
    " The data loaders of several GPUs, each with workers that have a thread for every core, reach that:"
    " 'can't start new thread', 'Resource temporarily unavailable'. Judged by pids.max of its control group.",
    sources=("podman-run(1), --pids-limit", "kernel.org: cgroup-v2, pids.max"),
)
def processes(view: SnapshotView) -> Iterator[Verdict]:
    host = facts_of(view.inside.host, "the container's limits")
    fact = host.cgroup_pids_limit
    if isinstance(fact, Unavailable) and fact.unavailable == "absent":
        yield Passed("no limit")
        return
    limit = need(fact, "the limit on processes and threads inside")
    if limit > FEW_PROCESSES:
        yield Passed(f"{limit} processes and threads")
        return
    yield Finding(
        "warn",
        f"The container may have only {limit} processes and threads: data loaders with many workers, and the"
        " thread pools of several GPUs, need more.",
        subjects=about("container", view.inside.location),
        evidence=[view.evidence("target.host.cgroup_pids_limit")],
        remedy=_remedy(view, "--pids-limit=-1"),
    )


@check(
    "BND-009",
    title="The host's RDMA devices arrived in the container",
    problem="RDMA devices did not arrive in the container",
    about="NCCL and MPI open /dev/infiniband/uverbs* to talk to InfiniBand and RoCE adapters. A container"
    " has no device that is not passed to it; without them traffic between machines falls back to TCP,"
    " several times slower, and nothing says so but NCCL_DEBUG=INFO ('NET/Socket').",
    sources=("NCCL user guide, environment variables: NCCL_IB_DISABLE", "rdma-core: libibverbs"),
)
def rdma_devices(view: SnapshotView) -> Iterator[Verdict]:
    outside = facts_of(view.machine.host, "the host's devices")
    nodes = [name for name in known(outside.rdma_nodes) or [] if name.startswith("uverbs")]
    if not nodes:
        raise Skip("the host has no /dev/infiniband/uverbs*")
    host = facts_of(view.inside.host, "the container's devices")
    fact = host.rdma_nodes
    lost = isinstance(fact, Unavailable) and fact.unavailable == "absent"
    inside = [] if lost else need(fact, "/dev/infiniband inside")
    missing = [name for name in nodes if name not in inside]
    if not missing:
        yield Passed(", ".join(nodes))
        return
    yield Finding(
        "warn",
        f"{', '.join(f'/dev/infiniband/{name}' for name in missing)} of the host did not arrive in the"
        " container: NCCL between machines falls back to TCP.",
        subjects=about("container", view.inside.location),
        evidence=[
            view.evidence("machine.host.rdma_nodes"),
            view.evidence("target.host.rdma_nodes"),
        ],
        remedy=_remedy(view, "--device /dev/infiniband --ulimit memlock=-1"),
    )


def _remedy(view: SnapshotView, option: str) -> Remedy:
    text = "Start the container with more; it cannot be raised from inside."
    name = engine(view)
    if name in ("apptainer", "enroot"):
        return Remedy("Raise it on the host: this engine's containers have the host's.")
    return Remedy(
        text, [f"{name if name in ('podman', 'docker') else 'docker'} run {option} {image(view)}"]
    )

"""Checks on what a container leaves to GPU work: shared and locked memory, processes, RDMA devices."""

from __future__ import annotations

from typing import TypeVar

from ..host.limits import DEFAULT_SHM_MIB
from ..reading import Maybe, Skip, SnapshotView, Unavailable, fact, facts_of, known, need
from ..verdicts import Cause, Finding, Param, Passed, Remedy, Verdicts, about, check, warn
from .common import engine, image

T = TypeVar("T")
FEW_PROCESSES = 4096  # twice what podman gives
_MORE = "Start the container with more; it cannot be raised from inside."


def _found(
    view: SnapshotView, cause: Cause, paths: list[str], option: str, **params: Param
) -> Finding:
    name = engine(view)
    command = f"{name if name in ('podman', 'docker') else 'docker'} run {option} {image(view)}"
    advice = Remedy(_MORE, [command])
    if name in ("apptainer", "enroot"):
        advice = Remedy("Raise it on the host: this engine's containers have the host's limits.")
    evidence = [view.evidence(path) for path in paths]
    subjects = about("container", view.inside.location)
    return cause.found(subjects, evidence, commands=None, advice=advice, **params)


def _absent(value: Maybe[T]) -> bool:
    return isinstance(value, Unavailable) and value.unavailable == "absent"


SMALL_SHM = warn(
    "shm-too-small",
    "/dev/shm in the container is too small",
    "/dev/shm has {mib} MiB in the container: NCCL between GPUs and data loaders with workers need more, and"
    " die or hang.",
    _MORE,
)


@check(
    "BND-006",
    title="/dev/shm inside is large enough",
    causes=[SMALL_SHM],
    about="As HOST-008, for the container that was looked into: NCCL, and data loaders with worker"
    " processes, exchange data through /dev/shm, of which a container gets 64 MB unless its engine is told"
    " otherwise.",
    sources=["nccl#290; nccl#342; NVIDIA containers user guide, --shm-size"],
)
def shared_memory(view: SnapshotView) -> Verdicts:
    host = facts_of(view.inside.host, "the container's limits")
    total = need(host.shm_total_mib, "/dev/shm inside")
    if 0 < total <= DEFAULT_SHM_MIB:  # 0: tmpfs without a limit
        yield _found(view, SMALL_SHM, ["target.host.shm_total_mib"], "--shm-size=1g", mib=total)
    else:
        yield Passed(f"{total} MiB" if total else "no limit")


LOCKED = warn(
    "locked-memory-too-small",
    "the container may lock too little memory",
    "The container may lock only {kib} KiB of memory, and {devices} need more: NCCL over RDMA cannot register"
    " its buffers.",
    _MORE,
)


@check(
    "BND-007",
    title="The container may lock memory for RDMA",
    causes=[LOCKED],
    about="As HOST-009, for the container that was looked into: RDMA (InfiniBand, RoCE), which NCCL uses"
    " between machines, pins the memory it registers, and the limit on locked memory counts that. Judged if"
    " the host has an RDMA device.",
    sources=["NVIDIA containers user guide, --ulimit memlock; getrlimit(2)"],
)
def locked_memory(view: SnapshotView) -> Verdicts:
    host = facts_of(view.inside.host, "the container's limits")
    limit = need(host.memlock_kib, "the limit on locked memory inside")
    devices = fact(view.machine.host, "rdma_devices")
    if limit == -1:
        yield Passed("no limit")
        return
    if not devices:
        raise Skip("the host has no RDMA device")
    paths = ["target.host.memlock_kib", "machine.host.rdma_devices"]
    shown = ", ".join(devices)
    yield _found(view, LOCKED, paths, "--ulimit memlock=-1", kib=limit, devices=shown)


PROCESSES = warn(
    "too-few-processes",
    "the container may have too few processes and threads",
    "The container may have only {limit} processes and threads: data loaders with many workers, and the"
    " thread pools of several GPUs, need more.",
    _MORE,
)


@check(
    "BND-008",
    title="The container may have enough processes and threads",
    causes=[PROCESSES],
    about="podman limits a container to 2048 processes and threads, unless told otherwise; docker sets"
    " none. The data loaders of several GPUs, each with workers that have a thread for every core, reach"
    " that: 'can't start new thread', 'Resource temporarily unavailable'.",
    sources=["podman-run(1), --pids-limit; kernel.org: cgroup-v2, pids.max"],
)
def processes(view: SnapshotView) -> Verdicts:
    host = facts_of(view.inside.host, "the container's limits")
    if _absent(host.cgroup_pids_limit):
        yield Passed("no limit")
        return
    limit = need(host.cgroup_pids_limit, "the limit on processes and threads inside")
    if limit > FEW_PROCESSES:
        yield Passed(f"{limit} processes and threads")
        return
    yield _found(view, PROCESSES, ["target.host.cgroup_pids_limit"], "--pids-limit=-1", limit=limit)


RDMA = warn(
    "rdma-devices-missing",
    "RDMA devices did not arrive in the container",
    "{devices} of the host did not arrive in the container: NCCL between machines falls back to TCP.",
    _MORE,
)


@check(
    "BND-009",
    title="The host's RDMA devices arrived in the container",
    causes=[RDMA],
    about="NCCL and MPI open /dev/infiniband/uverbs* to talk to InfiniBand and RoCE adapters. A container"
    " has no device that is not passed to it; without them traffic between machines falls back to TCP,"
    " several times slower, and only NCCL_DEBUG=INFO says so ('NET/Socket').",
    sources=["NCCL user guide, environment variables: NCCL_IB_DISABLE; rdma-core: libibverbs"],
)
def rdma_devices(view: SnapshotView) -> Verdicts:
    outside = facts_of(view.machine.host, "the host's devices")
    nodes = [name for name in known(outside.rdma_nodes) or [] if name.startswith("uverbs")]
    if not nodes:
        raise Skip("the host has no /dev/infiniband/uverbs*")
    value = facts_of(view.inside.host, "the container's devices").rdma_nodes
    inside = [] if _absent(value) else need(value, "/dev/infiniband inside")
    missing = [f"/dev/infiniband/{name}" for name in nodes if name not in inside]
    if not missing:
        yield Passed(", ".join(nodes))
        return
    paths = ["machine.host.rdma_nodes", "target.host.rdma_nodes"]
    option = "--device /dev/infiniband --ulimit memlock=-1"
    yield _found(view, RDMA, paths, option, devices=", ".join(missing))

"""Checks on the limits that a container or a login puts on processes."""

from __future__ import annotations

from ..containers import DEVICES_FOR_CONTAINERS
from ..nvidia_devices import open_to_all
from ..reading import CannotJudge, Skip, SnapshotView, Unavailable, facts_of, known, need
from ..system_commands import in_engine
from ..verdicts import Passed, Verdicts, check, warn
from .places import host_of

DEFAULT_SHM_MIB = 64  # what docker, podman and Kubernetes give a container that asks for nothing
ENOUGH_SHM_MIB = 1024
LEAST_OPEN_FILES = 1024  # the distributions' own soft limit


_HEADLINE = "/dev/shm is too small"
SMALL_ON_HOST = warn(
    "small-shared-memory",
    _HEADLINE,
    "/dev/shm has {mib} MiB for {gpus} GPUs: NCCL between them and data loaders with workers need more ('No"
    " space left on device'), and die or hang.",
    "Make it larger, and remove the size where it is set: its line of /etc/fstab, or what else mounts it at"
    " boot.",
    "sudo mount -o remount,size=50% /dev/shm",
    "grep /dev/shm /etc/fstab",
)
SMALL_IN_CONTAINER = warn(
    "small-shared-memory-in-container",
    _HEADLINE,
    "/dev/shm has {mib} MiB in this container: NCCL between GPUs and data loaders with workers need more, and"
    " die or hang.",
    "Start the container with more shared memory; it cannot be enlarged from inside.",
)


@check(
    "HOST-008",
    title="/dev/shm is large enough",
    causes=(SMALL_ON_HOST, SMALL_IN_CONTAINER),
    about="NCCL, and data loaders with worker processes, exchange data through /dev/shm. A container gets"
    " 64 MB of it by default; what does not fit ends in 'No space left on device', a bus error or a hang of"
    " all ranks.",
    sources=["nccl#290; nccl#342 (10 MB for each connection of a ring)"],
)
def shared_memory(view: SnapshotView) -> Verdicts:
    host = host_of(view)
    total = need(host.shm_total_mib, "/dev/shm")
    container = known(host.container)
    if total == 0:
        yield Passed("no limit")  # tmpfs with size=0, podman's --shm-size=0
        return
    if container is None and _is_small(view, total):
        yield SMALL_ON_HOST.found(
            evidence=[
                view.evidence("machine.host.shm_total_mib"),
                view.evidence("machine.host.memory_total_mib"),
            ],
            mib=total,
            gpus=len(view.gpus),
        )
        return
    if container is None or total > DEFAULT_SHM_MIB:
        yield Passed(f"{total} MiB")
        return
    yield SMALL_IN_CONTAINER.found(
        evidence=[
            view.evidence("machine.host.shm_total_mib"),
            view.evidence("machine.host.container"),
        ],
        commands=in_engine(view, "limits"),
        mib=total,
    )


def _is_small(view: SnapshotView, total: int) -> bool:
    """Whether a machine with several GPUs was given far less than the half of its memory."""
    host = host_of(view)
    memory = known(host.memory_total_mib)
    is_absent = isinstance(host.container, Unavailable) and host.container.unavailable == "absent"
    try:
        several = len(view.gpus) > 1
    except CannotJudge:
        several = False
    return is_absent and several and total < ENOUGH_SHM_MIB and total * 8 < (memory or 0)


LOCKED_MEMORY = warn(
    "low-memlock-limit",
    "the limit on locked memory is too low",
    "This container may lock only {kib} KiB of memory, and {devices} need more: NCCL over RDMA cannot"
    " register its buffers.",
    "Start the container without that limit.",
)
FEW_FILES = warn(
    "low-file-limit",
    "the limit on open files is too low",
    "A process may open only {files} files: data loaders run into 'Too many open files'.",
    "Raise the limit.",
)


@check(
    "HOST-009",
    title="Process limits leave room for GPU work",
    causes=(LOCKED_MEMORY, FEW_FILES),
    about="RDMA (InfiniBand, RoCE), which NCCL uses between machines, pins the memory it registers, and the"
    " limit on locked memory counts that: in a container without --ulimit memlock=-1 registration fails."
    " Fewer than 1024 open files is less than any distribution gives.",
    sources=["NVIDIA containers user guide, --ulimit memlock; getrlimit(2)"],
)
def limits(view: SnapshotView) -> Verdicts:
    host = host_of(view)
    memlock = need(host.memlock_kib, "the limit on locked memory")
    files = known(host.open_files)
    devices = known(host.rdma_devices)
    if memlock != -1 and devices and known(host.container):
        yield LOCKED_MEMORY.found(
            evidence=[
                view.evidence("machine.host.memlock_kib"),
                view.evidence("machine.host.rdma_devices"),
            ],
            commands=in_engine(view, "limits"),
            kib=memlock,
            devices=", ".join(devices),
        )
    if files is not None and 0 <= files < LEAST_OPEN_FILES:
        yield FEW_FILES.found(
            evidence=[view.evidence("machine.host.open_files")],
            commands=[
                "ulimit -n 65536",
                *(in_engine(view, "files") if known(host.container) else []),
            ],
            files=files,
        )
    locked = "no limit on locked memory" if memlock == -1 else f"{memlock} KiB of locked memory"
    yield Passed(
        locked if files is None else f"{locked}, {'any number of' if files == -1 else files} files"
    )


CONFINED = warn(
    "selinux-denies-gpu",
    "SELinux keeps the container from the GPUs",
    "{node} is open to everybody by its mode, and this process may not use it: SELinux keeps the container"
    " from the GPU.",
    f"Allow containers to use devices on the host. {DEVICES_FOR_CONTAINERS}",
    "sudo getsebool container_use_devices",
    "sudo setsebool -P container_use_devices on",
)


@check(
    "HOST-010",
    title="SELinux lets this container use the GPUs",
    causes=(CONFINED,),
    about="If the host enforces SELinux, a container's label (container_t) may not open device nodes that"
    " are not labelled for it: NVML then reports 'Insufficient Permissions'. Judged by device nodes that"
    " every user may open by their mode, and this process may not.",
    sources=["nvidia-container-toolkit#33; container-selinux, boolean container_use_devices"],
    follows=("PCI-001", "KRN-001", "KRN-006"),
)
def selinux(view: SnapshotView) -> Verdicts:
    host = host_of(view)
    if known(host.container) is None:
        raise Skip("not in a container")
    label = known(host.selinux_label) or ""
    if known(host.selinux) != "enforcing" and "container_t" not in label:
        raise Skip("SELinux does not confine this container")
    nodes = need(facts_of(view.machine.kernel, "device nodes").device_nodes, "device nodes")
    nodes = [node for node in nodes if node.path.startswith("/dev/nvidia")]
    if not nodes:
        raise Skip("no NVIDIA device node here")
    denied = [node for node in nodes if not node.usable and open_to_all(node)]
    if not denied:
        yield Passed(f"{len(nodes)} device nodes")
        return
    yield CONFINED.found(
        evidence=[
            view.evidence(
                "machine.kernel.device_nodes", ", ".join(f"{n.path} {n.mode}" for n in denied)
            ),
            view.evidence("machine.host.selinux_label"),
        ],
        node=denied[0].path,
    )

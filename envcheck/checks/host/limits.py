"""Checks on the limits that a container or a login puts on processes."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.host import Host
from ...facts.network import Network
from ..network.common import fabric, for_data_centres, named
from ..network.common import gpus as seen_gpus
from ..reading import CannotJudge, SnapshotView, fact, facts_or, is_absent, known, need, or_else
from ..system_commands import in_engine, systemctl
from ..verdicts import Params, Passed, Subject, Verdicts, about, check, fill_in, unjudged, warn
from .places import host_of

DEFAULT_SHM_MIB = 64  # what docker, podman and Kubernetes give a container that asks for nothing
ENOUGH_SHM_MIB = 1024
LEAST_OPEN_FILES = 1024  # the distributions' own soft limit
FEW_PROCESSES = 4096  # twice what podman gives
THREADS = (
    64  # for each CPU: a numerical library starts as many threads as there are CPUs in each process
)

SMALL_ON_HOST = warn(
    "small-shared-memory",
    "/dev/shm is too small",
    "/dev/shm has {mib} MiB: NCCL between GPUs and data loaders with workers need more ('No space left on"
    " device'), and die or hang.",
    "Make it larger, and remove the size where it is set: its line of /etc/fstab, for example.",
    "sudo mount -o remount,size=50% /dev/shm",
    "grep /dev/shm /etc/fstab",
)
SMALL_IN_CONTAINER = SMALL_ON_HOST.variant(
    "small-shared-memory-in-container",
    sentence="/dev/shm has {mib} MiB in this container: NCCL and data loaders with workers need more, and die"
    " or hang.",
    remedy="Start the container with more shared memory; it cannot be enlarged from inside.",
    commands=(),
)


def _places(view: SnapshotView) -> Iterator[tuple[str, Host, list[Subject]]]:
    """The machine, and the container that is looked into: the document, its host's facts, the subject."""
    yield "machine", host_of(view), []
    inside = or_else(lambda: view.inside, None)
    if inside and inside.host is not None and inside.host.facts is not None:
        yield "target", inside.host.facts, about("container", inside.location)


@check(
    "HOST-008",
    title="/dev/shm is large enough",
    causes=(SMALL_ON_HOST, SMALL_IN_CONTAINER),
    about="NCCL, and data loaders with worker processes, exchange data through /dev/shm.",
    sources=["nccl#290; nccl#342; NVIDIA containers user guide, --shm-size; Linux kernel, tmpfs"],
)
def shared_memory(view: SnapshotView) -> Verdicts:
    for place, host, subjects in _places(view):
        evidence = [view.evidence(f"{place}.host.shm_total_mib")]
        try:
            total = need(host.shm_total_mib, "/dev/shm")
        except CannotJudge as why:
            yield unjudged(why, subjects)
            continue
        if total == 0:
            yield Passed("no limit")  # tmpfs with size=0, podman's --shm-size=0
        elif is_absent(host.container) and _is_small(view, host, total):
            yield SMALL_ON_HOST.found(subjects, evidence, mib=total)
        elif known(host.container) and total <= DEFAULT_SHM_MIB:
            commands = in_engine(view, "limits")
            yield SMALL_IN_CONTAINER.found(subjects, evidence, commands=commands, mib=total)
        else:
            yield Passed(f"{total} MiB")


def _is_small(view: SnapshotView, host: Host, total: int) -> bool:
    """Whether a machine with GPUs was given far less than the half of its memory."""
    gpus = or_else(lambda: len(view.gpus), 0)
    enough = ENOUGH_SHM_MIB if gpus > 1 else DEFAULT_SHM_MIB  # for the data loader's workers alone
    return bool(gpus) and total < enough and total * 8 < (known(host.memory_total_mib) or 0)


ENOUGH_LOCKED_KIB = 1 << 20  # NCCL registers some MiB for each channel and peer
LOCKED_MEMORY = warn(
    "low-memlock-limit",
    "the limit on locked memory is too low",
    "This container may lock only {kib} KiB of memory, and {devices} need more: NCCL over RDMA fails.",
    "Start the container without that limit.",
)
LOCKED_ON_HOST = LOCKED_MEMORY.variant(
    "low-memlock-limit-on-host",
    sentence="What this user starts here may lock only {kib} KiB of memory, and NCCL registers more with"
    " {devices}: 'ibv_reg_mr failed: Cannot allocate memory'.",
    remedy="Take the limit away where the processes are started: for logins by limits.d, for a service by"
    " LimitMEMLOCK=infinity in its unit (Slurm's slurmd, too); then start them again.",
    commands=[
        "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma-memlock.conf",
        systemctl("edit", f"{fill_in('UNIT', 'the service')}  # [Service] LimitMEMLOCK=infinity"),
        "ulimit -l",
    ],
)
FEW_FILES = warn(
    "low-file-limit",
    "the limit on open files is too low",
    "A process may open only {files} files: data loaders run into 'Too many open files'.",
    "Raise the limit: here by the first command, for good where processes are started (logins by limits.d,"
    " a service by LimitNOFILE=65536 in its unit), and start them again.",
)
PROCESSES = warn(
    "too-few-processes",
    "the container may have too few processes and threads",
    "The container may have only {limit} processes and threads: data loaders with many workers, and the"
    " thread pools of several GPUs, need more ('can't start new thread').",
    "Start the container with more (--pids-limit=-1); it cannot be raised from inside.",
)

USERS_PROCESSES = warn(
    "low-process-limit",
    "the limit on processes is too low",
    "This user may have only {limit} processes and threads, on {cpus} CPUs: numerical libraries start a"
    " thread for each CPU in each process, and end with 'Resource temporarily unavailable'.",
    "Raise the limit (for good: nproc in /etc/security/limits.d, TasksMax of a service), or start fewer"
    " threads.",
    "ulimit -u $(ulimit -Hu)",
    "export OPENBLAS_NUM_THREADS=8 OMP_NUM_THREADS=8",
)


@check(
    "HOST-009",
    title="Process limits leave room for GPU work",
    causes=(LOCKED_MEMORY, LOCKED_ON_HOST, FEW_FILES, PROCESSES, USERS_PROCESSES),
    about="RDMA pins memory, so that NCCL between machines fails under a limit: in a container without"
    " --ulimit memlock=-1, in a service without LimitMEMLOCK."
    " podman limits a container to 2048 processes and threads.",
    sources=[
        "NVIDIA containers user guide, --ulimit memlock; getrlimit(2); podman-run(1), --pids-limit"
    ],
)
def limits(view: SnapshotView) -> Verdicts:
    devices = ", ".join(fact(view.machine.host, "rdma_devices") or [])
    not_given = fact(view.seen.network, "verbs_nodes") == []
    for place, host, subjects in _places(view):
        try:
            memlock = need(host.memlock_kib, "the limit on locked memory")
        except CannotJudge as why:
            yield unjudged(why, subjects)
            continue
        evidence = [view.evidence(f"{place}.host.memlock_kib")]
        if known(host.container) and not_given:
            pass  # no adapter in there: NET-005, whose remedy lifts the limit, too
        elif memlock != -1 and devices and known(host.container):
            commands = in_engine(view, "limits")
            params: Params = {"kib": memlock, "devices": devices}
            yield LOCKED_MEMORY.found(subjects, evidence, commands=commands, **params)
        elif 0 <= memlock < ENOUGH_LOCKED_KIB and known(host.is_root) is False:
            # Root may lock what it likes, by CAP_IPC_LOCK; in a container it is mostly without that.
            serving = named(fabric(facts_or(view.machine.network, Network)))
            if serving:
                params = {"kib": memlock, "devices": serving}
                yield LOCKED_ON_HOST.found(subjects, evidence, **params)
        files, processes = known(host.open_files), known(host.cgroup_pids_limit)
        if files is not None and 0 <= files < LEAST_OPEN_FILES:
            evidence = [view.evidence(f"{place}.host.open_files")]
            engine = in_engine(view, "files") if known(host.container) else []
            lasting = "echo '* - nofile 65536' | sudo tee /etc/security/limits.d/nofile.conf"
            unit = f"{fill_in('UNIT', 'the service')}  # [Service] LimitNOFILE=65536"
            commands = ["ulimit -n 65536", *(engine or [lasting, systemctl("edit", unit)])]
            yield FEW_FILES.found(subjects, evidence, commands=commands, files=files)
        if subjects and processes is not None and processes <= FEW_PROCESSES:
            evidence = [view.evidence(f"{place}.host.cgroup_pids_limit")]
            yield PROCESSES.found(subjects, evidence, limit=processes)
        own, cpus = known(host.processes), known(host.cpus_allowed) or 0
        # The kernel does not hold root to it.
        if own is not None and 0 <= own <= THREADS * cpus and known(host.is_root) is False:
            evidence = [
                view.evidence(f"{place}.host.{name}") for name in ("processes", "cpus_allowed")
            ]
            yield USERS_PROCESSES.found(subjects, evidence, limit=own, cpus=cpus)
        locked = "no limit on locked memory" if memlock == -1 else f"{memlock} KiB of locked memory"
        yield Passed(f"{locked}, {'any number of' if files == -1 else files} files")


FEW_CPUS = warn(
    "too-few-cpus",
    "too few CPUs to feed the GPUs",
    "What is started here may use {cpus} of {present} CPUs{by}, for {gpus}: data loaders and the launching of"
    " kernels share them, and the GPUs wait.",
    "Give the job more CPUs. In Slurm, srun does not take --cpus-per-task over from sbatch; elsewhere, see"
    " what has set the affinity (taskset, numactl, a launcher).",
    "srun --cpus-per-task=8 …   # or: export SRUN_CPUS_PER_TASK=8",
    "taskset -cp $$",
    source="Lightning-AI/pytorch-lightning#18650; nvidia-docker#757",
)


@check(
    "HOST-011",
    title="The CPUs suffice to feed the GPUs",
    causes=(FEW_CPUS,),
    about="A control group's quota, or an affinity set by a scheduler, may leave a process a part of a CPU:"
    " every worker of its data loader then shares that.",
    sources=["sched_getaffinity(2); Linux kernel documentation, cgroup v1 and v2 CPU controllers"],
)
def cpus(view: SnapshotView) -> Verdicts:
    host = host_of(view)
    present = need(host.cpus_present, "the CPUs")
    allowed, quota = known(host.cpus_allowed) or present, known(host.cgroup_cpu_limit)
    gpus = len(seen_gpus(view))
    few = min(allowed, present if quota is None else quota)
    if gpus and few < 2 <= present // 2:
        by_quota = quota is not None and quota <= allowed
        field = "cgroup_cpu_limit" if by_quota else "cpus_allowed"
        yield FEW_CPUS.found(
            evidence=[view.evidence(f"machine.host.{field}")],
            commands=in_engine(view, "cpus") if known(host.container) else FEW_CPUS.commands,
            cpus=f"{few:g}",
            present=present,
            by=", by its control group's quota" if by_quota else ", by its affinity",
            gpus="a GPU" if gpus == 1 else f"{gpus} GPUs",
        )
    balanced = any(
        (one.name, one.value) == ("kernel.numa_balancing", "1")
        for one in known(host.settings) or []
    )
    if balanced and (known(host.numa_nodes) or 0) > 1 and for_data_centres(view):
        moves = (
            "kernel.numa_balancing=1 moves pages between NUMA nodes while jobs run, which now and then"
            " stalls a step for milliseconds; sudo sysctl kernel.numa_balancing=0 ends that"
        )
        yield Passed(moves, note=True)
    yield Passed(f"{few:g} of {present} CPUs")

"""Checks on the limits that a container or a login puts on processes."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.host import Host
from ...facts.network import Network
from ..declared import declared_causes
from ..network.common import fabric, for_data_centres, named
from ..network.common import gpus as seen_gpus
from ..reading import CannotJudge, SnapshotView, fact, facts_or, is_absent, known, need, or_else
from ..system_commands import in_engine, systemctl
from ..verdicts import Params, Passed, Subject, Verdicts, about, check, fill_in, unjudged
from .places import host_of

CAUSE = declared_causes(__name__)

DEFAULT_SHM_MIB = 64  # what docker, podman and Kubernetes give a container that asks for nothing
ENOUGH_SHM_MIB = 1024
LEAST_OPEN_FILES = 1024  # the distributions' own soft limit
FEW_PROCESSES = 4096  # twice what podman gives
THREADS = (
    64  # for each CPU: a numerical library starts as many threads as there are CPUs in each process
)


def _places(view: SnapshotView) -> Iterator[tuple[str, Host, list[Subject]]]:
    """The machine, and the container that is looked into: the document, its host's facts, the subject."""
    yield "machine", host_of(view), []
    inside = or_else(lambda: view.inside, None)
    if inside and inside.host is not None and inside.host.facts is not None:
        yield "target", inside.host.facts, about("container", inside.location)


@check("HOST-008")
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
            yield CAUSE["small-shared-memory"].found(subjects, evidence, mib=total)
        elif known(host.container) and total <= DEFAULT_SHM_MIB:
            commands = in_engine(view, "limits")
            yield CAUSE["small-shared-memory-in-container"].found(
                subjects, evidence, commands=commands, mib=total
            )
        else:
            yield Passed(f"{total} MiB")


def _is_small(view: SnapshotView, host: Host, total: int) -> bool:
    """Whether a machine with GPUs was given far less than the half of its memory."""
    gpus = or_else(lambda: len(view.gpus), 0)
    enough = ENOUGH_SHM_MIB if gpus > 1 else DEFAULT_SHM_MIB  # for the data loader's workers alone
    return bool(gpus) and total < enough and total * 8 < (known(host.memory_total_mib) or 0)


ENOUGH_LOCKED_KIB = 1 << 20  # NCCL registers some MiB for each channel and peer


@check("HOST-009")
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
            yield CAUSE["low-memlock-limit"].found(subjects, evidence, commands=commands, **params)
        elif 0 <= memlock < ENOUGH_LOCKED_KIB and known(host.is_root) is False:
            # Root may lock what it likes, by CAP_IPC_LOCK; in a container it is mostly without that.
            serving = named(fabric(facts_or(view.machine.network, Network)))
            if serving:
                params = {"kib": memlock, "devices": serving}
                yield CAUSE["low-memlock-limit-on-host"].found(subjects, evidence, **params)
        files, processes = known(host.open_files), known(host.cgroup_pids_limit)
        if files is not None and 0 <= files < LEAST_OPEN_FILES:
            evidence = [view.evidence(f"{place}.host.open_files")]
            engine = in_engine(view, "files") if known(host.container) else []
            lasting = "echo '* - nofile 65536' | sudo tee /etc/security/limits.d/nofile.conf"
            unit = f"{fill_in('UNIT', 'the service')}  # [Service] LimitNOFILE=65536"
            commands = ["ulimit -n 65536", *(engine or [lasting, systemctl("edit", unit)])]
            yield CAUSE["low-file-limit"].found(subjects, evidence, commands=commands, files=files)
        if subjects and processes is not None and processes <= FEW_PROCESSES:
            evidence = [view.evidence(f"{place}.host.cgroup_pids_limit")]
            yield CAUSE["too-few-processes"].found(subjects, evidence, limit=processes)
        own, cpus = known(host.processes), known(host.cpus_allowed) or 0
        # The kernel does not hold root to it.
        if own is not None and 0 <= own <= THREADS * cpus and known(host.is_root) is False:
            evidence = [
                view.evidence(f"{place}.host.{name}") for name in ("processes", "cpus_allowed")
            ]
            yield CAUSE["low-process-limit"].found(subjects, evidence, limit=own, cpus=cpus)
        locked = "no limit on locked memory" if memlock == -1 else f"{memlock} KiB of locked memory"
        yield Passed(f"{locked}, {'any number of' if files == -1 else files} files")


@check("HOST-011")
def cpus(view: SnapshotView) -> Verdicts:
    host = host_of(view)
    present = need(host.cpus_present, "the CPUs")
    allowed, quota = known(host.cpus_allowed) or present, known(host.cgroup_cpu_limit)
    gpus = len(seen_gpus(view))
    few = min(allowed, present if quota is None else quota)
    if gpus and few < 2 <= present // 2:
        by_quota = quota is not None and quota <= allowed
        field = "cgroup_cpu_limit" if by_quota else "cpus_allowed"
        yield CAUSE["too-few-cpus"].found(
            evidence=[view.evidence(f"machine.host.{field}")],
            commands=in_engine(view, "cpus")
            if known(host.container)
            else CAUSE["too-few-cpus"].commands,
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

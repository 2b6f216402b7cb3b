"""Memory, CPUs and the limits on them: cgroups, resource limits, /dev/shm, NUMA."""

import os
import re
import resource

from ..facts import from_error, unavailable
from . import mounts

MIB = 1 << 20
NO_LIMIT = 1 << 60  # cgroup v1 says "none" as the largest multiple of a page


def put_memory(facts, context):
    source = "/proc/meminfo"
    try:
        lines = dict(
            line.split(":", 1) for line in context.read(source).splitlines() if ":" in line
        )
    except OSError as error:
        lines, trouble = {}, from_error(error)
    else:
        trouble = unavailable("absent", "not in " + source)
    for name, key in (
        ("memory_total_mib", "MemTotal"),
        ("memory_available_mib", "MemAvailable"),
        ("commit_limit_mib", "CommitLimit"),
        ("committed_mib", "Committed_AS"),
    ):
        words = lines.get(key, "").split()
        known = words and words[0].isdecimal()
        facts.put(name, int(words[0]) // 1024 if known else trouble, source)


def put_cpus(facts, context):
    source = "/sys/devices/system/cpu/present"
    facts.attempt("cpus_present", source, lambda: count(context.read(source)))
    facts.attempt("cpus_allowed", "sched_getaffinity", lambda: len(os.sched_getaffinity(0)))
    # Nodes without a CPU are memory: CXL, or a GPU's own (Grace Hopper has one for each instance).
    source = "/sys/devices/system/node/has_cpu"
    facts.attempt("numa_nodes", source, lambda: count(context.read(source)))


def count(text):
    """How many numbers a kernel list names: "0-3,8" is 5. Raises ValueError."""
    total = 0
    for part in text.strip().split(","):
        first, _dash, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def put_resources(facts, context):
    for name, kind, unit, hard in (
        ("memlock_kib", "MEMLOCK", 1024, False),
        ("memlock_hard_kib", "MEMLOCK", 1024, True),
        ("stack_hard_kib", "STACK", 1024, True),
        ("open_files", "NOFILE", 1, False),
        ("address_space_kib", "AS", 1024, False),
        ("processes", "NPROC", 1, False),
    ):
        limit = resource.getrlimit(getattr(resource, "RLIMIT_" + kind))[hard]
        limit = -1 if limit == resource.RLIM_INFINITY else limit // unit
        facts.put(name, limit, "getrlimit(RLIMIT_%s)" % kind)
    facts.attempt("shm_total_mib", "statvfs of /dev/shm", _shared_memory, context)
    folder = "/sys/class/infiniband"
    facts.attempt("rdma_devices", folder, lambda: sorted(os.listdir(context.path(folder))))


def _shared_memory(context):
    stat = os.statvfs(context.path("/dev/shm"))
    size = stat.f_blocks * stat.f_frsize
    return max(1, size // MIB) if size else 0  # 0: a tmpfs without a limit


_CGROUP = ("cgroup_version", "cgroup_memory_limit_mib", "cgroup_cpu_limit", "cgroup_pids_limit")


def put_cgroup(facts, context):
    """The lowest limits on this process's way up through its control groups."""
    try:
        table = mounts.read(context)
        groups = parse_groups(context.read("/proc/self/cgroup"))
    except OSError as error:
        for name in _CGROUP:
            facts.put(name, from_error(error))
        return
    memory = find_groups(table, groups, "memory")
    if memory:
        facts.put("cgroup_version", memory[0], mounts.TABLE)
    else:
        facts.missing("cgroup_version", "absent", "no memory controller is mounted")
    _put_lowest(facts, context, "cgroup_memory_limit_mib", memory, _memory_limit)
    if memory:
        name = "memory.events" if memory[0] == 2 else "memory.oom_control"
        source = "%s/%s" % (memory[1][0], name)
        killed = re.search(r"^oom_kill (\d+)", context.text(source), re.M)
        if killed:
            facts.put("cgroup_oom_kills", int(killed.group(1)), source)
    for name, controller, limit_of in (
        ("cgroup_cpu_limit", "cpu", _cpu_limit),
        ("cgroup_pids_limit", "pids", _pids_limit),
    ):
        _put_lowest(facts, context, name, find_groups(table, groups, controller), limit_of)


def parse_groups(text):
    """This process's group by controller, from /proc/self/cgroup; version 2's is under ""."""
    groups = {}
    for line in text.splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3:
            for controller in fields[1].split(","):
                groups[controller] = fields[2]
    return groups


def find_groups(table, groups, controller):
    """(version, [this process's directory, its parent, ... the mount]), or None.

    Version 1 where the controller is mounted that way, as the kernel does not do both.
    """
    for version, filesystem, name in ((1, "cgroup", controller), (2, "cgroup2", "")):
        for mount in table:
            if mount.filesystem != filesystem or name not in groups:
                continue
            if version == 1 and controller not in mount.options:
                continue
            return version, _climb(mount, groups[name])
    return None


def _climb(mount, group):
    # In a container without a cgroup namespace, both are paths of the host.
    below = group
    if mount.root != "/":
        inside = group == mount.root or group.startswith(mount.root + "/")
        below = group[len(mount.root) :] if inside else "/"
    parts = [part for part in below.split("/") if part and part != ".."]
    return [
        mount.point.rstrip("/") + "".join("/" + part for part in parts[:depth])
        for depth in range(len(parts), -1, -1)
    ]


def _put_lowest(facts, context, name, groups, limit_of):
    if groups is None:
        facts.missing(name, "absent", "the controller is not mounted")
        return
    version, folders = groups
    limits, trouble = [], None
    for folder in folders:
        try:
            limit, source = limit_of(context, version, folder)
        except (OSError, ValueError) as error:
            trouble = error
            continue
        if limit is not None:
            limits.append((limit, source))
    if limits:
        facts.put(name, *min(limits))
    elif trouble is None or isinstance(trouble, FileNotFoundError):
        facts.missing(name, "absent", "no limit")  # the topmost group has no file for one
    else:
        facts.put(name, from_error(trouble))


def _memory_limit(context, version, folder):
    source = folder + ("/memory.max" if version == 2 else "/memory.limit_in_bytes")
    text = context.read(source).strip()
    limit = None if text == "max" or int(text) >= NO_LIMIT else int(text) // MIB
    return limit, source


def _pids_limit(context, version, folder):
    source = folder + "/pids.max"
    text = context.read(source).strip()
    return None if text == "max" else int(text), source


def _cpu_limit(context, version, folder):
    if version == 2:
        source = folder + "/cpu.max"
        quota, period = context.read(source).split()
    else:
        source = folder + "/cpu.cfs_quota_us"
        quota, period = context.read(source).strip(), context.read(folder + "/cpu.cfs_period_us")
    limit = None if quota in ("max", "-1") else round(int(quota) / float(period), 2)
    return limit, source

"""Facts about the operating system that a GPU stack runs on."""

from __future__ import annotations

from .base import NOT_COLLECTED, Facts, Maybe, ProgramSetting


class Disk(Facts, frozen=True, kw_only=True):
    """The file system under one directory that envcheck or an installer would write to."""

    path: str
    roles: list[str]  # "home", "cache", "environments", "temporary", "target"
    filesystem: Maybe[str] = NOT_COLLECTED  # "ext4", "nfs4", "overlay", ...
    mount_point: Maybe[str] = NOT_COLLECTED
    network: Maybe[bool] = NOT_COLLECTED
    noexec: Maybe[bool] = NOT_COLLECTED
    read_only: Maybe[bool] = NOT_COLLECTED
    free_mib: Maybe[int] = NOT_COLLECTED  # for this user, reserved blocks not counted
    total_mib: Maybe[int] = NOT_COLLECTED
    free_inodes: Maybe[int] = NOT_COLLECTED  # absent where the file system has no fixed number
    there: Maybe[bool] = NOT_COLLECTED  # the directory itself
    writable: Maybe[bool] = NOT_COLLECTED  # by this user, at the nearest directory that exists


class Host(Facts, frozen=True, kw_only=True):
    hostname: Maybe[str] = NOT_COLLECTED
    user: Maybe[str] = NOT_COLLECTED
    is_root: Maybe[bool] = NOT_COLLECTED
    os_id: Maybe[str] = NOT_COLLECTED  # os-release ID: "debian", "ubuntu", ...
    os_like: Maybe[list[str]] = (
        NOT_COLLECTED  # os-release ID_LIKE: ["rhel", "fedora"]; before it, of an image, "ostree"
    )
    os_version: Maybe[str] = NOT_COLLECTED
    os_name: Maybe[str] = NOT_COLLECTED
    kernel: Maybe[str] = NOT_COLLECTED
    architecture: Maybe[str] = NOT_COLLECTED  # "x86_64", "aarch64"
    libc: Maybe[str] = NOT_COLLECTED  # "glibc" or "musl"
    glibc: Maybe[str] = NOT_COLLECTED
    on_battery: Maybe[bool] = NOT_COLLECTED  # a mains adapter is there, and not plugged in
    cpu_model: Maybe[str] = NOT_COLLECTED
    cpu_flags: Maybe[list[str]] = (
        NOT_COLLECTED  # those that wheels ask for, e.g. "avx", "avx2", "fma"
    )
    cpus_present: Maybe[int] = NOT_COLLECTED
    cpus_allowed: Maybe[int] = NOT_COLLECTED  # by affinity
    memory_total_mib: Maybe[int] = NOT_COLLECTED
    memory_available_mib: Maybe[int] = NOT_COLLECTED
    commit_limit_mib: Maybe[int] = NOT_COLLECTED
    committed_mib: Maybe[int] = NOT_COLLECTED  # what programs have asked for
    cgroup_version: Maybe[int] = NOT_COLLECTED
    cgroup_memory_limit_mib: Maybe[int] = NOT_COLLECTED  # absent where there is no limit
    cgroup_oom_kills: Maybe[int] = NOT_COLLECTED  # processes of this group that the kernel killed
    cgroup_cpu_limit: Maybe[float] = NOT_COLLECTED  # in CPUs; absent where there is no limit
    cgroup_pids_limit: Maybe[int] = NOT_COLLECTED  # processes and threads; absent: no limit
    numa_nodes: Maybe[int] = NOT_COLLECTED
    shm_total_mib: Maybe[int] = NOT_COLLECTED
    memlock_kib: Maybe[int] = NOT_COLLECTED  # -1: unlimited
    memlock_hard_kib: Maybe[int] = NOT_COLLECTED  # what this user may raise it to; -1: unlimited
    stack_hard_kib: Maybe[int] = NOT_COLLECTED  # -1: unlimited
    processes: Maybe[int] = NOT_COLLECTED  # of this user, threads too; -1: unlimited
    open_files: Maybe[int] = NOT_COLLECTED  # -1: unlimited
    address_space_kib: Maybe[int] = NOT_COLLECTED  # -1: no limit
    container: Maybe[str] = NOT_COLLECTED  # "docker", "podman", "lxc", ...; absent outside of one
    hypervisor: Maybe[str] = NOT_COLLECTED  # "kvm", "microsoft", ...; absent on bare metal
    cloud: Maybe[str] = (
        NOT_COLLECTED  # "azure", "google", "amazon", ...; absent: none is known by its name
    )
    wsl: Maybe[bool] = NOT_COLLECTED  # /dev/dxg or a Microsoft kernel
    wsl_device: Maybe[bool] = NOT_COLLECTED  # in WSL: /dev/dxg, through which Windows gives GPUs
    secure_boot: Maybe[bool] = NOT_COLLECTED
    lockdown: Maybe[str] = NOT_COLLECTED  # "none", "integrity", "confidentiality"
    selinux: Maybe[str] = NOT_COLLECTED  # "enforcing", "permissive", "disabled"
    rdma_devices: Maybe[list[str]] = NOT_COLLECTED  # /sys/class/infiniband
    settings: Maybe[list[ProgramSetting]] = NOT_COLLECTED  # of the kernel (sysctl)
    disks: list[Disk] = []

"""A healthy 8 × H100 machine of which every probe answered, with a TensorFlow on it, and what is found."""

from __future__ import annotations

from typing import Any

import h100
import networks
import targets
from build import document

from envcheck.checks.engine import diagnose
from envcheck.facts.base import Probe, Unavailable
from envcheck.facts.containers import Containers, Engine
from envcheck.facts.host import Disk, Host
from envcheck.facts.kernel import (
    ConfigLine,
    DeviceNode,
    DkmsState,
    DriverPackage,
    Kernel,
    KernelEvent,
    ModuleFile,
)
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import SCHEMA, Document, Snapshot
from envcheck.facts.target import FrameworkGpu
from envcheck.findings.model import CheckResult

ABSENT = Unavailable(unavailable="absent")
RELEASE = "5.15.0-113-generic"
NAME = "NVIDIA H100 80GB HBM3"
INDEPENDENT = ("fail", "warn", "could-not-run")


def broken(words: str) -> Unavailable:
    return Unavailable(unavailable="error", detail=words)


def disk(path: str, *roles: str, **facts: Any) -> Disk:
    healthy: dict[str, Any] = {
        "filesystem": "ext4",
        "mount_point": "/",
        "network": False,
        "noexec": False,
        "read_only": False,
        "free_mib": 900_000,
        "total_mib": 1_800_000,
        "free_inodes": 90_000_000,
        "writable": True,
    }
    return Disk(path=path, roles=list(roles), **(healthy | facts))


def host(**changes: Any) -> Host:
    facts: dict[str, Any] = {
        "hostname": "<host-1>",
        "user": "<user-1>",
        "is_root": False,
        "os_id": "ubuntu",
        "os_version": "22.04",
        "os_name": "Ubuntu 22.04.4 LTS",
        "kernel": RELEASE,
        "architecture": "x86_64",
        "libc": "glibc",
        "glibc": "2.35",
        "cpu_model": "Intel(R) Xeon(R) Platinum 8480C",
        "cpu_flags": ["avx", "avx2", "avx512f", "fma"],
        "cpus_present": 224,
        "cpus_allowed": 224,
        "memory_total_mib": 2_063_000,
        "memory_available_mib": 2_000_000,
        "cgroup_version": 2,
        "cgroup_memory_limit_mib": ABSENT,
        "cgroup_cpu_limit": ABSENT,
        "numa_nodes": 2,
        "shm_total_mib": 1_031_500,
        "memlock_kib": 66_016_000,
        "open_files": 1024,
        "container": ABSENT,
        "hypervisor": ABSENT,
        "wsl": False,
        "secure_boot": False,
        "lockdown": "none",
        "selinux": ABSENT,
        "rdma_devices": [f"mlx5_{n}" for n in range(8)],
        "disks": [
            disk("<home-1>", "home"),
            disk("<home-1>/.cache", "cache"),
            disk("<home-1>/.local/share/envcheck", "environments"),
            disk("/tmp", "temporary"),
            disk("<home-1>/venv", "target"),
        ],
    }
    return Host(**(facts | changes))


def in_container(**changes: Any) -> Host:
    """The same host seen from a docker container that was started with --gpus all --ipc=host."""
    facts = {"container": "docker", "is_root": True, "memlock_kib": -1, "open_files": 1_048_576}
    return host(**(facts | changes))


def node(path: str, **changes: Any) -> DeviceNode:
    facts: dict[str, Any] = {
        "mode": "0666",
        "owner": "root",
        "group": "root",
        "usable": True,
        "char_link": True,
    }
    return DeviceNode(path=path, **(facts | changes))


def nodes(*without: str, **changes: Any) -> list[DeviceNode]:
    paths = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", *h100.NODES]
    return [node(path, **changes) for path in paths if path not in without]


def kernel(driver: str = h100.DRIVER, **changes: Any) -> Kernel:
    """The kernel's side with packages of ``driver`` by DKMS; the loaded module is h100.DRIVER's."""
    facts: dict[str, Any] = {
        "release": RELEASE,
        "driver_flavour": "open",
        "device_nodes": nodes(),
        "driver_files": [h100.file(name, driver) for name in ("libcuda", "libnvidia-ml")],
        "driver_packages": [
            DriverPackage(manager="dpkg", name=f"{name}-535", version=f"{driver}-0ubuntu1")
            for name in ("nvidia-driver", "nvidia-dkms", "nvidia-utils", "libnvidia-compute")
        ],
        "module_files": [
            ModuleFile(
                kernel=RELEASE,
                path=f"/lib/modules/{RELEASE}/updates/dkms/nvidia.ko",
                version=driver,
                flavour="open",
            )
        ],
        "dkms": [DkmsState(module="nvidia", version=driver, kernel=RELEASE, state="installed")],
        "kernels_installed": [RELEASE],
        "runfile_installer": ABSENT,
        "kept_out": [
            ConfigLine(path="/etc/modprobe.d/x.conf", module="nouveau", line="blacklist nouveau")
        ],
        "reboot_required": False,
        "reboot_required_by": ABSENT,
    }
    return h100.kernel(**(facts | changes))


def unloaded(**changes: Any) -> Kernel:
    """The kernel's side where nvidia is installed and not loaded."""
    facts: dict[str, Any] = {
        "modules": [],
        "driver_version": ABSENT,
        "driver_flavour": ABSENT,
        "device_nodes": [],
        "services": [],
    }
    return kernel(**(facts | changes))


def event(kind: Any, text: str, xid: int | None = None, address: str = "") -> KernelEvent:
    return KernelEvent(
        kind=kind,
        text=text,
        xid=ABSENT if xid is None else xid,
        pci_address=address or ABSENT,
        seconds=86_400.5,
    )


def xid(code: int, words: str, address: str = h100.ADDRESSES[h100.VICTIM]) -> KernelEvent:
    return event("xid", f"NVRM: Xid (PCI:{address[:-2]}): {code}, {words}", code, address)


def docker(**changes: Any) -> Engine:
    facts: dict[str, Any] = {
        "version": "27.1.1",
        "server_version": "27.1.1",
        "rootless": False,
        "cgroup_driver": "systemd",
        "cgroup_version": "2",
        "runtimes": ["io.containerd.runc.v2", "nvidia", "runc"],
        "default_runtime": "runc",
        "remote": False,
        "cdi_enabled": False,
    }
    return Engine(name="docker", path="/usr/bin/docker", **(facts | changes))


def containers(*engines: Engine, **changes: Any) -> Containers:
    facts: dict[str, Any] = {
        "toolkit_path": "/usr/bin/nvidia-ctk",
        "toolkit_version": "1.16.1",
        "cli_path": "/usr/bin/nvidia-container-cli",
        "cli_version": "1.16.1",
        "hook_path": "/usr/bin/nvidia-container-runtime-hook",
        "oci_hooks": [],
        "toolkit_config": "/etc/nvidia-container-runtime/config.toml",
        "toolkit_mode": "auto",
        "toolkit_no_cgroups": False,
        "cdi_specs": [],
    }
    return Containers(engines=list(engines) or [docker()], **(facts | changes))


def unbound(driver: Any = ABSENT) -> Pci:
    """The bus where another driver, or none, holds the GPUs."""
    return Pci(devices=[h100.pci_device(address, driver=driver) for address in h100.ADDRESSES])


def blind(*log: str, **changes: Any) -> Any:
    """A TensorFlow 2.19.1 that sees no GPU, maps no library for it, and said this."""
    return targets.tensorflow(**({"gpus": [], "log": list(log), "libraries": []} | changes))


def seeing(count: int, **changes: Any) -> Any:
    return targets.tensorflow(**({"gpus": [FrameworkGpu(name=NAME)] * count} | changes))


def whole(target: Document | None = None, **changes: Any) -> Snapshot:
    """The Snapshot; keyword arguments replace the machine's probes (None: was not asked for)."""
    probes = h100.sections() | {
        "host": host(),
        "kernel": kernel(),
        "containers": containers(),
        "network": networks.infiniband(),
    }
    kept = {name: probe for name, probe in (probes | changes).items() if probe is not None}
    return Snapshot(
        schema=SCHEMA,
        redacted=True,
        machine=document(**kept),
        target=targets.good_target(tensorflow=seeing(8)) if target is None else target,
    )


def with_target(**changes: Any) -> Snapshot:
    """The healthy machine with these probes of the target."""
    return whole(targets.good_target(**({"tensorflow": seeing(8)} | changes)))


def dead(outcome: Any, reason: str, **facts: Any) -> Probe[Any]:
    return Probe(outcome=outcome, reason=reason, **facts)


def diagnosed(snapshot: Snapshot) -> dict[str, CheckResult]:
    """{code: result} of all checks."""
    return {result.code: result for result in diagnose(snapshot).results}


def independent(results: dict[str, CheckResult]) -> dict[str, str]:
    """{code: outcome} of what the report tells by itself: not the consequences, not what is well."""
    return {code: r.outcome for code, r in results.items() if r.outcome in INDEPENDENT}

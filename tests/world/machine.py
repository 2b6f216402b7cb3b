"""A made-up machine: what its files, its driver, its processes and its mounts are like."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import nvml_rows as nvml
from . import smi
from .contents import Content, File, Library, Link
from .elf import kernel_module, modinfo
from .gpus import Gpu
from .pci import Device, device_files

LIB = "/usr/lib/x86_64-linux-gnu"


@dataclass
class Machine:
    name: str
    driver: str = "570.86.15"
    cuda: tuple[int, int] = (12, 8)
    flavour: str = "open"  # of the module: or "proprietary"
    kernel: str = "5.15.0-130-generic"
    os_id: str = "ubuntu"
    os_version: str = "22.04"
    os_name: str = "Ubuntu 22.04.5 LTS"
    vendor: str = "Supermicro"
    hypervisor: bool = False
    memory_gib: int = 2048
    available_gib: int = 1900
    cpus: int = 192
    shm: str = "size=1024g"
    gpus: list[Gpu] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    modules: list[str] = field(
        default_factory=lambda: ["nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"]
    )
    module_driver: str | None = None  # of the loaded module, where it is not ``driver``
    packages: dict[str, str] = field(default_factory=dict)
    services: list[str] = field(default_factory=list)  # programs that run
    log: list[str] = field(default_factory=list)
    files: dict[str, Content] = field(default_factory=dict)  # laid over what the rest makes
    nvml_first: list[str] = field(default_factory=list)  # rows that come before the machine's own
    nvml_version: str | None = None
    pair_level: int = 40
    p2p: int = 0
    cuda_init: str = "0 -"
    hidden_from_cuda: list[int] = field(default_factory=list)
    smi_out: str | None = None  # instead of the document
    smi_code: int = 0
    smi_script: str | None = None  # instead of all that
    smi_gpus: list[int] | None = None  # the GPUs that it still lists
    environment: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    mounts: list[tuple[str, str]] = field(default_factory=list)  # (point, tmpfs options)
    limits: dict[str, int] = field(default_factory=dict)  # RLIMIT_* by name
    user: bool = False  # nobody special instead of root
    cgroup2: bool = False  # control groups of version 2 are mounted
    allowed_cpus: int = 0  # how many CPUs the command line may run on; 0: all of them
    uefi: bool = True
    secure_boot: bool = False

    def gpu(self, index: int) -> Gpu:
        return self.gpus[index]

    def device(self, address: str) -> Device:
        return next(device for device in self.devices if device.address == address)

    def of(self, index: int) -> Device:
        """A GPU's PCI device."""
        return self.device(self.gpus[index].address)

    @property
    def loaded(self) -> str | None:
        """The loaded module's version; None where none is."""
        return (self.module_driver or self.driver) if "nvidia" in self.modules else None

    def write(self, path: str, content: Content) -> None:
        self.files[path] = content

    def append(self, path: str, text: str) -> None:
        before = self.files.get(path, "")
        assert isinstance(before, str)
        self.files[path] = before + text

    def say(self, *lines: str) -> None:
        """Into the kernel's log."""
        self.log += lines


def tree(machine: Machine) -> dict[str, Content]:
    """Every file of the machine by its path."""
    found: dict[str, Content] = {}
    for part in (_system, _proc, _sys, _driver, _device_nodes, _answers):
        found.update(part(machine))
    found.update(machine.files)
    return {path: content for path, content in found.items() if content is not None}


def _system(m: Machine) -> dict[str, Content]:
    installed = "".join(
        f"Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {version}\n\n"
        for name, version in m.packages.items()
    )
    like = {"ubuntu": "debian", "rocky": "rhel centos fedora", "debian": ""}.get(m.os_id, "")
    found: dict[str, Content] = {
        "/etc/os-release": f'NAME="{m.os_id}"\nID={m.os_id}\nID_LIKE="{like}"\nVERSION_ID="{m.os_version}"\n'
        f'PRETTY_NAME="{m.os_name}"\n',
        "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/bash\n",
        "/etc/group": "root:x:0:\nvideo:x:44:\nann:x:1000:\n",
        "/etc/hostname": "gpu-07\n",
        "/root/.profile": "",
        "/home/ann/.profile": "",
        "/tmp/.keep": "",
        "/run/systemd/system/.keep": "",
        "/usr/bin/systemctl": "#!/bin/sh\nexit 0\n",
    }
    if m.os_id in ("ubuntu", "debian"):
        found["/var/lib/dpkg/status"] = installed
        found["/usr/bin/apt-get"] = "#!/bin/sh\nexit 0\n"
    return found


def _proc(m: Machine) -> dict[str, Content]:
    flags = "fpu sse4_1 sse4_2 avx avx2 fma f16c avx512f avx512bw avx512_vnni avx512_bf16 amx_tile"
    if m.hypervisor:
        flags += " hypervisor"
    sizes = [
        f"MemTotal: {m.memory_gib * 1048576} kB",
        f"MemAvailable: {m.available_gib * 1048576} kB",
    ]
    return {
        "/proc/sys/kernel/osrelease": m.kernel + "\n",
        "/proc/cmdline": f"BOOT_IMAGE=/vmlinuz-{m.kernel} root=/dev/nvme0n1p2 ro\n",
        "/proc/modules": "".join(
            f"{name} 1048576 0 - Live 0x0000000000000000 (OE)\n" for name in m.modules
        ),
        "/proc/stat": "cpu  0 0 0 0\nbtime 1795240000\n",  # before every log of these machines
        "/proc/meminfo": "\n".join(sizes) + "\n",
        "/proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8480+\n"
        f"flags\t\t: {flags}\n\n",
    }


def _sys(m: Machine) -> dict[str, Content]:
    found: dict[str, Content] = {
        "/sys/class/dmi/id/sys_vendor": m.vendor + "\n",
        "/sys/devices/system/cpu/present": f"0-{m.cpus - 1}\n",
        "/sys/devices/system/node/has_cpu": "0-1\n" if m.cpus > 64 else "0\n",
        "/sys/kernel/.keep": "",
        "/sys/bus/pci/devices/.keep": "",
    }
    if m.uefi:
        variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
        found[variable] = b"\x06\0\0\0" + bytes([m.secure_boot])
        found["/sys/kernel/security/lockdown"] = "[none] integrity confidentiality\n"
    for device in m.devices:
        found |= device_files(device)
    for name in m.modules:
        found[f"/sys/module/{name}/refcnt"] = "0\n"
        if name.startswith("nvidia"):
            found[f"/sys/module/{name}/version"] = f"{m.loaded or m.driver}\n"
    return found


def _driver(m: Machine) -> dict[str, Content]:
    """What is installed of the driver, and what the loaded one says."""
    found: dict[str, Content] = {}
    for name, source in (("libcuda", "cuda"), ("libnvidia-ml", "nvml")):
        found[f"{LIB}/{name}.so.{m.driver}"] = Library(source)
        found[f"{LIB}/{name}.so.1"] = Link(f"{name}.so.{m.driver}")
    found[f"{LIB}/libcuda.so"] = Link("libcuda.so.1")
    for name in ("nvidia-ptxjitcompiler", "nvidia-nvvm", "nvidia-gpucomp", "nvidia-cfg"):
        found[f"{LIB}/lib{name}.so.{m.driver}"] = b"\x7fELF"
    found |= module_on_disk(m.kernel, m.driver, m.flavour)
    found[f"/lib/modules/{m.kernel}/kernel/drivers/.keep"] = ""
    found[f"/lib/modules/{m.kernel}/build/.config"] = ""
    if m.loaded is None:
        return found
    words = {
        "open": f"NVIDIA UNIX Open Kernel Module for x86_64  {m.loaded}  Release Build  (dvs-builder)",
        "proprietary": f"NVIDIA UNIX x86_64 Kernel Module  {m.loaded}  Sat Jan 25 01:11:02 UTC 2025",
    }
    found["/proc/driver/nvidia/version"] = (
        f"NVRM version: {words[m.flavour]}\nGCC version:  gcc version 12.3.0\n"
    )
    found["/proc/driver/nvidia/params"] = (
        "ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nModifyDeviceFiles: 1\n"
    )
    for gpu in m.gpus:
        found[f"/proc/driver/nvidia/gpus/{gpu.address}/information"] = (
            f"Model: \t\t {gpu.name}\nGPU UUID: \t GPU-{gpu.uuid}\nBus Location: \t {gpu.address}\n"
            f"Device Minor: \t {gpu.minor}\nGPU Excluded:\t No\n"
        )
    return found


def module_on_disk(kernel: str, driver: str, flavour: str = "open") -> dict[str, Content]:
    """The driver's modules for a kernel, as DKMS puts them there."""
    licence = {"open": "Dual MIT/GPL", "proprietary": "NVIDIA"}[flavour]
    built = kernel_module(modinfo(driver, licence))
    found: dict[str, Content] = {
        f"/lib/modules/{kernel}/updates/dkms/{name}.ko": built
        for name in ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm", "nvidia-peermem")
    }
    made = f"/var/lib/dkms/nvidia/{driver}/{kernel}/x86_64"
    found[f"{made}/module/nvidia.ko"] = built
    found[f"{made}/log/make.log"] = (
        f"DKMS make.log for nvidia-{driver} for kernel {kernel} (x86_64)\n"
    )
    found[f"/var/lib/dkms/nvidia/kernel-{kernel}-x86_64"] = Link(f"{driver}/{kernel}/x86_64")
    return found


def _device_nodes(m: Machine) -> dict[str, Content]:
    found: dict[str, Content] = {}
    if "nvidia" in m.modules:
        found["/dev/nvidiactl"] = File("", 0o666)
        for gpu in m.gpus:
            found[f"/dev/nvidia{gpu.minor}"] = File("", 0o666)
    if "nvidia_uvm" in m.modules:
        found["/dev/nvidia-uvm"] = File("", 0o666)
        found["/dev/nvidia-uvm-tools"] = File("", 0o666)
    return found


def nvml_rows(m: Machine) -> list[str]:
    """What NVML answers: rows as c/nvml.c describes them."""
    rows = m.nvml_first + nvml.system_rows(m.driver, m.cuda, len(m.gpus), m.nvml_version)
    for gpu in m.gpus:
        rows += nvml.rows(gpu)
    return rows + nvml.pair_rows(m.gpus, m.pair_level, m.p2p)


def cuda_rows(m: Machine) -> list[str]:
    """What libcuda answers: rows as c/devices.c describes them."""
    devices = [gpu for gpu in m.gpus if gpu.cuda and gpu.index not in m.hidden_from_cuda]
    rows = [f"init {m.cuda_init}", f"version {m.cuda[0] * 1000 + m.cuda[1] * 10}"]
    for g in devices:
        major, minor = g.capability
        rows.append(f"device {g.name}|{g.address}|{g.uuid}|{major}|{minor}|{g.cores // 128}")
    return rows


def _answers(m: Machine) -> dict[str, Content]:
    """What the stand-ins of NVML, CUDA and nvidia-smi read, and the kernel's log."""
    listed = m.gpus if m.smi_gpus is None else [m.gpus[n] for n in m.smi_gpus]
    out = smi.document(m.driver, m.cuda, listed) if m.smi_out is None else m.smi_out
    script = m.smi_script or f"cat /.made/smi\nexit {m.smi_code}"
    log = "".join(f"6,{n},{(n + 5) * 1000000},-;{line}\n" for n, line in enumerate([*BOOT, *m.log]))
    return {
        "/.made/cuda": "\n".join(cuda_rows(m)) + "\n",
        "/.made/nvml": "\n".join(nvml_rows(m)) + "\n",
        "/.made/smi": out,
        "/usr/bin/nvidia-smi": f"#!/bin/sh\n{script}\n",
        "/dev/kmsg": log,
    }


BOOT = (
    "Linux version 5.15.0-130-generic (buildd@lcy02-amd64-001)",
    "nvidia-nvlink: Nvlink Core is being initialized, major device number 510",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64",
    "nvidia-uvm: Loaded the UVM driver, major device number 508.",
)

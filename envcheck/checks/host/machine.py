"""Checks on the host: architecture, CPU, C library, memory, and where all of it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from packaging.version import Version

from ...data import table
from ...facts.base import known
from ...facts.missing import Skip
from ...facts.view import SnapshotView, need
from ...findings.commands import fill_in
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..registry import check
from ..system_commands import in_engine
from .places import gigabytes, host_of

# The machine names, as uname has them, that GPU builds of TensorFlow exist for.
WHEELS_FOR = ("x86_64",)
CONTAINERS_FOR = ("x86_64", "aarch64")
LEAST_MEMORY_MIB = 4096


@check(
    "HOST-001",
    title="NVIDIA's GPU software exists for this architecture",
    problem="no NVIDIA software exists for this architecture",
    about="GPU builds of TensorFlow exist as wheels for x86_64, and NVIDIA's containers for x86_64 and"
    " for aarch64. On any other architecture, a 32-bit system"
    " among them, there is nothing to install. Judged by what the kernel calls the machine.",
    sources=(
        "wheel file names of tensorflow 2.13 to 2.22 and nvidia-tensorflow 20.10 to 23.03",
        "NVIDIA NGC catalogue, multi-arch images",
    ),
)
def architecture(view: SnapshotView) -> Iterator[Verdict]:
    machine = need(host_of(view).architecture, "the architecture")
    if machine in WHEELS_FOR:
        yield Passed(machine)
    elif machine in CONTAINERS_FOR:
        yield Passed(
            f"{machine}: GPU builds of TensorFlow come as NVIDIA's containers, not as wheels"
        )
    else:
        yield Finding(
            "fail",
            f"This system is {machine}: no GPU build of TensorFlow exists for it, neither as wheels nor"
            " as NVIDIA's containers.",
            evidence=[view.evidence("machine.host.architecture")],
            remedy=Remedy(
                "Use a 64-bit system on x86_64 (or on aarch64, with NVIDIA's containers)."
            ),
        )


@check(
    "HOST-002",
    title="The CPU has the instructions that the wheels use",
    problem="the CPU lacks instructions that the wheels use",
    about="TensorFlow's x86 wheels have been built with AVX since 1.6. On a CPU without it, or in a"
    " virtual machine whose hypervisor hides it, importing TensorFlow ends with SIGILL ('Illegal"
    " instruction') and no further word. Judged by the CPU's flags as the kernel shows them.",
    sources=("tensorflow#17411", "tensorflow#19766", "tensorflow#46496", "tensorflow#62342"),
)
def cpu_instructions(view: SnapshotView) -> Iterator[Verdict]:
    host = host_of(view)
    machine = need(host.architecture, "the architecture")
    if machine != "x86_64":
        raise Skip(f"AVX belongs to x86_64; this is {machine}")
    flags = need(host.cpu_flags, "the CPU's flags")
    model = known(host.cpu_model) or "this CPU"
    if "avx" in flags:
        best = next(
            name
            for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"))
            if flag in flags
        )
        yield Passed(f"{model}, up to {best}")
        return
    hypervisor = known(host.hypervisor)
    yield Finding(
        "fail",
        f"There is no AVX on {model}: TensorFlow's wheels die with 'Illegal instruction' when imported.",
        evidence=[view.evidence("machine.host.cpu_flags"), view.evidence("machine.host.cpu_model")],
        remedy=Remedy(
            "Let the virtual machine see the host's CPU, on the host of the virtual machine; then stop it"
            " and start it again.",
            [
                f"sudo virt-xml {fill_in('NAME', 'the virtual machine')} --edit --cpu host-passthrough"
            ]
            if hypervisor == "kvm"
            else [],
        )
        if hypervisor
        else Remedy(
            "Use a machine with a newer CPU: every Intel and AMD server CPU since 2011 has AVX."
        ),
    )


@cache
def _glibc_floors() -> tuple[tuple[Version, tuple[int, int]], ...]:
    """(TensorFlow version, oldest glibc of its wheels), newest version first."""
    floors = []
    for row in table("pypi_tf"):
        tags = re.findall(r"manylinux_(\d+)_(\d+)_x86_64|(manylinux2014)_x86_64", row["source"])
        found = [(2, 17) if old else (int(major), int(minor)) for major, minor, old in tags]
        if found:
            floors.append((Version(row["tensorflow"]), min(found)))
    return tuple(sorted(floors, reverse=True))


@check(
    "HOST-003",
    title="The C library runs the wheels",
    problem="the C library is too old, or not glibc",
    about="Wheels for Linux name the oldest glibc that they run on: manylinux2014 is glibc 2.17,"
    " manylinux_2_27 is 2.27. On an older one, pip finds no matching distribution, or an import ends with"
    ' "version `GLIBC_2.29\' not found". No GPU build exists for musl (Alpine). Judged by the glibc that'
    " the interpreter runs on, against the tags of the wheels in envcheck's tables.",
    sources=(
        "wheel file names of tensorflow 2.13 to 2.22 on PyPI",
        "PEP 600",
        "NVIDIA/tensorflow#32 (wheels before 22.01 asked for glibc 2.29)",
    ),
)
def c_library(view: SnapshotView) -> Iterator[Verdict]:
    host = host_of(view)
    if need(host.libc, "the C library") == "musl":
        yield Finding(
            "fail",
            "The C library is musl, and every GPU build of TensorFlow needs glibc: no wheel installs here.",
            evidence=[view.evidence("machine.host.libc")],
            remedy=Remedy(
                "Use a distribution with glibc (Debian, Ubuntu, Rocky), or an image of one."
            ),
        )
        return
    text = need(host.glibc, "glibc's version")
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None:
        raise Skip(f"glibc's version is not understood: {text}")
    glibc = (int(match.group(1)), int(match.group(2)))
    floors = _glibc_floors()
    newest, needed = floors[0]
    if glibc >= needed:
        old = "" if glibc >= (2, 29) else "; nvidia-tensorflow before 22.01 asks for 2.29"
        yield Passed(f"glibc {text}, all wheels in the tables run on it{old}")
        return
    fitting = next((version for version, floor in floors if floor <= glibc), None)
    message = (
        f"glibc {text} is older than the {needed[0]}.{needed[1]} that TensorFlow {newest} needs"
    )
    yield Finding(
        "warn" if fitting else "fail",
        f"{message}: the newest that installs here is {fitting}."
        if fitting
        else f"{message}, and no TensorFlow in envcheck's tables installs here.",
        evidence=[view.evidence("machine.host.glibc")],
        remedy=Remedy(
            "Upgrade the distribution, or run NVIDIA's container, which brings its own glibc.",
            [f'python3 -m pip install "tensorflow[and-cuda]=={fitting}"'] if fitting else [],
        ),
    )


@check(
    "HOST-004",
    title="Enough memory for a training process",
    problem="too little memory",
    about="The framework, the CUDA libraries and the data pipeline live in host memory before anything"
    " reaches the GPU. Where a cgroup (a container, a batch job) allows less than the machine has, the"
    " kernel kills the process at the limit, and all that is left is 'Killed'. Judged by the smaller of"
    " the machine's memory and the limits of all control groups above this process. The line of 4 GiB is"
    " envcheck's own, not a published figure.",
    sources=("Linux kernel documentation, cgroup v1 and v2 memory controllers",),
)
def memory(view: SnapshotView) -> Iterator[Verdict]:
    host = host_of(view)
    total = need(host.memory_total_mib, "the machine's memory")
    limit = known(host.cgroup_memory_limit_mib)
    limited = limit is not None and limit < total
    effective = limit if limit is not None and limited else total
    bound = " (limited by its control group)" if limited else ""
    if effective >= LEAST_MEMORY_MIB:
        yield Passed(f"{gigabytes(effective)}{bound}")
        return
    evidence = [view.evidence("machine.host.memory_total_mib")]
    remedy = Remedy(
        "Train on a machine with more memory, or with smaller batches and prefetch buffers."
    )
    if limited:
        evidence.append(view.evidence("machine.host.cgroup_memory_limit_mib"))
        remedy = Remedy(
            "Give the container or job more memory.",
            [
                *(in_engine(view, "memory") if known(host.container) else []),
                "sbatch --mem 32G SCRIPT",
            ],
        )
    yield Finding(
        "warn",
        f"Only {gigabytes(effective)} of memory{bound}: a framework with the CUDA libraries may be killed"
        " while it loads.",
        evidence=evidence,
        remedy=remedy,
    )


@check(
    "HOST-011",
    title="Where this system runs",
    problem="the kind of system is not known",
    about="Says whether this is bare metal, a virtual machine, a container or WSL2, and whether Secure"
    " Boot and lockdown ask for signed kernel modules, because much of what the other checks say depends"
    " on it: in WSL2 the GPU is no PCI device, and in a container the driver belongs to the host."
    " It never fails.",
    sources=(
        "systemd-detect-virt(1), for the signs of each",
        "microsoft/WSL documentation, GPU support",
    ),
)
def place(view: SnapshotView) -> Iterator[Verdict]:
    host = host_of(view)
    words = []
    if known(host.wsl):
        words.append("WSL2: the GPU is reached through /dev/dxg, not as a PCI device")
    elif hypervisor := known(host.hypervisor):
        name = "of an unknown kind" if hypervisor == "unknown" else f"({hypervisor})"
        words.append(f"virtual machine {name}")
    elif container := known(host.container):
        words.append(f"container ({container})")
    else:
        words.append("bare metal")
    if known(host.container) and not words[0].startswith("container"):
        words.append(f"in a container ({known(host.container)})")
    if known(host.secure_boot):
        words.append("Secure Boot is on: kernel modules must be signed")
    if known(host.lockdown) in ("integrity", "confidentiality"):
        words.append(f"kernel lockdown {known(host.lockdown)}")
    yield Passed(", ".join(words))

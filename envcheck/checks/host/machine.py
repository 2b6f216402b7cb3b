"""Checks on the host: architecture, CPU, C library, memory, and where all of it runs."""

from __future__ import annotations

import re
from functools import cache

from packaging.version import Version

from ...data.tensorflow_wheels import oldest_glibc, tensorflow_builds
from ...data.versions import parse_version
from ...facts.containers import Containers
from ..declared import declared_causes, declared_rows
from ..nvidia_devices import event_evidence
from ..reading import Kernel, Skip, SnapshotView, facts_or, known, need
from ..settings import Conditions, wrong_here
from ..system_commands import in_engine
from ..verdicts import Passed, Verdicts, check, fill_in
from .places import gigabytes, host_of

CAUSE = declared_causes(__name__)

# How GPU builds of TensorFlow come, by the machine's name as uname has it.
_BUILDS = {
    "x86_64": "",
    "aarch64": ": GPU builds of TensorFlow come as NVIDIA's containers alone",
    "ppc64le": ": GPU builds of TensorFlow come from Open-CE's conda channel alone",
}
LEAST_MEMORY_MIB = 4096


@check("HOST-001")
def architecture(view: SnapshotView) -> Verdicts:
    machine = need(host_of(view).architecture, "the architecture")
    if machine in _BUILDS:
        yield Passed(f"{machine}{_BUILDS[machine]}")
    else:
        evidence = [view.evidence("machine.host.architecture")]
        yield CAUSE["architecture-without-builds"].found(evidence=evidence, architecture=machine)


@check("HOST-002")
def cpu_instructions(view: SnapshotView) -> Verdicts:
    host = host_of(view)
    machine = need(host.architecture, "the architecture")
    if machine != "x86_64":
        raise Skip(f"AVX belongs to x86_64; this is {machine}")
    flags = need(host.cpu_flags, "the CPU's flags")
    model, hypervisor = known(host.cpu_model) or "this CPU", known(host.hypervisor)
    if "avx" in flags:
        best = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "AVX"
        yield Passed(f"{model}, up to {best}")
        return
    vm = fill_in("NAME", "the virtual machine")
    yield (CAUSE["avx-hidden"] if hypervisor else CAUSE["no-avx"]).found(
        evidence=[view.evidence("machine.host.cpu_flags"), view.evidence("machine.host.cpu_model")],
        commands=[f"sudo virt-xml {vm} --edit --cpu host-passthrough"] * (hypervisor == "kvm"),
        cpu=model,
    )


@cache
def _glibc_floors() -> list[tuple[Version, Version]]:
    """(TensorFlow version, oldest glibc of its wheels), newest version first."""
    floors = ((one.version, oldest_glibc(one)) for one in reversed(tensorflow_builds()))
    return [(version, floor) for version, floor in floors if floor is not None]


@check("HOST-003")
def c_library(view: SnapshotView) -> Verdicts:
    host = host_of(view)
    if need(host.libc, "the C library") == "musl":
        yield CAUSE["musl"].found(evidence=[view.evidence("machine.host.libc")])
        return
    text = need(host.glibc, "glibc's version")
    glibc = parse_version(text)
    if glibc is None:
        raise Skip(f"glibc's version is not understood: {text}")
    newest, needed = _glibc_floors()[0]
    if glibc >= needed:
        old = "" if glibc >= Version("2.29") else "; nvidia-tensorflow before 22.01 asks for 2.29"
        yield Passed(f"glibc {text}, all wheels in the tables run on it{old}")
        return
    fitting = next((version for version, floor in _glibc_floors() if floor <= glibc), None)
    if fitting is not None:
        yield Passed(f"glibc {text}: TensorFlow {fitting} is the newest that runs on it")
        return
    yield CAUSE["glibc-too-old"].found(
        evidence=[view.evidence("machine.host.glibc")],
        glibc=text,
        needed=str(needed),
        newest=str(newest),
    )


KILLED = CAUSE["killed-for-memory"]
_COMMITTED = declared_rows(__name__, "HOST-004")
_NEARLY = 0.95  # of CommitLimit
_TRAINS = re.compile(
    r"Kill(?:ed)? process \d{1,10} \(((?:python|pt_|torchrun|train|ray|vllm|jupyter)[^)]{0,30})"
)


@check("HOST-004")
def memory(view: SnapshotView) -> Verdicts:
    host = host_of(view)
    total = need(host.memory_total_mib, "the machine's memory")
    limit = known(host.cgroup_memory_limit_mib)
    limited = limit is not None and limit < total
    effective = min(total, total if limit is None else limit)
    bound = " (limited by its control group)" if limited else ""
    log = known(facts_or(view.machine.kernel, Kernel).log) or []
    lines = [one for one in log if one.kind == "out-of-memory" and _TRAINS.search(one.text)]
    kills = known(host.cgroup_oom_kills) or 0
    asked, most = known(host.committed_mib) or 0, known(host.commit_limit_mib) or 0
    refused = any("not enough memory" in one.text for one in log if one.kind == "out-of-memory")
    near = f"{gigabytes(asked)} of {gigabytes(most)}"
    conditions: Conditions = {
        "committed": lambda: near if most and (refused or asked >= _NEARLY * most) else ""
    }
    settings = known(host.settings) or []
    yield from wrong_here(view, _COMMITTED, "machine.host.settings", settings, conditions)
    if lines or kills:
        found = _TRAINS.search(lines[-1].text) if lines else None
        shown = [event_evidence(view, lines[-1])] if lines else []
        own = [view.evidence("machine.host.cgroup_oom_kills")] if kills else []
        within = f": {gigabytes(effective)}{bound}" if limited or not lines else ""
        yield KILLED.found(
            evidence=[*shown, *own],
            commands=[
                *(in_engine(view, "memory") if known(host.container) else []),
                *KILLED.commands,
            ],
            programs=found[1] if found else f"{kills} processes of this control group",
            memory=gigabytes(effective),
            limited=within,
        )
        return
    if effective >= LEAST_MEMORY_MIB:
        yield Passed(f"{gigabytes(effective)}{bound}")
        return
    fields = ["memory_total_mib", "cgroup_memory_limit_mib"][: 1 + limited]
    engine = in_engine(view, "memory") if known(host.container) else []
    yield CAUSE["little-memory"].found(
        evidence=[view.evidence(f"machine.host.{field}") for field in fields],
        commands=[*engine, "sbatch --mem 32G SCRIPT"] if limited else [],
        memory=gigabytes(effective),
        limited=bound,
    )


_ROWS = declared_rows(__name__, "HOST-010")


@check("HOST-010")
def user_namespaces(view: SnapshotView) -> Verdicts:
    host = host_of(view)
    settings = need(host.settings, "the kernel's settings")
    engines = facts_or(view.machine.containers, Containers).engines
    rootless = [one for one in engines if known(one.rootless) is True]
    fresh = (1, 3, 4)  # of apptainer, which brings a profile
    bare = [one for one in rootless if one.name == "apptainer"]
    bare = [
        one
        for one in bare
        if (parse_version(known(one.version) or "") or Version("9")).release < fresh
    ]
    if not rootless:
        raise Skip("no engine that works without root")
    conditions: Conditions = {
        "rootless": lambda: ", ".join(one.name for one in rootless),
        "apptainer": lambda: ", ".join(one.name for one in bare),
    }
    yield from wrong_here(view, _ROWS, "machine.host.settings", settings, conditions)
    yield Passed(f"{len(settings)} settings")

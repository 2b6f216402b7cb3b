"""The facts that stand behind an area's outcome, the most important first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ..facts.base import known
from ..facts.snapshot import Document, Snapshot
from ..facts.target import Framework, Library
from ..tensorcores.mode_verdict import ModeVerdict
from .machine import cuda_version, driver_version, facts, gpu_groups, gpu_phrase
from .plain import number_of
from .tensorcore_rows import can_be_proven

# By their SONAMEs, in the order in which they matter.
_LIBRARIES = {
    "libcudart": "CUDA",
    "libcudnn": "cuDNN",
    "libcublas": "cuBLAS",
    "libnccl": "NCCL",
    "libnvinfer": "TensorRT",
}
_FACTS, _CHARACTERS = 6, 40  # of an area; of a fact


def area_facts(area: str, snapshot: Snapshot, judged: Iterable[ModeVerdict] = ()) -> list[str]:
    """Empty where the Snapshot has none. ``judged``: what was judged of Tensor Cores."""
    found = _AREAS.get(area)
    facts = _tensorcores(judged) if area == "tensorcores" else found(snapshot) if found else ()
    shown = [fact for fact in facts if fact][:_FACTS]
    return [one if len(one) <= _CHARACTERS else f"{one[: _CHARACTERS - 1]}…" for one in shown]


def _host(snapshot: Snapshot) -> Iterator[str]:
    host = facts(snapshot.machine.host)
    if host is None:
        return
    if kernel := known(host.kernel):
        yield f"Linux {kernel}"
    if glibc := known(host.glibc):
        yield f"glibc {glibc}"
    if memory := known(host.memory_total_mib):
        yield f"{max(1, round(memory / 1024))} GiB of memory"
    if cpus := known(host.cpus_allowed) or known(host.cpus_present):
        yield number_of(cpus, "CPU")


def _pci(snapshot: Snapshot) -> Iterator[str]:
    pci = facts(snapshot.machine.pci)
    devices = None if pci is None else known(pci.devices)
    if devices is not None:
        kinds = Counter(device.kind for device in devices)
        yield number_of(kinds["gpu"], "NVIDIA GPU")
        yield number_of(kinds["nvswitch"], "NVSwitch", "NVSwitches") if kinds["nvswitch"] else ""


def _driver(snapshot: Snapshot) -> Iterator[str]:
    yield driver_version(snapshot.machine) or ""
    cuda = cuda_version(snapshot.machine)
    yield f"CUDA {cuda}" if cuda else ""


def _gpu(snapshot: Snapshot) -> Iterator[str]:
    groups = gpu_groups(snapshot)
    yield gpu_phrase(groups) if groups else ""


def _container(snapshot: Snapshot) -> Iterator[str]:
    containers = facts(snapshot.machine.containers)
    for engine in containers.engines if containers is not None else ():
        version = known(engine.server_version) or known(engine.version)
        yield f"{engine.name} {version}" if version else engine.name


def _libraries(snapshot: Snapshot) -> Iterator[str]:
    """As the frameworks mapped them, else as dlopen found them."""
    if snapshot.target is None:
        return
    loader = facts(snapshot.target.loader)
    loaded = [one for framework in _frameworks(snapshot.target) for one in framework.libraries]
    loaded += [] if loader is None else loader.libraries
    for library, name in _LIBRARIES.items():
        versions = [
            f"{_whose(one)}{name} {version}"
            for one in loaded
            if one.name == library and (version := known(one.version))
        ]
        yield versions[0] if versions else ""


def _whose(library: Library) -> str:
    foreign = known(library.origin) in ("system", "ld.so.cache", "LD_LIBRARY_PATH")
    return "the system's " if foreign and library.how == "dlopen" else ""


def _framework(snapshot: Snapshot) -> Iterator[str]:
    for framework in _frameworks(snapshot.target) if snapshot.target is not None else ():
        gpus = known(framework.gpus)
        if framework.imported:
            sees = "" if gpus is None else f" sees {number_of(len(gpus), 'GPU')}"
            yield " ".join((framework.name, known(framework.version) or "")).rstrip() + sees


def _frameworks(target: Document) -> Iterable[Framework]:
    found = (facts(probe) for probe in (target.tensorflow, target.torch, target.jax))
    return [framework for framework in found if framework is not None]


def _environment(snapshot: Snapshot) -> Iterator[str]:
    environment = facts(snapshot.target.environment) if snapshot.target is not None else None
    if environment is not None:
        yield from (f"{name}={value}" for name, value in environment.variables.items())


def _tensorcores(judged: Iterable[ModeVerdict]) -> Iterator[str]:
    """ "proven: L0 5/5", "L1 4/5": of what could be; controls and plain FP32 cannot."""
    counted: dict[str, list[bool]] = {}
    for row in filter(can_be_proven, judged):
        counted.setdefault(row.level, []).append(row.verdict == "proven")
    for number, (level, proven) in enumerate(sorted(counted.items())):
        yield f"{'' if number else 'proven: '}{level} {sum(proven)}/{len(proven)}"


_AREAS: dict[str, Callable[[Snapshot], Iterator[str]]] = {
    "host": _host,
    "pci": _pci,
    "driver": _driver,
    "gpu": _gpu,
    "container": _container,
    "libraries": _libraries,
    "framework": _framework,
    "environment": _environment,
}

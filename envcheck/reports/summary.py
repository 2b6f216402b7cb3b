"""What a tired person wants to read of an area: a few facts, the most important first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ..checks.driver.libcuda import library_version
from ..facts.base import known
from ..facts.snapshot import Document, Snapshot
from ..facts.target import Framework, Library
from ..facts.view import is_container
from ..tensorcores.mode_verdict import ModeVerdict
from .machine import cuda_version, driver_version, facts, gpu_groups, gpu_phrase
from .plain import number_of

# As their SONAMEs and a reader's mouth have them, in the order in which they matter.
_LIBRARIES = {
    "libcudart": "CUDA",
    "libcudnn": "cuDNN",
    "libcublas": "cuBLAS",
    "libnccl": "NCCL",
    "libnvinfer": "TensorRT",
}


def area_facts(area: str, snapshot: Snapshot, judged: Iterable[ModeVerdict] = ()) -> list[str]:
    """The area's facts, most important first; empty where the Snapshot has none.

    ``judged`` is what was judged of Tensor Cores.
    """
    if area == "tensorcores":
        return list(_tensorcores(judged))
    tell = _AREAS.get(area)
    return [] if tell is None else [fact for fact in tell(snapshot) if fact]


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
        yield f"{cpus} CPU{'s' if cpus > 1 else ''}"


def _pci(snapshot: Snapshot) -> Iterator[str]:
    pci = facts(snapshot.machine.pci)
    devices = None if pci is None else known(pci.devices)
    if devices is None:
        return
    kinds = Counter(device.kind for device in devices)
    yield number_of(kinds["gpu"], "NVIDIA GPU")
    if kinds["nvswitch"]:
        yield number_of(kinds["nvswitch"], "NVSwitch", "NVSwitches")


def _kernel(snapshot: Snapshot) -> Iterator[str]:
    kernel = facts(snapshot.machine.kernel)
    if kernel is None:
        return
    if version := known(kernel.driver_version):
        flavour = known(kernel.driver_flavour)
        yield f"nvidia {version}" + (f" ({flavour} modules)" if flavour else "")
    elif modules := known(kernel.modules):
        yield "loaded: " + ", ".join(module.name for module in modules)
    else:
        yield "no NVIDIA module loaded" if modules is not None else ""


def _driver(snapshot: Snapshot) -> Iterator[str]:
    yield driver_version(snapshot.machine) or ""
    cuda = cuda_version(snapshot.machine)
    yield f"CUDA {cuda}" if cuda else ""


def _gpu(snapshot: Snapshot) -> Iterator[str]:
    groups = gpu_groups(snapshot)
    yield gpu_phrase(groups) if groups else ""


def _container(snapshot: Snapshot) -> Iterator[str]:
    containers = facts(snapshot.machine.containers)
    if containers is None:
        return
    for engine in containers.engines:
        version = known(engine.server_version) or known(engine.version)
        yield f"{engine.name} {version}" if version else engine.name
    if not containers.engines:
        yield "no container engine"
    if toolkit := known(containers.toolkit_version):
        yield f"nvidia-container-toolkit {toolkit}"


def _boundary(snapshot: Snapshot) -> Iterator[str]:
    target = snapshot.target
    if target is None or not is_container(target):
        return
    host, nvml, cuda = facts(target.host), facts(target.nvml), facts(target.cuda)
    if nvml is not None and (count := known(nvml.gpu_count)) is not None:
        yield f"{number_of(count, 'GPU')} inside"
    if cuda is not None:
        version = library_version(cuda)
        yield f"libcuda {version}" if version else ""
    if host is not None and (total := known(host.shm_total_mib)) is not None:
        yield f"/dev/shm of {total} MiB"


def _network(snapshot: Snapshot) -> Iterator[str]:
    network = facts(snapshot.machine.network)
    if network is None:
        return
    ports = [port for device in known(network.rdma) or [] for port in device.ports]
    if ports:
        active = sum(known(port.state) == "ACTIVE" for port in ports)
        yield f"{active} of {number_of(len(ports), 'RDMA port')} active"
    for one in known(network.interfaces) or []:
        if known(one.kind) in ("physical", "bond") and known(one.running):
            speed = known(one.speed_mbit)
            yield one.name + (f" {speed / 1000:g} Gb/s" if speed else "")


def _config(snapshot: Snapshot) -> Iterator[str]:
    config = facts(snapshot.target.packaging_config) if snapshot.target is not None else None
    if config is not None:
        files = sum(file.level != "environment" for file in config.files)
        yield number_of(files, "configuration file")
        yield number_of(len(config.files) - files, "variable") if files < len(config.files) else ""


def _packages(snapshot: Snapshot) -> Iterator[str]:
    packages = facts(snapshot.target.packages) if snapshot.target is not None else None
    if packages is not None:
        number = len({distribution.normalized for distribution in packages.distributions})
        yield number_of(number, "GPU-related distribution")


def _libraries(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.target is None:
        return
    loaded = _loaded(snapshot.target)
    for library, name in _LIBRARIES.items():
        named = [one for one in loaded if one.name == library]
        told = [(_whose(one), version) for one in named if (version := known(one.version))]
        yield f"{told[0][0]}{name} {told[0][1]}" if told else ""


def _whose(library: Library) -> str:
    """What no framework loaded, and what is not the environment's own, is named as the system's."""
    foreign = known(library.origin) in ("system", "ld.so.cache", "LD_LIBRARY_PATH")
    return "the system's " if foreign and library.how == "dlopen" else ""


def _loaded(target: Document) -> list[Library]:
    """Libraries as the frameworks mapped them, then as dlopen found them."""
    loader = facts(target.loader)
    mapped = [library for framework in _frameworks(target) for library in framework.libraries]
    return mapped + ([] if loader is None else loader.libraries)


def _framework(snapshot: Snapshot) -> Iterator[str]:
    for framework in _frameworks(snapshot.target) if snapshot.target is not None else ():
        if not framework.imported:
            yield "" if _not_installed(framework) else f"{framework.name} does not import"
            continue
        gpus = known(framework.gpus)
        sees = "" if gpus is None else f" sees {number_of(len(gpus), 'GPU')}"
        yield " ".join((framework.name, known(framework.version) or "")).rstrip() + sees


def _not_installed(framework: Framework) -> bool:
    error = known(framework.import_error) or ""
    return error.startswith(f"ModuleNotFoundError: No module named '{framework.name}'")


def _frameworks(target: Document) -> Iterable[Framework]:
    found = (facts(probe) for probe in (target.tensorflow, target.torch, target.jax))
    return [framework for framework in found if framework is not None]


def _environment(snapshot: Snapshot) -> Iterator[str]:
    environment = facts(snapshot.target.environment) if snapshot.target is not None else None
    if environment is not None:
        yield from (f"{name}={value}" for name, value in environment.variables.items())
        yield "" if environment.variables else "nothing set"


def _tensorcores(judged: Iterable[ModeVerdict]) -> Iterator[str]:
    """ "proven: L0 5/5", "L1 4/5": of what could be; controls and plain FP32 cannot."""
    counted: dict[str, list[bool]] = {}
    for row in judged:
        if not row.control and row.mode != "fp32" and row.verdict != "not applicable":
            counted.setdefault(row.level, []).append(row.verdict == "proven")
    for number, (level, proven) in enumerate(sorted(counted.items())):
        yield f"{'' if number else 'proven: '}{level} {sum(proven)}/{len(proven)}"


_AREAS: dict[str, Callable[[Snapshot], Iterator[str]]] = {
    "host": _host,
    "pci": _pci,
    "kernel": _kernel,
    "driver": _driver,
    "gpu": _gpu,
    "container": _container,
    "boundary": _boundary,
    "network": _network,
    "config": _config,
    "packages": _packages,
    "libraries": _libraries,
    "framework": _framework,
    "environment": _environment,
}

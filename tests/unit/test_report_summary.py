"""The facts that stand behind an area's word."""

from __future__ import annotations

from typing import Any

import insides
import networks
import pytest
from build import Gpu, Nvml, document, snapshot
from reported import eight_gpus

from envcheck.checks.registry import areas
from envcheck.facts.base import Probe, Unavailable
from envcheck.facts.containers import Containers, Engine
from envcheck.facts.gpu import CudaDriver
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel, KernelModule
from envcheck.facts.pci import Pci, PciDevice
from envcheck.facts.target import (
    ConfigFile,
    Distribution,
    Environment,
    Framework,
    FrameworkGpu,
    Library,
    Loader,
    Packages,
    PackagingConfig,
)
from envcheck.reports.summary import area_facts

ABSENT = Unavailable(unavailable="absent")


def machine(area: str, **probes: Any) -> list[str]:
    return area_facts(area, snapshot(**probes))


def target(area: str, **probes: Any) -> list[str]:
    return area_facts(area, snapshot(document("path:/venv", **probes)))


@pytest.mark.parametrize("area", [*areas(), "no such area"])
def test_a_snapshot_that_knows_nothing_says_nothing(area: str) -> None:
    crashed: Probe[Any] = Probe(outcome="crashed", reason="signal 11")
    assert area_facts(area, snapshot()) == []
    assert machine(area, host=crashed, pci=crashed, kernel=crashed, nvml=crashed) == []
    assert target(area) == []


@pytest.mark.parametrize("area", areas())
def test_every_area_has_something_to_tell_of_a_working_machine(area: str) -> None:
    working = eight_gpus()
    silent = {"container", "config", "packages", "libraries", "tensorcores", "boundary"}
    silent |= {
        "plugins",
        "network",
        "expected",
        "acceleration",
        "bench",
        "soak",
        "memory",
    }  # of which there is nothing
    if area in silent:
        assert area_facts(area, working) == []
    else:
        assert area_facts(area, working) != []


def test_boundary() -> None:
    told = area_facts("boundary", insides.both())
    assert told == ["2 GPUs inside", "libcuda 550.54.15", "/dev/shm of 8192 MiB"]


def test_network() -> None:
    told = machine("network", network=networks.infiniband())
    assert told == ["8 of 8 RDMA ports active", "eth0 1 Gb/s", "ib0 400 Gb/s"]
    assert machine("network", network=networks.container()) == []


def test_host() -> None:
    host = Host(kernel="6.1", glibc="2.36", memory_total_mib=300, cpus_present=8, cpus_allowed=1)
    assert machine("host", host=host) == ["Linux 6.1", "glibc 2.36", "1 GiB of memory", "1 CPU"]


def test_pci() -> None:
    def device(kind: Any) -> PciDevice:
        return PciDevice(address="0000:01:00.0", kind=kind, device_id="10de:2330")

    assert machine("pci", pci=Pci(devices=[])) == ["no NVIDIA GPUs"]
    both = Pci(devices=[device("gpu"), device("audio"), device("nvswitch"), device("nvswitch")])
    assert machine("pci", pci=both) == ["1 NVIDIA GPU", "2 NVSwitches"]


def test_kernel() -> None:
    nouveau = [KernelModule(name="nouveau")]
    assert machine("kernel", kernel=Kernel(driver_version="550.54", driver_flavour="open")) == [
        "nvidia 550.54 (open modules)"
    ]
    assert machine("kernel", kernel=Kernel(driver_version=ABSENT, modules=nouveau)) == [
        "loaded: nouveau"
    ]
    assert machine("kernel", kernel=Kernel(driver_version=ABSENT, modules=[])) == [
        "no NVIDIA module loaded"
    ]
    assert machine("kernel", kernel=Kernel()) == [], "nobody looked"


def test_driver_and_gpus() -> None:
    nvml = Nvml(driver_version="535.54.03", cuda_version="12.2", gpus=[Gpu(name="Tesla T4"), Gpu()])
    assert machine("driver", nvml=nvml) == ["535.54.03", "CUDA 12.2"]
    assert machine("driver", cuda=CudaDriver(driver_api_version="12.4")) == ["CUDA 12.4"]
    assert machine("gpu", nvml=nvml) == ["1 × Tesla T4, 1 × NVIDIA GPU of unknown name"]


def test_containers() -> None:
    docker = Engine(name="docker", path="/usr/bin/docker", version="24.0", server_version="23.0")
    podman = Engine(name="podman", path="/usr/bin/podman", server_version=ABSENT)
    both = Containers(engines=[docker, podman], toolkit_version="1.14.3")
    assert machine("container", containers=both) == [
        "docker 23.0",
        "podman",
        "nvidia-container-toolkit 1.14.3",
    ]
    assert machine("container", containers=Containers()) == ["no container engine"]


def test_configuration_and_packages() -> None:
    file = ConfigFile(tool="pip", level="user", path="/home/<user-1>/.config/pip/pip.conf")
    variable = ConfigFile(tool="pip", level="environment", path="PIP_INDEX_URL")
    assert target("config", packaging_config=PackagingConfig(files=[file, file, variable])) == [
        "2 configuration files",
        "1 variable",
    ]
    assert target("config", packaging_config=PackagingConfig()) == ["no configuration files"]
    twice = [
        Distribution(name="torch", normalized="torch", version="2.1", location=place)
        for place in ("/a", "/b")
    ]
    assert target("packages", packages=Packages(distributions=twice)) == [
        "1 GPU-related distribution"
    ]


def test_a_library_of_the_system_is_called_that() -> None:
    for origin, words in (("ld.so.cache", "the system's CUDA 13.0"), ("conda", "CUDA 13.0")):
        library: Any = {"name": "libcudart", "how": "dlopen", "version": "13.0", "origin": origin}
        assert target("libraries", loader=Loader(libraries=[Library(**library)])) == [words]


def test_libraries_as_the_framework_mapped_them_come_first() -> None:
    mapped = Library(name="libcudnn", how="framework", version="8.9.0")
    opened = Library(name="libcudnn", how="dlopen", version="9.1.0")
    silent = Library(name="libcudart", how="framework", version=ABSENT)
    cudart = Library(name="libcudart", how="dlopen", version="12.1")
    tensorflow = Framework(name="tensorflow", imported=True, libraries=[silent, mapped])
    loader = Loader(libraries=[opened, cudart])
    assert target("libraries", tensorflow=tensorflow, loader=loader) == ["CUDA 12.1", "cuDNN 8.9.0"]


def test_frameworks() -> None:
    sees = Framework(
        name="tensorflow", imported=True, version="2.13.1", gpus=[FrameworkGpu(name="GPU:0")]
    )
    blind = Framework(name="torch", imported=True, version="2.1", gpus=[])
    broken = Framework(name="jax", imported=False, import_error="ImportError: libcudnn.so.8")
    gone = Framework(
        name="jax", imported=False, import_error="ModuleNotFoundError: No module named 'jax'"
    )
    assert target("framework", tensorflow=sees, torch=blind, jax=broken) == [
        "tensorflow 2.13.1 sees 1 GPU",
        "torch 2.1 sees no GPUs",
        "jax does not import",
    ]
    assert target("framework", tensorflow=sees, jax=gone) == ["tensorflow 2.13.1 sees 1 GPU"]


def test_environment() -> None:
    assert target("environment", environment=Environment(variables={"A": "1", "B": ""})) == [
        "A=1",
        "B=",
    ]
    assert target("environment", environment=Environment()) == ["nothing set"]

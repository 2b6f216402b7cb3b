"""The facts that stand behind an area's word."""

from __future__ import annotations

from typing import Any

import pytest
from build import document, snapshot
from reported import eight_gpus

from envcheck.checks.registry import areas
from envcheck.facts.base import Probe, Unavailable
from envcheck.facts.target import (
    Framework,
    FrameworkGpu,
    Library,
    Loader,
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
    silent = {"kernel", "container", "config", "packages", "libraries", "tensorcores", "boundary"}
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
    ]
    assert target("framework", tensorflow=sees, jax=gone) == ["tensorflow 2.13.1 sees 1 GPU"]

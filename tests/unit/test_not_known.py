"""Where a table or a driver's vocabulary has no such value, the answer is "not known", never a pass."""

from __future__ import annotations

from typing import Any

import h100
import pytest
from build import Gpu
from h100 import gpu
from msgspec.structs import replace
from targets import dist, good_target, not_imported, packages, wheel_library
from whole import (
    blind,
    containers,
    diagnosed,
    docker,
    host,
    seeing,
    unbound,
    unloaded,
    whole,
    with_target,
)

from envcheck.checks.engine import diagnose
from envcheck.checks.registry import all_checks
from envcheck.data import cuda, releases, sonames
from envcheck.data.capabilities import capability
from envcheck.data.kernel import flavour_for
from envcheck.data.packages import cuda_major
from envcheck.data.tensorflow_wheels import tensorflow_build
from envcheck.facts.base import Unavailable
from envcheck.facts.containers import Engine
from envcheck.facts.gpu import Nvml
from envcheck.facts.pci import Pci
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment

UNKNOWN = Unavailable(unavailable="not-collected")


def with_gpus(**facts: Any) -> Snapshot:
    gpus = [gpu(n, **facts) for n in range(h100.COUNT)]
    return whole(nvml=h100.nvml(gpus), nvidia_smi=None, cuda=h100.cuda(gpus))


def driver(version: str, **framework: Any) -> Snapshot:
    nvml = h100.nvml([gpu(0)], driver_version=version, cuda_version=UNKNOWN)
    facts = replace(h100.cuda([gpu(0)]), driver_api_version=UNKNOWN)
    target = good_target(tensorflow=seeing(1, **framework))
    return whole(target, nvml=nvml, nvidia_smi=None, cuda=facts)


def variables(gpus: list[Gpu] | None = None, **values: str) -> Snapshot:
    target = good_target(tensorflow=seeing(8), environment=Environment(variables=values))
    if gpus is None:
        return whole(target)
    return whole(target, nvml=h100.nvml(gpus), nvidia_smi=None, cuda=h100.cuda(gpus))


def installed(*named: tuple[str, str], **probes: Any) -> Snapshot:
    wanted = [dist(name, version) for name, version in named]
    return with_target(**{"packages": packages(*wanted), "tensorflow": not_imported()} | probes)


def podman(version: Any) -> Engine:
    return Engine(name="podman", path="/usr/bin/podman", version=version, server_version="?")


OF_NO_CAPABILITY = [gpu(n, compute_capability=UNKNOWN) for n in range(h100.COUNT)]
ODD_CUDNN = wheel_library("libcudnn", "libcudnn.so", "", "nvidia-cudnn-cu12", "9.3.0.75")

# (code, the machine), and what is not known
CASES: dict[str, tuple[str, Snapshot]] = {
    "a driver's version in no form": ("DRV-008", driver("r535 beta")),
    "a CUDA after the table": ("FRM-003", driver("580.95.05", built_cuda="14.0")),
    "a CUDA in no form": ("FRM-003", driver("580.95.05", built_cuda="twelve")),
    "a driver in no form": ("FRM-003", driver("r535 beta", built_cuda="12.5")),
    "a capability after the table": ("GPU-020", with_gpus(compute_capability="13.0")),
    "a compute mode": ("GPU-014", with_gpus(compute_mode="Shared")),
    "a clock-event reason": ("GPU-008", with_gpus(clock_event_reasons=["reason_0x400"])),
    "a fabric's state": ("GPU-012", with_gpus(fabric_state="Elsewhere")),
    "a fabric's health": ("GPU-012", with_gpus(fabric_health="Tired")),
    "a licence": ("GPU-017", with_gpus(vgpu_licence="Expired")),
    "a device that is not NVIDIA's": (
        "KRN-009",
        whole(
            pci=Pci(devices=[h100.pci_device(h100.ADDRESSES[0], device_id="1002:74a1")]),
            nvml=Nvml(init_code=UNKNOWN),
            nvidia_smi=None,
        ),
    ),
    "a toolkit's version": (
        "CTR-005",
        whole(containers=containers(docker(rootless=True), toolkit_version=UNKNOWN)),
    ),
    "podman's version": ("CTR-006", whole(containers=containers(podman(UNKNOWN)))),
    "podman's way": ("CTR-002", whole(containers=containers(podman("odd")))),
    "the cuDNN it was built with": (
        "LIB-005",
        with_target(tensorflow=seeing(8, built_cudnn="odd")),
    ),
    "the cuDNN that was mapped": (
        "LIB-005",
        with_target(tensorflow=seeing(8, libraries=[replace(ODD_CUDNN, version=UNKNOWN)])),
    ),
    "a CUDA's file names": ("LIB-008", with_target(tensorflow=blind(built_cuda="14.0"))),
    "a build list": (
        "FRM-004",
        with_target(tensorflow=seeing(8, built_capabilities=["hopper", "blackwell"])),
    ),
    "an empty build list": ("FRM-004", with_target(tensorflow=seeing(8, built_capabilities=[]))),
    "whether GPUs have TF32": ("ENV-004", variables(OF_NO_CAPABILITY, NVIDIA_TF32_OVERRIDE="0")),
    "which GPUs are meant": (
        "ENV-001",
        variables([gpu(n, uuid=UNKNOWN) for n in range(8)], CUDA_VISIBLE_DEVICES="GPU-1"),
    ),
    "a C library": ("HOST-003", whole(host=host(glibc="odd"))),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_known_is_no_pass(name: str) -> None:
    code, snapshot = CASES[name]
    (result,) = diagnose(snapshot, checks=[c for c in all_checks() if c.code == code]).results
    assert (result.outcome, result.findings) == ("skipped", [])
    assert (
        "not known" in result.reason
        or "cannot be read" in result.reason
        or ("not understood" in result.reason or "says its version" in result.reason)
    ), result.reason


def test_the_tables_have_nothing_for_what_they_do_not_have() -> None:
    assert cuda.driver_fits("14.0", "580.95.05").fits is None
    assert cuda.driver_fits("12.5", "r535").fits is None
    assert cuda.newest_cuda_for("r535") is None and cuda.rows_for("14.0") == ()
    assert sonames.sonames("14.0") == sonames.sonames("odd") == {}
    assert capability("13.0") is None and flavour_for("1002:74a1") is None
    assert "26.05" not in {release.month for release in releases.releases()}
    assert tensorflow_build("3.0.0") is None and cuda_major("nvidia-cudnn", "99.0") is None


def test_a_module_of_no_known_flavour_is_not_judged() -> None:
    gpus = unbound()
    snapshot = whole(pci=gpus, kernel=unloaded(module_files=[]), nvml=Nvml(init_code=9))
    assert diagnosed(snapshot)["KRN-009"].outcome == "skipped"

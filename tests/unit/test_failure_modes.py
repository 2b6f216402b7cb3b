"""The failures that GPU machines really have, each with all that such a machine shows: one finding each.

A failure that can be seen without running a kernel has one independent failing finding (or warning);
what follows from it is a consequence, and nothing else is told.
"""

from __future__ import annotations

from collections.abc import Callable

import modes_container as contained
import modes_machine as machines
import modes_target as targeted
import pytest
from h100 import LIB
from modes_parts import no_module, with_fault
from modes_well import WELL
from msgspec.structs import replace
from whole import diagnosed, independent, unbound, unloaded, whole, xid

from envcheck.facts.snapshot import Snapshot

ECC = {"ecc_uncorrected_volatile": 1, "ecc_uncorrected_aggregate": 1}
REMAP = ECC | {
    "remap_pending": True,
    "remap_uncorrectable": 1,
    "recovery_action": "Drain and Reset",
}
XID_48 = xid(48, "pid=4711, name=python3, DBE (double bit error) ECC at 0x7f")
XID_63 = xid(63, "Row Remapper: New row (0x7f) marked for remapping, reset gpu to activate.")
XID_64 = xid(64, "Row Remapper: All reserved rows for bank are remapped")
XID_94 = xid(94, "pid=4711, name=python3, Contained: Fb")
XID_95 = xid(95, "pid=4711, name=python3, Uncontained: LTC")
XID_119 = xid(119, "Timeout after 6s of waiting for RPC response from GPU3 GSP!")
# TensorFlow 2.13 was built before Hopper, whatever else is wrong with it.
PTX_ALONE = {"FRM-004": "warn"}

# (row of failure-modes.md and what of it): (the machine, what is told by itself)
ROWS: dict[str, tuple[Callable[[], Snapshot], dict[str, str]]] = {
    "1 mismatch": (machines.mismatch, {"DRV-002": "fail"}),
    "2 nouveau": (lambda: machines.rival("nouveau"), {"PCI-002": "fail"}),
    "2 nova_core": (lambda: machines.rival("nova_core"), {"PCI-002": "fail"}),
    "3 Secure Boot": (machines.secure_boot, {"KRN-002": "fail"}),
    "4 nvidia-uvm": (machines.no_uvm, {"KRN-007": "fail"}),
    "5 permissions": (machines.permissions, {"KRN-006": "fail"}),
    "5 SELinux": (contained.selinux, {"KRN-006": "fail"}),
    "6 in the container": (contained.lost_in_container, {"DRV-001": "fail"}),
    "6 on its host": (contained.about_to_lose, {"CTR-003": "warn"}),
    "7 no runtime": (contained.no_runtime, {"CTR-002": "warn"}),
    "8 fabric manager, Hopper": (machines.no_fabric, {"KRN-011": "fail"}),
    "8 fabric manager, Ampere": (lambda: machines.no_fabric(state=None), {"KRN-011": "fail"}),
    "9 MIG": (machines.mig_without_instances, {"GPU-011": "fail"}),
    "10 system's cuDNN": (lambda: targeted.mixed_cudnn("ld.so.cache", LIB), {"LIB-002": "fail"}),
    "10 cuDNN by variable": (
        lambda: targeted.mixed_cudnn("LD_LIBRARY_PATH", "/opt/cudnn/lib"),
        {"LIB-002": "fail"},
    ),
    "11 no cuDNN": (targeted.no_cudnn, {"LIB-005": "fail"} | PTX_ALONE),
    "11 no cuBLAS": (targeted.no_cublas, {"LIB-008": "fail"} | PTX_ALONE),
    "11 no [and-cuda]": (targeted.no_and_cuda, {"LIB-008": "fail"}),
    "12 stubs": (targeted.stubs, {"DRV-005": "fail"}),
    "13 PTX that does not run": (
        lambda: targeted.blackwell(["sm_80", "sm_90", "compute_90"], "570.124.06", "12.8"),
        {"FRM-004": "fail"},
    ),
    "13 PTX newer than the driver": (
        lambda: targeted.blackwell(["sm_80", "sm_90", "compute_90"], "550.54.15", "12.4"),
        {"FRM-004": "fail"},
    ),
    "14 off the bus": (machines.off_the_bus, {"PCI-004": "fail"}),
    "14 lost without an Xid": (machines.lost_without_a_word, {"GPU-001": "fail"}),
    "14 fewer than on the bus": (machines.did_not_start, {"KRN-013": "fail"}),
    "15 narrow link": (machines.narrow_link, {"PCI-005": "warn"}),
    "15 heat": (
        lambda: with_fault(
            temperature_c=88,
            temperature_margin_c=-1,
            clock_event_reasons=["hw_slowdown", "hw_thermal_slowdown"],
            clock_sm_mhz=345,
        ),
        {"GPU-008": "fail"},
    ),
    "15 heat, held just below": (
        lambda: with_fault(
            temperature_c=86,
            temperature_margin_c=1,
            clock_event_reasons=["sw_thermal_slowdown"],
            clock_sm_mhz=1200,
        ),
        {"GPU-008": "warn"},
    ),
    "15 heat, at the threshold": (
        lambda: with_fault(
            temperature_c=87, temperature_margin_c=0, clock_event_reasons=["sw_thermal_slowdown"]
        ),
        {"GPU-007": "fail"},
    ),
    "15 power brake": (
        lambda: with_fault(
            clock_event_reasons=["hw_slowdown", "hw_power_brake_slowdown"], clock_sm_mhz=345
        ),
        {"GPU-008": "fail"},
    ),
    "15 power cap": (lambda: with_fault(power_limit_w=400.0), {"GPU-009": "warn"}),
    "16 hang": (machines.hung, {"DRV-010": "fail"}),
    "17 uncorrectable": (lambda: with_fault([XID_48], **ECC), {"GPU-002": "fail"}),
    "17 remap pending": (
        lambda: with_fault([XID_48, XID_63, XID_95], **REMAP),
        {"GPU-003": "fail"},
    ),
    "17 remap failed": (
        lambda: with_fault([XID_48, XID_64], **(REMAP | {"remap_failed": True})),
        {"GPU-003": "fail"},
    ),
    "17 GSP": (
        lambda: with_fault([XID_119], recovery_action="Reset", reset_required=True),
        {"KRN-008": "fail"},
    ),
    "17 in the log alone": (lambda: with_fault([XID_95]), {"KRN-008": "fail"}),
    "18 empty": (lambda: targeted.hidden(""), {"ENV-001": "fail"}),
    "18 no such GPU": (lambda: targeted.hidden("8"), {"ENV-001": "fail"}),
    "19 small container": (contained.small_container, {"HOST-008": "warn", "HOST-009": "warn"}),
    "20 wheel for a newer glibc": (targeted.wheel_too_new, {"FRM-001": "fail"}),
    "20 placeholder": (targeted.placeholder, {"PKG-002": "fail"}),
    "20 old system": (machines.old_system, {"HOST-003": "fail"}),
    "21 protobuf": (targeted.new_protobuf, {"FRM-001": "fail"}),
    "22 pynvml": (targeted.old_pynvml, {"PKG-003": "warn"}),
    "23 TensorRT's cuDNN": (targeted.tensorrt_cudnn, {"LIB-006": "warn"}),
    "24 a library crashes": (targeted.crashing_library, {"LIB-006": "warn"}),
    "25 horovod": (targeted.hollow_horovod, {"PKG-011": "fail"}),
}


def compat_beside(snapshot: Snapshot) -> Snapshot:
    """The same with a newer libcuda in front, which has nothing to do with it."""
    probe = snapshot.machine.cuda
    assert probe is not None and probe.facts is not None
    folder = "/usr/local/cuda/compat"
    facts = replace(
        probe.facts,
        library_path=f"{folder}/libcuda.so.1",
        library_real_path=f"{folder}/libcuda.so.550.54.15",
    )
    return replace(snapshot, machine=replace(snapshot.machine, cuda=replace(probe, facts=facts)))


# What is in no row, and no less real.
OTHERS: dict[str, tuple[Callable[[], Snapshot], dict[str, str]]] = {
    "no driver": (machines.bare, {"KRN-001": "fail"}),
    "no GPU": (machines.nothing_at_all, {"PCI-001": "fail"}),
    "kernel upgraded": (machines.kernel_upgraded, {"KRN-003": "fail"}),
    "wrong flavour": (machines.wrong_flavour, {"KRN-009": "fail"}),
    "all for guests": (
        lambda: whole(pci=unbound("vfio-pci"), kernel=unloaded(), **no_module()),
        {"PCI-002": "fail"},
    ),
    "container without GPUs": (contained.without_gpus, {"ENV-002": "fail"}),
    "container without compute": (contained.without_compute, {"ENV-009": "fail"}),
    "container without utility": (contained.without_utility, {"ENV-009": "fail"}),
    "old driver": (
        lambda: targeted.old_driver("470.256.02", "11.4", "NVIDIA GeForce RTX 3080", "8.6"),
        {"FRM-003": "fail"},
    ),
    "CPU build": (targeted.cpu_build, {"FRM-005": "fail"}),
    "one GPU closed": (machines.one_closed, {"KRN-006": "warn"}),
    "no nvidia-uvm, under a compat libcuda": (
        lambda: compat_beside(machines.no_uvm()),
        {"KRN-007": "fail"},
    ),
    "two TensorFlows": (targeted.two_tensorflows, {"PKG-003": "fail"}),
    "half installed": (targeted.half_installed, {"PKG-001": "fail"}),
    "dead mount": (machines.dead_mount, {"HOST-007": "fail"}),
    "sick fabric": (machines.sick_fabric, {"GPU-012": "fail"}),
    "no AVX": (targeted.no_avx, {"HOST-002": "fail"}),
    "nvidia-smi alone hangs": (machines.one_program_hangs, {"DRV-010": "fail", "GPU-009": "warn"}),
}


def test_every_row_is_tried() -> None:
    assert {int(name.split()[0]) for name in ROWS} == set(range(1, 26))


@pytest.mark.parametrize("name", [*ROWS, *OTHERS])
def test_one_root_cause_is_one_finding(name: str) -> None:
    build, expected = (ROWS | OTHERS)[name]
    results = diagnosed(build())
    assert independent(results) == expected
    for code in expected:
        for finding in results[code].findings:
            assert finding.evidence and finding.remedy is not None and finding.remedy.text


@pytest.mark.parametrize("name", WELL)
def test_where_all_is_well_nothing_is_told(name: str) -> None:
    assert independent(diagnosed(WELL[name]())) == {}

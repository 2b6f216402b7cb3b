"""Which GPUs the micro-kernels run on, and what is planned for each, from simulated documents."""

from __future__ import annotations

from typing import Any

import h100
import msgspec
import pytest
import targets
from build import document
from h100 import ADDRESSES, COUNT

from envcheck.collector.kernels import jobs
from envcheck.collector.kernels.selection import Device, choose
from envcheck.collector.options import Options
from envcheck.facts.base import Probe, Unavailable
from envcheck.facts.gpu import CudaDevice, CudaDriver, Gpu, GpuProcess, MigInstance
from envcheck.facts.target import Library, Loader

UNKNOWN = Unavailable(unavailable="not-supported")
WORK = GpuProcess(pid=4711, kind="C", name="python3", memory_mib=40000)


def idle(index: int = 0, **changes: Any) -> Gpu:
    return h100.gpu(index, **{"processes": [], "utilization_percent": 0, **changes})


def raw(**probes: Any) -> dict[str, Any]:
    report: dict[str, Any] = msgspec.to_builtins(document(**probes))
    return report


def machine(*gpus: Gpu, **probes: Any) -> dict[str, Any]:
    gpus = gpus or tuple(idle(n) for n in range(COUNT))
    return raw(**h100.sections(list(gpus), **probes))


def chosen(
    report: dict[str, Any], visible: str | None = None, ours: Any = (), **options: Any
) -> list[Device]:
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    devices, _reason = choose(report, Options(**options), environ, ours)
    return list(devices)


def indices(devices: list[Device]) -> list[Any]:
    return [device.seed.get("index") for device in devices]


def test_every_gpu_that_cuda_lists_by_its_uuid() -> None:
    devices = chosen(machine())
    assert [device.visible for device in devices] == [f"GPU-<uuid-{n + 1}>" for n in range(COUNT)]
    assert [device.lane for device in devices] == ADDRESSES
    assert devices[1].name == "GPU 1" and not devices[1].outcome
    assert devices[1].seed == {
        "index": 1,
        "pci_address": ADDRESSES[1],
        "uuid": "GPU-<uuid-2>",
        "name": "NVIDIA H100 80GB HBM3",
        "compute_capability": "9.0",
    }


@pytest.mark.parametrize(
    ("facts", "outcome", "reason"),
    [
        ({"processes": [WORK]}, "busy", "python3 (process 4711, 40000 MiB) is using it"),
        ({"processes": [WORK, WORK, WORK]}, "busy",
         "python3 (process 4711, 40000 MiB) is using it, and 2 more"),
        ({"processes": [GpuProcess(pid=7, kind="M+C", name=UNKNOWN, memory_mib=UNKNOWN)]}, "busy",
         "a process (process 7) is using it"),
        ({"utilization_percent": 10}, "busy", "its utilization was 10 %"),
        ({"utilization_percent": 9}, "", ""),
        ({"utilization_percent": UNKNOWN, "processes": UNKNOWN}, "", ""),
        ({"processes": [GpuProcess(pid=8, kind="G", name="Xorg")]}, "", ""),
        ({"processes": [GpuProcess(pid=8, kind="C+G", name="Xwayland")]}, "", ""),
        ({"processes": [GpuProcess(pid=8, kind="C", name="nvidia-cuda-mps-server")]}, "", ""),
        ({"compute_mode": "Prohibited"}, "not-run", "its compute mode is Prohibited"),
        ({"compute_mode": "Exclusive_Process"}, "", ""),
        ({"compute_mode": "Exclusive_Process", "processes": [WORK]}, "not-run",
         "its compute mode is Exclusive_Process, and python3 (process 4711, 40000 MiB) is using it"),
    ],
)  # fmt: skip
def test_a_gpu_in_use_is_left_alone(facts: dict[str, Any], outcome: str, reason: str) -> None:
    (busy, other) = chosen(machine(idle(0, **facts), idle(1)))
    assert (busy.outcome, busy.reason) == (outcome, reason)
    assert busy.passing is (reason.startswith("its utilization"))
    assert other.outcome == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("3", [3]),
        ("7, 0", [7, 0]),
        ("0,99,1", [0]),
        ("2,-1,3", [2]),
        ("5,5", [5]),
        ("GPU-<uuid-3>", [2]),
        ("GPU-<uuid-3", [2]),
        ("GPU-<uuid", []),
        ("GPU-<uuid-8>,1", [7, 1]),
    ],
)
def test_the_user_s_choice_of_devices_counts(value: str | None, expected: list[int]) -> None:
    devices, reason = choose(
        machine(), Options(), {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    )
    assert indices(devices) == expected
    assert reason == ("" if expected else f'CUDA_VISIBLE_DEVICES="{value}" hides every GPU')


def other_order() -> dict[str, Any]:
    """CUDA's order, the fastest first, is not nvidia-smi's."""
    gpus = [idle(n) for n in range(3)]
    return machine(*gpus, cuda=h100.cuda([gpus[2], gpus[0], gpus[1]]))


def test_an_index_is_cuda_s_in_the_variable_and_nvidia_smi_s_in_the_option() -> None:
    assert indices(chosen(other_order())) == [2, 0, 1]
    assert indices(chosen(other_order(), "0")) == [2]
    (device,) = chosen(other_order(), "", gpus=[1])
    assert (device.visible, device.lane) == ("GPU-<uuid-2>", ADDRESSES[1])


@pytest.mark.parametrize(
    ("cuda", "reason"),
    [
        (CudaDriver(load_error="libcuda.so.1: cannot open"),
         "libcuda cannot be loaded: libcuda.so.1: cannot open"),
        (CudaDriver(init_code=803, init_name="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
         "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"),
        (CudaDriver(init_code=0, devices=[]), "libcuda lists no device"),
        (CudaDriver(init_code=0, devices=Unavailable(unavailable="error", detail="no count")),
         "libcuda lists no devices: no count"),
        (Probe(outcome="timeout", reason="the probe gave no answer within 20 s"),
         "libcuda could not be asked for its devices: the probe gave no answer within 20 s"),
    ],
)  # fmt: skip
def test_no_device_has_its_reason(cuda: Any, reason: str) -> None:
    assert choose(raw(cuda=cuda), Options(), {}) == ([], reason)


def mig(number: int, **changes: Any) -> MigInstance:
    facts = {"gpu_instance": number, "compute_instance": 0, "uuid": f"MIG-<uuid-9{number}>"}
    return MigInstance(**{**facts, "multiprocessors": 16, **changes})


def partitioned(*instances: MigInstance) -> dict[str, Any]:
    """A GPU with MIG instances, of which CUDA lists the second, and one without."""
    sliced = idle(0, mig_enabled=True, mig_instances=list(instances), utilization_percent=UNKNOWN)
    devices = [
        CudaDevice(ordinal=0, uuid="GPU-<uuid-2>", pci_address=ADDRESSES[1]),
        CudaDevice(ordinal=1, uuid="MIG-<uuid-92>", pci_address=ADDRESSES[0]),
    ]
    return machine(sliced, idle(1), cuda=h100.cuda([], devices=devices))


def test_mig_instances_run_by_their_uuid_and_share_a_lane() -> None:
    devices = chosen(partitioned(mig(1), mig(2), mig(3, uuid=UNKNOWN)))
    assert [device.name for device in devices] == [
        "GPU 1",
        "GPU 0 MIG 1.0",
        "GPU 0 MIG 2.0",
        "GPU 0 MIG 3.0",
    ]
    assert {device.lane for device in devices[1:]} == {ADDRESSES[0]}
    assert [device.visible for device in devices[1:3]] == ["MIG-<uuid-91>", "MIG-<uuid-92>"]
    assert devices[1].seed["multiprocessors"] == 16
    assert (devices[3].outcome, devices[3].reason) == (
        "not-run",
        "NVML does not tell this MIG instance's UUID",
    )


# -- what is planned

HERE = "/venv/nvidia/cublas/lib/libcublas.so.12"


def library(path: str, how: Any = "framework", **facts: Any) -> Library:
    name = path.rpartition("/")[2].partition(".")[0]
    return Library(name=name, how=how, path=path, **facts)


def torch(*paths: str, **facts: Any) -> Any:
    libraries = [library(path) for path in paths]
    return targets.tensorflow(name="torch", libraries=libraries, **facts)


def planned(report: dict[str, Any] | None, gpus: int = 1, **options: Any) -> list[jobs.Job]:
    chosen_options = Options(**options)
    devices, _reason = choose(machine(*(idle(n) for n in range(gpus))), chosen_options, {})
    return list(jobs.plan(devices, report, chosen_options))


def test_l1_gets_the_cublas_that_the_first_framework_mapped() -> None:
    lt, cupti = HERE.replace("cublas.so", "cublasLt.so"), "/cupti/libcupti.so.12"
    result = raw(
        tensorflow=torch(HERE, lt, cupti),
        jax=torch("/usr/lib/libcublas.so.11"),
        loader=Loader(libraries=[library("/x/libcublas.so.13", "dlopen")]),
    )
    levels = [job.libraries for job in planned(result, levels=["L1"])]
    assert levels == [{"libcublas": HERE, "libcublasLt": lt, "libcupti": cupti}]

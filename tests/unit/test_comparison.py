"""What machines are compared by: attributes and measurements, of healthy, odd and hostile Snapshots."""

from __future__ import annotations

from typing import Any

import bench_runs
import demos
import memory_runs
import msgspec
import pytest
from build import document, ok
from h100 import ABSENT, COUNT, machine, with_fault
from targets import good_target
from whole import host, whole

from envcheck.attributes.measurements import measurements
from envcheck.attributes.model import Measurement
from envcheck.attributes.values import attributes, gpus_of
from envcheck.facts.base import known
from envcheck.facts.micro_kernels import LevelRun, MicroKernels, ModeRun, Rate
from envcheck.facts.snapshot import SCHEMA, Snapshot, load
from envcheck.facts.target import Environment
from envcheck.facts.view import SnapshotView


def of(snapshot: Snapshot) -> dict[tuple[str, str], str]:
    found = attributes(SnapshotView(snapshot))
    by_name = {(one.key, one.device): one.value for one in found}
    assert len(by_name) == len(found), "a key and a device are there once"
    return by_name


def figures(snapshot: Snapshot) -> list[Measurement]:
    return measurements(SnapshotView(snapshot))


def test_a_fault_of_one_gpu_is_that_gpu_s() -> None:
    well, ill = of(machine()), of(with_fault(pcie_width=8, vbios="96.00.89.00.01"))
    differ = {place for place in {*well, *ill} if well.get(place) != ill.get(place)}
    assert differ == {("gpus.pcie_lanes", "GPU 3"), ("gpus.vbios", "GPU 3")}


def test_what_is_not_there_is_none_and_what_nobody_told_is_left_out() -> None:
    result = of(machine(host=host(cpu_model=ABSENT, kernel=ABSENT)))
    assert result["machine.cpu", ""] == "none"
    nothing = of(Snapshot(schema=SCHEMA, redacted=True, machine=document()))
    assert nothing == {}


@pytest.mark.parametrize("name", demos.DEMOS)
def test_nothing_that_belongs_to_one_machine_alone_is_a_value(name: str) -> None:
    snapshot = load(demos.build(name))
    facts = snapshot.machine.host and snapshot.machine.host.facts
    names = [known(facts.hostname) or "?"] if facts else []
    gpus = gpus_of(SnapshotView(snapshot))
    names += [str(known(one.uuid)) for one in gpus] + [str(known(one.serial)) for one in gpus]
    values = [one.value for one in attributes(SnapshotView(snapshot))]
    assert not [name for name in names for value in values if name in value]


def test_variables_of_one_machine_or_one_job_are_no_settings() -> None:
    variables = {
        "NCCL_DEBUG": "WARN",
        "NCCL_COMM_ID": "10.0.0.7:4000",
        "SLURM_JOB_ID": "123",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "HOROVOD_RANK": "3",
        "LD_LIBRARY_PATH": "<home-1>/lib",
        "TF_XLA_FLAGS": "GPU-996ad860-2a9a-504f-8861-aeafd0b2ae29",
    }
    target = good_target()
    target = msgspec.structs.replace(
        target, environment=ok(Environment(variables=variables), "environ")
    )
    result = of(msgspec.structs.replace(whole(), target=target))
    settings = {key for key, _device in result if key.startswith("settings.")}
    assert {key for key in settings if not key.startswith("settings.tensorflow.")} == {
        "settings.NCCL_DEBUG"
    }


def kernels(**changes: Any) -> Snapshot:
    rate = Rate(timer="clock64", tflops=600.0, spread=1.02)
    values: dict[str, Any] = {
        "outcome": "ok",
        "modes": [ModeRun(mode="fp16", outcome="ok", rate=rate)],
    }
    values |= {"level": "L0", "index": 3} | changes
    ran = ok(MicroKernels(runs=[LevelRun(**values)]), "run")
    snapshot = machine()
    return msgspec.structs.replace(
        snapshot, machine=msgspec.structs.replace(snapshot.machine, micro_kernels=ran)
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"busy": True},
        {"outcome": "timeout"},
        {"modes": [ModeRun(mode="fp16", outcome="error")]},
        *(
            {
                "modes": [
                    ModeRun(mode="fp16", outcome="ok", rate=Rate(timer="clock64", tflops=value))
                ]
            }
            for value in (float("nan"), float("inf"), -1.0, 0.0)
        ),
    ],
)
def test_what_is_no_figure_is_left_out(changes: dict[str, Any]) -> None:
    assert figures(kernels(**changes)) == []


def test_memory_links_and_pairs() -> None:
    found = figures(memory_runs.with_runs(memory_runs.runs()))
    copies = [one for one in found if one.key == "memory.copy"]
    assert [one.device for one in copies] == [f"GPU {number}" for number in range(COUNT)]
    assert copies[0].spread == pytest.approx(0.01) and copies[0].under == "1024 MiB"
    pairs = [one for one in found if one.key == "peers.directly"]
    assert len(pairs) == COUNT * (COUNT - 1) and "GPU 0 to GPU 1" in {one.device for one in pairs}
    assert "links.pinned_to_the_GPU" in {one.key for one in found}


def test_a_row_on_a_cpu_has_no_device() -> None:
    (one,) = figures(bench_runs.snapshot(bench_runs.run(40.0, gpus=[])))
    assert one.device == "" and "on the CPU" in one.under

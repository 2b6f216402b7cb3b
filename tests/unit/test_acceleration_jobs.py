"""What is to run where: every case of GPUs, frameworks and builds."""

from __future__ import annotations

from typing import Any

import pytest
from systems import framework, gpu, nvml, system

from envcheck.collector import systems
from envcheck.collector.kernels.selection import Device
from envcheck.collector.systems import NotASystem, System
from envcheck.collector.systems.running import jobs
from envcheck.collector.systems.running.jobs import SystemJob

NOTHING = ([], "libcuda cannot be loaded: libcuda.so.1")


def planned(
    one: System, chosen: tuple[list[Device], str], section: Any = None, name: str = "torch"
) -> list[SystemJob]:
    documents: dict[str, Any] = {
        "machine": {},
        "target": {} if section is None else {name: section},
    }
    return jobs.plan([one], [one.name], chosen, documents)


def only(made: list[SystemJob]) -> tuple[str, str, str, str | None]:
    (job,) = made
    return job.outcome, job.reason, job.on, job.visible


TORCH = system("amp-torch", framework="torch")
GPU_TORCH = system("amp-torch", framework="torch", gpus=1)
NCCL = system("nccl", gpus=2)
MEMORY = system("memory", document="machine", gpus=1, each_gpu=True)


def test_what_was_not_asked_for_is_not_planned() -> None:
    assert jobs.plan([TORCH], ["xla"], ([gpu(0)], ""), {"machine": {}, "target": {}}) == []


def test_a_target_without_the_framework_has_nothing_to_run() -> None:
    assert planned(TORCH, ([gpu(0)], "")) == []


def test_without_a_target_the_machine_s_systems_run_alone() -> None:
    documents = {"machine": {}, "target": None}
    made = jobs.plan([TORCH, MEMORY], ["amp-torch", "memory"], ([gpu(0)], ""), documents)
    assert [job.name for job in made] == ["memory GPU 0"]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (
            {"outcome": "timeout", "reason": "the probe gave no answer within 90 s"},
            "could not be looked at: the probe gave no answer within 90 s",
        ),
        ({"outcome": "crashed"}, "could not be looked at: no answer"),
        (
            framework(imported=False, import_error="ImportError: libcudart.so.12\nmore of it"),
            "cannot be imported: ImportError: libcudart.so.12",
        ),
        (
            framework(imported=False, import_error={"unavailable": "error"}),
            "cannot be imported: no reason was given",
        ),
        (
            framework(imported=False, import_error="\n"),
            "cannot be imported: no reason was given",
        ),
    ],
)
def test_a_framework_that_does_not_work_runs_nothing(section: Any, words: str) -> None:
    assert only(planned(TORCH, ([gpu(0)], ""), section)) == ("not-run", words, "gpu", None)


def test_a_build_for_the_cpu_runs_there_whatever_gpus_there_are() -> None:
    cpu = framework(cuda_build=False, gpus=[])
    for chosen in (NOTHING, ([gpu(0)], ""), ([gpu(0, outcome="busy", reason="x")], "")):
        assert only(planned(TORCH, chosen, cpu)) == ("", "", "cpu", None)
        outcome, reason, _on, visible = only(planned(GPU_TORCH, chosen, cpu))
        assert (outcome, visible) == ("not-applicable", None)
        assert reason == "built without CUDA"


def test_without_a_gpu_it_runs_on_the_cpu_or_says_why_not() -> None:
    assert only(planned(TORCH, NOTHING, framework(gpus=[]))) == ("", "", "cpu", None)
    outcome, reason, _on, _visible = only(planned(GPU_TORCH, NOTHING, framework(gpus=[])))
    assert (outcome, reason) == ("not-run", f"no GPU: {NOTHING[1]}")


def test_a_framework_that_sees_no_gpu_beside_one_could_not_run() -> None:
    for one in (TORCH, GPU_TORCH):
        assert only(planned(one, ([gpu(0)], ""), framework(gpus=[])))[:2] == (
            "not-run",
            "it sees no GPU",
        )


def test_a_framework_that_was_not_asked_for_its_gpus_is_run_on_one() -> None:
    section = framework(gpus={"unavailable": "error"}, cuda_build={"unavailable": "error"})
    assert only(planned(GPU_TORCH, ([gpu(0)], ""), section)) == ("", "", "gpu", "GPU-0")


def test_one_of_several_gpus_is_used_and_an_idle_one_before_a_busy_one() -> None:
    chosen = [gpu(0, outcome="busy", reason="python (process 7) is using it"), gpu(1), gpu(2)]
    assert only(planned(TORCH, (chosen, ""), framework())) == ("", "", "gpu", "GPU-1")
    outcome, reason, _on, _visible = only(planned(TORCH, (chosen[:1], ""), framework()))
    assert (outcome, reason) == ("busy", "GPU 0: python (process 7) is using it")


def test_a_system_of_several_gpus_takes_all_that_are_idle() -> None:
    busy = gpu(2, outcome="busy", reason="its utilization was 90 %")
    assert only(planned(NCCL, ([gpu(0), gpu(1), busy], "")))[3] == "GPU-0,GPU-1"
    assert only(planned(NCCL, ([gpu(0), busy], "")))[:2] == (
        "busy",
        "GPU 2: its utilization was 90 %",
    )
    assert only(planned(NCCL, ([gpu(0)], "")))[:2] == ("not-applicable", "one GPU")
    assert only(planned(NCCL, NOTHING))[0] == "not-run"


def test_mig_instances_make_no_several_gpus() -> None:
    halves = [gpu(0, "3.0"), gpu(0, "4.0")]
    assert only(planned(NCCL, (halves, "")))[:2] == ("not-applicable", "one GPU")
    others = [*halves, gpu(1, "3.0")]
    assert only(planned(NCCL, (others, "")))[:2] == (
        "not-applicable",
        "MIG instances, of which a process sees one",
    )
    assert only(planned(TORCH, (halves, ""), framework()))[3] == "MIG-03.0"
    assert only(planned(NCCL, ([gpu(2), *halves, gpu(3)], "")))[3] == "GPU-2,GPU-3"


def test_each_gpu_has_a_run_of_its_own() -> None:
    chosen = [
        gpu(0),
        gpu(1, outcome="not-run", reason="its compute mode is Prohibited"),
        gpu(2, "1.0"),
    ]
    made = planned(MEMORY, (chosen, ""))
    assert [(job.name, job.visible, job.outcome) for job in made] == [
        ("memory GPU 0", "GPU-0", ""),
        ("memory GPU 1", "GPU-1", "not-run"),
        ("memory GPU 2 MIG 1.0", "MIG-21.0", ""),
    ]
    assert made[1].reason == "GPU 1: its compute mode is Prohibited"


def test_memory_is_a_quarter_of_what_is_free_on_the_fullest() -> None:
    chosen = [gpu(0), gpu(1)]
    assert jobs.memory_mib(chosen, nvml(80000, 40000), 1) == 10000
    assert jobs.memory_mib(chosen, nvml(80000, 40000), 2) == 5000
    assert jobs.memory_mib(chosen, nvml(80000), 1) is None
    assert jobs.memory_mib([gpu(0, "3.0")], nvml(80000), 1) is None, "NVML tells of the whole GPU"
    assert jobs.memory_mib([], nvml(), 1) is None


# -- the files


def test_every_file_of_the_folder_is_a_system() -> None:
    found = systems.load()
    assert found and len({one.module for one in found}) == len(found)
    assert [one.alone for one in found] == sorted(one.alone for one in found)
    for one in found:
        assert one.name == one.name.lower().replace(" ", "-"), "as --only takes it"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"system": None}, "lacks SYSTEM or run"),
        ({"run": None}, "lacks SYSTEM or run"),
        ({"deadline": None}, "its DEADLINE is not above 0 and up to 120"),
        ({"deadline": 0}, "its DEADLINE is not above 0 and up to 120"),
        ({"deadline": 121}, "its DEADLINE is not above 0 and up to 120"),
        ({"deadline": True}, "its DEADLINE is not above 0 and up to 120"),
        ({"document": "host"}, "its DOCUMENT or FRAMEWORK is none"),
        ({"framework": "mxnet"}, "its DOCUMENT or FRAMEWORK is none"),
        ({"document": "machine", "framework": "torch"}, "a FRAMEWORK is the target's"),
        ({"gpus": -1}, "its GPUS is no number of GPUs"),
        ({"gpus": True}, "its GPUS is no number of GPUs"),
        ({"each_gpu": True, "gpus": 2}, "EACH_GPU and GPUS = 2"),
        ({"modules": "horovod"}, "its MODULES is no tuple of names"),
    ],
)
def test_a_file_that_is_no_system_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(NotASystem, match=rf"^systems/made\.py.*{words}"):
        system("made", **said)

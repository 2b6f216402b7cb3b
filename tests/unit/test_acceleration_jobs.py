"""What is to run where: every case of GPUs, frameworks, builds and libraries."""

from __future__ import annotations

from typing import Any

from systems import framework, gpu, system

from envcheck.collector.systems.running import jobs

NOTHING: tuple[list[Any], str] = ([], "libcuda cannot be loaded: libcuda.so.1")
ONE: Any = ([gpu(0)], "")
TWO: Any = ([gpu(0), gpu(1)], "")
TORCH = system("amp-torch", framework="torch")
GPU_TORCH = system("amp-torch", framework="torch", gpus=1)
NCCL = system("nccl", gpus=2, libraries=("libnccl",))
MEMORY = system("memory", document="machine", gpus=1, each_gpu=True)


def planned(one: Any, chosen: Any, section: Any = None) -> list[Any]:
    documents: dict[str, Any] = {"machine": {}, "target": {}}
    if section is not None:
        documents["target"]["torch"] = section
    return list(jobs.plan([one], [one.name], chosen, documents))


def only(one: Any, chosen: Any, section: Any = None) -> tuple[str, str, str, str | None]:
    (job,) = planned(one, chosen, section)
    return job.outcome, job.reason, job.on, job.visible


def test_only_what_was_asked_for_and_is_there_is_planned() -> None:
    assert jobs.plan([TORCH], ["xla"], ONE, {"machine": {}, "target": {}}) == []
    assert planned(TORCH, ONE) == []  # the target has no PyTorch
    documents = {"machine": {}, "target": None}
    made = jobs.plan([TORCH, MEMORY], ["amp-torch", "memory"], ONE, documents)
    assert [job.name for job in made] == ["memory GPU 0"]


def test_without_a_gpu_it_runs_on_the_cpu_or_says_why_not() -> None:
    assert only(TORCH, NOTHING, framework(gpus=[])) == ("", "", "cpu", None)
    assert only(GPU_TORCH, NOTHING, framework(gpus=[]))[:2] == ("not-run", f"no GPU: {NOTHING[1]}")
    for one in (TORCH, GPU_TORCH):
        assert only(one, ONE, framework(gpus=[]))[:2] == ("not-run", "it sees no GPU")
    unknown = framework(gpus={"unavailable": "error"}, cuda_build={"unavailable": "error"})
    assert only(GPU_TORCH, ONE, unknown) == ("", "", "gpu", "GPU-0")


def test_idle_gpus_come_before_busy_ones() -> None:
    chosen = [gpu(0, outcome="busy", reason="python (process 7) is using it"), gpu(1), gpu(2)]
    assert only(TORCH, (chosen, ""), framework()) == ("", "", "gpu", "GPU-1")
    busy = ("busy", "GPU 0: python (process 7) is using it")
    assert only(TORCH, (chosen[:1], ""), framework())[:2] == busy
    assert only(NCCL, (chosen, ""))[3] == "GPU-1,GPU-2"
    assert only(NCCL, (chosen[:2], ""))[:2] == busy
    assert only(NCCL, ONE)[:2] == ("not-applicable", "one GPU")
    assert only(NCCL, NOTHING)[0] == "not-run"


def test_mig_instances_make_no_several_gpus() -> None:
    halves = [gpu(0, "3.0"), gpu(0, "4.0")]
    assert only(NCCL, (halves, ""))[:2] == ("not-applicable", "one GPU")
    several = "MIG instances, of which a process sees one"
    assert only(NCCL, ([*halves, gpu(1, "3.0")], ""))[:2] == ("not-applicable", several)
    assert only(TORCH, (halves, ""), framework())[3] == "MIG-03.0"
    assert only(NCCL, ([gpu(2), *halves, gpu(3)], ""))[3] == "GPU-2,GPU-3"


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


def _library(path: Any, how: str, name: str = "libnccl") -> dict[str, Any]:
    return {"name": name, "path": path, "how": how}


def test_library_that_a_framework_mapped_comes_first_then_wheels() -> None:
    wheel, own = "/w/nvidia/nccl/lib/libnccl.so.2", "/usr/lib/libnccl.so.2"
    absent = _library({"unavailable": "absent"}, "dlopen")
    loaded = [_library(own, "dlopen"), _library(wheel, "wheel"), absent]
    document: dict[str, Any] = {"loader": {"facts": {"libraries": loaded}}}
    assert jobs.libraries(NCCL, document) == {"libnccl": [wheel, own]}
    mapped = [_library(own, "framework"), _library("/x/libcudnn.so.9", "framework", "libcudnn")]
    document["torch"] = {"facts": {"libraries": mapped}}
    assert jobs.libraries(NCCL, document) == {"libnccl": [own, wheel]}
    document = {"loader": {"facts": {"libraries": []}}}
    (without,) = jobs.plan([NCCL], ["nccl"], TWO, {"target": document})
    assert (without.outcome, without.reason) == ("not-applicable", "the target has no libnccl")

"""The checks on a container's boundary: what the host has against what came through."""

from __future__ import annotations

from typing import Any

import pytest
from build import area_checks, document, ok, snapshot
from insides import (
    ABSENT,
    COMPAT,
    GPUS,
    IMAGE,
    RUNNING,
    both,
    cuda,
    host,
    no_libcuda,
    no_nvml,
    node,
    nodes,
    nvml,
    silent,
)
from msgspec.structs import replace
from targets import bare_machine, good_target, gpu

from envcheck.checks.engine import diagnose
from envcheck.facts.base import Probe, Unavailable
from envcheck.facts.containers import Containers, Engine
from envcheck.facts.gpu import NvidiaSmi
from envcheck.facts.host import Host
from envcheck.facts.kernel import Kernel
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult, Finding

CHECKS = area_checks("boundary")
DOCKER = Engine(name="docker", path="/usr/bin/docker", server_version="25.0.1", cdi_enabled=True)
CODES = [check.code for check in CHECKS]


def results(told: Snapshot) -> dict[str, CheckResult]:
    return {result.code: result for result in diagnose(told, checks=CHECKS).results}


def judge(code: str, *arguments: Any, **inside: Any) -> CheckResult:
    return results(both(*arguments, **inside))[code]


def only(result: CheckResult, level: str = "fail") -> Finding:
    (finding,) = result.findings
    assert result.outcome == finding.level == level
    assert finding.evidence and finding.remedy is not None
    return finding


def commands(finding: Finding) -> str:
    assert finding.remedy is not None
    return "\n".join(finding.remedy.commands)


@pytest.mark.parametrize("location", [IMAGE, RUNNING])
def test_a_container_that_is_well_has_no_finding(location: str) -> None:
    assert {r.code: r.outcome for r in results(both(location)).values()} == dict.fromkeys(
        CODES, "pass"
    )


def test_without_a_container_there_is_nothing_to_judge() -> None:
    for target in (None, good_target()):
        told = results(snapshot(target))
        assert {result.outcome for result in told.values()} == {"skipped"}


def test_on_a_host_without_a_gpu_only_what_needs_none_is_judged() -> None:
    told = both(
        outside={**bare_machine(), "cuda": None, "kernel": None},
        nvml=no_nvml(12),
        cuda=no_libcuda(),
        kernel=Kernel(device_nodes=[]),
    )
    outcomes = {code: result.outcome for code, result in results(told).items()}
    assert {code for code, outcome in outcomes.items() if outcome == "pass"} == {
        "BND-001",
        "BND-006",
        "BND-007",
        "BND-008",
        "BND-010",
    }
    assert set(outcomes.values()) == {"pass", "skipped"}


@pytest.mark.parametrize("code", [code for code in CODES[1:] if code != "BND-010"])
def test_what_nobody_looked_at_is_skipped(code: str) -> None:
    nothing = dict.fromkeys(("host", "kernel", "nvml", "nvidia_smi", "cuda"))
    assert judge(code, **nothing).outcome == "skipped"


def test_a_container_that_could_not_be_looked_into_could_not_run() -> None:
    reason = "image:x: no answer from inside within 240 s"
    target = document(IMAGE, interpreter=Probe(outcome="timeout", reason=reason))
    told = results(snapshot(target))
    assert told["BND-001"].outcome == "could-not-run" and reason in told["BND-001"].reason
    assert {told[code].outcome for code in CODES[1:]} == {"skipped"}


# BND-002: GPUs


def test_fewer_gpus_inside_than_outside() -> None:
    finding = only(judge("BND-002", nvml=nvml(GPUS[1])))
    assert "1 of the host's 2 GPUs arrived in the container: GPU 0" in finding.message
    assert commands(finding) == (
        "podman run --device nvidia.com/gpu=all nvcr.io/nvidia/tensorflow:23.01-tf2-py3"
    )


def test_gpus_are_matched_by_address_and_uuid_never_by_index() -> None:
    swapped = [replace(GPUS[1], index=0), replace(GPUS[0], index=1)]
    assert judge("BND-002", nvml=nvml(*swapped)).outcome == "pass"
    others = [replace(one, pci_address=ABSENT) for one in GPUS]
    assert judge("BND-002", nvml=nvml(*others)).outcome == "pass", "by UUID alone"
    strangers = [gpu(4), gpu(5)]
    assert "none" not in only(judge("BND-002", nvml=nvml(*strangers))).message


def test_no_gpu_at_all_is_told_even_where_nothing_lists_gpus() -> None:
    finding = only(
        judge("BND-002", nvml=None, nvidia_smi=None, cuda=cuda(), kernel=Kernel(device_nodes=[]))
    )
    assert finding.params["arrived"] == "None"


@pytest.mark.parametrize("location", [IMAGE, RUNNING])
def test_a_subset_that_a_variable_names_is_a_choice(location: str) -> None:
    chosen = judge("BND-002", location, {"NVIDIA_VISIBLE_DEVICES": "1"}, nvml=nvml(GPUS[1]))
    assert chosen.outcome == "pass" and chosen.detail == "1 of 2: NVIDIA_VISIBLE_DEVICES=1"
    wrong = judge("BND-002", location, {"NVIDIA_VISIBLE_DEVICES": "0,1"}, nvml=nvml(GPUS[1]))
    assert wrong.outcome == "fail", "it names two, and one came"


def test_a_subset_by_cdi_is_a_choice_where_somebody_else_started_it() -> None:
    void = {"NVIDIA_VISIBLE_DEVICES": "void"}
    one = {"nvml": nvml(GPUS[0]), "kernel": Kernel(device_nodes=nodes(1))}
    assert judge("BND-002", RUNNING, void, **one).outcome == "pass"
    assert judge("BND-002", IMAGE, void, **one).outcome == "fail", "envcheck asked for all"
    two_nodes = {"nvml": nvml(GPUS[0]), "kernel": Kernel(device_nodes=nodes(2))}
    assert judge("BND-002", RUNNING, void, **two_nodes).outcome == "fail", "one does not answer"


@pytest.mark.parametrize(
    ("engine", "engines", "words"),
    [
        (
            "docker",
            [Engine(name="docker", path="d", server_version="20.10", cdi_enabled=False)],
            "--gpus all",
        ),
        (
            "docker",
            [Engine(name="docker", path="d", cdi_enabled=True)],
            "--device nvidia.com/gpu=all",
        ),
        ("apptainer", [], "apptainer run --nv"),
        ("enroot", [], "NVIDIA_VISIBLE_DEVICES=all enroot start"),
        ("podman", [], "podman run --device nvidia.com/gpu=all"),
    ],
)
def test_the_remedy_is_the_engine_s_own(engine: str, engines: list[Engine], words: str) -> None:
    from insides import SPEC

    around = {"containers": Containers(engines=engines, cdi_specs=[SPEC])}
    finding = only(
        judge("BND-002", host=host(container=engine), outside=around, nvml=nvml(GPUS[0]))
    )
    assert words in commands(finding)


def test_without_a_cdi_specification_podman_needs_one_first() -> None:
    around = {"containers": Containers(engines=[], cdi_specs=[])}
    finding = only(judge("BND-002", outside=around, nvml=nvml(GPUS[0])))
    assert commands(finding).startswith("sudo nvidia-ctk cdi generate")


# BND-003: libraries


def test_an_engine_that_injected_nothing() -> None:
    lost = {"cuda": no_libcuda(), "nvml": no_nvml(12), "kernel": Kernel(device_nodes=[])}
    told = results(both(**lost))
    finding = only(told["BND-003"])
    assert "brought no libcuda" in finding.message and "nvidia.com/gpu=all" in commands(finding)
    assert told["BND-002"].consequence_of == "BND-003"
    assert told["BND-004"].outcome == told["BND-005"].outcome == "skipped"


def test_a_host_without_libcuda_cannot_lend_it() -> None:
    told = judge("BND-003", outside={"cuda": no_libcuda()}, cuda=no_libcuda())
    assert told.outcome == "skipped"


# BND-004: which libcuda


def test_the_host_s_libcuda_passes() -> None:
    assert judge("BND-004").detail == "550.54.15, injected from the host"


def test_a_libcuda_of_another_driver() -> None:
    finding = only(judge("BND-004", cuda=silent(803, version="545.23.08")))
    assert "of driver 545.23.08, and the host's kernel runs 550.54.15" in finding.message
    assert "cdi generate" in commands(finding)


def test_a_compat_copy_that_cuda_starts_with_is_legitimate() -> None:
    """Row 12 of failure-modes.md is about the same path where it does not work."""
    told = both(cuda=cuda(*GPUS, path=COMPAT, version="560.35.03"))
    result = results(told)["BND-004"]
    assert result.outcome == "pass" and "forward compatibility" in result.detail
    everything = {r.code: r.outcome for r in diagnose(told).results}
    assert "fail" not in everything.values()


@pytest.mark.parametrize(
    ("code", "brand", "words"),
    [
        (804, "GeForce", "for data-centre GPUs only"),
        (803, "GeForce", "for data-centre GPUs only"),
        (
            803,
            "NVIDIA",
            "driver 550.54.15 is not of a branch that it was made for (450.51, 470.57, 510.47,",
        ),
    ],
)
def test_a_compat_copy_that_may_not_run_here(code: int, brand: str, words: str) -> None:
    gpus = [replace(one, brand=brand) for one in GPUS]
    finding = only(
        judge(
            "BND-004",
            outside={"nvml": nvml(*gpus)},
            cuda=silent(code, path=COMPAT, version="560.35.03"),
        )
    )
    assert words in finding.message and f"error {code}" in finding.message


def test_a_compat_copy_that_is_older_than_the_driver() -> None:
    finding = only(judge("BND-004", cuda=cuda(*GPUS, path=COMPAT, version="525.60.13")), "warn")
    assert "hides the host's newer one" in finding.message


def test_a_stub() -> None:
    stub = "/usr/local/cuda/lib64/stubs/libcuda.so.1"
    finding = only(judge("BND-004", cuda=silent(34, path=stub, version="1")))
    assert "stub" in finding.message


def test_versions_that_are_not_known_are_not_judged() -> None:
    nameless = cuda(*GPUS, library_real_path="/usr/lib/wsl/lib/libcuda.so.1")
    assert judge("BND-004", cuda=nameless).outcome == "skipped"
    assert judge("BND-004", outside={"kernel": Kernel()}).outcome == "skipped"


# BND-005: answering


def test_a_container_that_lost_its_gpus() -> None:
    engines = [Engine(name="docker", path="/usr/bin/docker", cgroup_driver="systemd")]
    told = both(
        RUNNING,
        nvml=no_nvml(999),
        cuda=silent(999),
        host=host(container="docker"),
        kernel=Kernel(device_nodes=nodes(char_link=False)),
        outside={"containers": Containers(engines=engines, cdi_specs=[])},
    )
    finding = only(results(told)["BND-005"])
    assert "has lost its GPUs" in finding.message and "daemon-reload" in finding.message
    shown = "\n".join(f"{e.fact} {e.value}" for e in finding.evidence)
    assert "docker: systemd" in shown and "no link" in shown and "/dev/nvidia0 0666" in shown
    assert "docker run --gpus all" in commands(finding)
    assert "create-dev-char-symlinks" in commands(finding)
    assert results(told)["BND-002"].outcome == "skipped"


def test_nvml_alone_that_lost_them_is_enough() -> None:
    """A CUDA that runs already goes on; the next one does not start."""
    told = judge("BND-005", RUNNING, nvml=no_nvml(999))
    assert "has lost its GPUs" in only(told).message


def test_libraries_without_device_nodes() -> None:
    finding = only(
        judge("BND-005", nvml=no_nvml(9), cuda=silent(100), kernel=Kernel(device_nodes=nodes(0)))
    )
    assert "no device node of a GPU" in finding.message


def test_device_nodes_that_the_user_may_not_open() -> None:
    closed = [node("/dev/nvidia0", mode="0660", usable=False)]
    finding = only(
        judge("BND-005", nvml=no_nvml(4), cuda=silent(100), kernel=Kernel(device_nodes=closed))
    )
    assert "may not open them" in finding.message and "keep-groups" in commands(finding)


def test_another_error_of_cuda_inside_is_told_with_its_number() -> None:
    assert "error 101" in only(judge("BND-005", cuda=silent(101))).message


def test_what_fails_outside_too_is_not_the_container_s() -> None:
    told = judge("BND-005", outside={"cuda": silent(999)}, nvml=no_nvml(999), cuda=silent(999))
    assert told.outcome == "skipped"


def test_nvml_without_its_library_is_no_loss() -> None:
    assert judge("BND-005", nvml=no_nvml(12)).outcome == "pass"


# BND-006, BND-007: room


def test_a_small_dev_shm() -> None:
    finding = only(judge("BND-006", host=host(shm_total_mib=64)), "warn")
    assert "64 MiB" in finding.message and "podman run --shm-size" in commands(finding)
    assert judge("BND-006", host=host(shm_total_mib=65)).outcome == "pass"
    assert judge("BND-006", host=host(shm_total_mib=0)).outcome == "pass"  # no limit
    assert judge("BND-006", host=host(shm_total_mib=ABSENT)).outcome == "skipped"


def test_little_lockable_memory() -> None:
    finding = only(judge("BND-007", host=host(memlock_kib=8192)), "warn")
    assert "8192 KiB" in finding.message and "mlx5_0" in finding.message
    none = {"host": Host(rdma_devices=ABSENT)}
    assert judge("BND-007", host=host(memlock_kib=8192), outside=none).outcome == "skipped"


def test_this_engine_s_limits_are_the_host_s() -> None:
    finding = only(judge("BND-007", host=host(memlock_kib=64, container="apptainer")), "warn")
    assert not commands(finding)


# Others, and the boundary


def everything(told: Snapshot) -> dict[str, CheckResult]:
    return {result.code: result for result in diagnose(told).results}


def test_host_checks_judge_the_host_and_target_checks_what_the_target_sees() -> None:
    """One of two GPUs inside, chosen by its index there, and a small /dev/shm: no host check minds."""
    told = everything(
        both(
            IMAGE,
            {"NVIDIA_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "1"},
            nvml=nvml(GPUS[1]),
            cuda=cuda(GPUS[1]),
            host=host(shm_total_mib=64),
        )
    )
    assert told["ENV-001"].outcome == "fail", "the container's only GPU is number 0"
    assert told["HOST-008"].outcome in ("pass", "skipped")
    assert told["BND-006"].outcome == "warn"


def test_no_gpus_inside_is_one_finding_and_its_consequences() -> None:
    told = everything(
        both(
            IMAGE,
            {"NVIDIA_VISIBLE_DEVICES": "void"},
            nvml=no_nvml(12),
            cuda=no_libcuda(),
            kernel=Kernel(device_nodes=[]),
            nvidia_smi=NvidiaSmi(path=ABSENT, gpus=ABSENT),
        )
    )
    failed = [r.code for r in told.values() if r.outcome == "fail"]
    assert failed == ["BND-003"]
    assert told["ENV-002"].outcome == "skipped"


def test_a_fact_that_could_not_be_had_is_no_pass() -> None:
    trouble = Unavailable(unavailable="timeout")
    told = judge("BND-005", cuda=Probe(outcome="timeout", reason="the probe gave no answer"))
    assert told.outcome == "could-not-run"
    assert judge("BND-006", host=ok(host(shm_total_mib=trouble))).outcome == "could-not-run"


def test_podman_s_own_limit_on_processes_is_too_low() -> None:
    finding = only(judge("BND-008", host=host(cgroup_pids_limit=2048)), "warn")
    assert "only 2048 processes" in finding.message
    assert "podman run --pids-limit=-1" in commands(finding)
    assert judge("BND-008", host=host(cgroup_pids_limit=32768)).outcome == "pass"
    old = Host(container="podman")
    assert judge("BND-008", host=old).outcome == "skipped", "a snapshot of before"


@pytest.mark.parametrize("nodes", [ABSENT, []])
def test_rdma_devices_that_were_not_passed(nodes: Any) -> None:
    finding = only(judge("BND-009", host=host(rdma_nodes=nodes)), "warn")
    assert "/dev/infiniband/uverbs0 of the host did not arrive" in finding.message
    assert "--device /dev/infiniband --ulimit memlock=-1" in commands(finding)
    none = {"host": Host(container=ABSENT, wsl=False, rdma_nodes=ABSENT)}
    assert judge("BND-009", host=host(rdma_nodes=nodes), outside=none).outcome == "skipped"

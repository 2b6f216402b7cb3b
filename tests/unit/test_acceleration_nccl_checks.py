"""What is made of NCCL's runs: each state and each cause, from made-up runs."""

from __future__ import annotations

from typing import Any

import pytest
from judged import judged_alone, only
from nccl_runs import alone, gpus, machine, trial
from networks import network, setting

from envcheck.facts.host import Host
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult

SUM, RATE = "ACC-012", "ACC-013"
NVLS_OFF, P2P_OFF = "NCCL_NVLS_ENABLE=0", "NCCL_P2P_DISABLE=1"
NAMED_H100 = "NVIDIA H100 80GB HBM3"


def result(snapshot: Snapshot, code: str = SUM) -> CheckResult:
    return judged_alone(snapshot, code)


def headline_of(result: CheckResult) -> str:
    return only(result).headline


def broken(
    *warnings: str, reason: str = "RuntimeError: rank 0: ncclSystemError", **more: Any
) -> Any:
    return trial(outcome="error", reason=reason, warnings=list(warnings), **more)


def test_engaged_are_exact_sums_and_a_control_that_gets_its_own_numbers() -> None:
    passed = result(machine(trial(), alone()))
    assert passed.outcome == "pass"
    assert passed.detail == "NCCL 2.27.3: exact sums on 8 GPUs, Ring over P2P/CUMEM"
    both = machine(trial(algorithm="NVLS"), alone(), trial(NVLS_OFF))
    assert result(both).detail.endswith("without NVLS, too")


HUNG: Any = {"outcome": "error", "reason": "no end within 30 s", "hung": True}


@pytest.mark.parametrize(
    ("trials", "reason"),
    [
        ((trial(), alone(own=7)), "one rank alone does not get its own numbers back"),
        ((trial(),), "one rank alone does not get its own numbers back"),
        ((trial(ranks=1), alone(own=1)), "one rank adds up nothing"),
        ((trial(compared=0), alone()), "the sums were not compared"),
        ((trial(wrong=None), alone()), "the sums were not compared"),
        ((), "it was not reached"),
        ((trial(outcome="out-of-memory", reason="no memory"), alone()), "NCCL 2.27.3: no memory"),
        ((broken("unknown error"), alone(0, outcome="error")), "rank 0: ncclSystemError"),
        ((trial(**HUNG, stages=["rank 0: cuda"]), alone(0)), "never ended, before it came to"),
    ],
)
def test_without_evidence_it_could_not_run(trials: tuple[Any, ...], reason: str) -> None:
    found = result(machine(*trials))
    assert found.outcome == "could-not-run" and reason in found.reason


def test_wrong_sum_is_a_failure_and_says_where() -> None:
    wrong = trial(wrong=3, wrong_in=["rank 1, float32: 3 of 1048576"])
    found = result(machine(wrong, alone()))
    assert (found.outcome, headline_of(found)) == ("fail", "NCCL's sums are wrong")
    assert "(rank 1, float32: 3 of 1048576)" in found.findings[0].message
    cured = result(machine(wrong, alone(), trial(P2P_OFF)))
    assert headline_of(cured).endswith(", but not without direct transfers between the GPUs")
    assert f"export {P2P_OFF}" in cured.findings[0].remedy.commands  # type: ignore[union-attr]
    by_nvls = result(machine(wrong, alone(), trial(NVLS_OFF)))
    assert headline_of(by_nvls).endswith(", but not without NVLS (NVLink's multicast)")
    still = result(machine(wrong, alone(), trial(P2P_OFF, wrong=3)))
    assert headline_of(still) == "NCCL's sums are wrong"
    assert result(machine(trial(), alone(), trial(NVLS_OFF, wrong=1))).outcome == "fail"
    assert result(machine(trial(), alone(), broken("x", name=NVLS_OFF))).outcome == "pass"


def test_hang_is_a_failure_and_says_at_what() -> None:
    hung = trial(**HUNG, stages=["rank 0: sum", "rank 1: sum"])
    found = result(machine(hung, alone()))
    assert (found.outcome, headline_of(found)) == ("fail", "NCCL hangs between the GPUs")
    assert "hangs between 8 GPUs in the first all-reduce" in found.findings[0].message
    cured = result(machine(hung, alone(), trial(P2P_OFF)))
    assert headline_of(cured).endswith("but not without direct transfers between the GPUs")
    died = trial(outcome="crashed", reason="its process died")
    assert headline_of(result(machine(died, alone()))) == "NCCL crashes between the GPUs"


CAUSES = [
    (
        "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'",
        "NCCL 2.27.3 is built for CUDA 12.9, and the driver knows CUDA 12.2 at most",
    ),
    (
        "Call to posix_fallocate failed : No space left on device",
        "/dev/shm is too small for NCCL (64",
    ),
    (
        "transport/nvls.cc:254 Cuda failure 401 'the operation cannot be performed'",
        "NVLS fails, NVLink's multicast (the fabric's state: Completed, Success)",
    ),
    (
        "failed to open CUDA IPC handle : 11 invalid argument",
        "One process may not use GPU memory that another one shares (CUDA IPC)",
    ),
    ("Bootstrap : no socket interface found", "NCCL finds no network interface to meet on"),
]


@pytest.mark.parametrize(("warning", "headline"), CAUSES, ids=[one for _w, one in CAUSES])
def test_known_cause_is_named_in_the_first_sentence(warning: str, headline: str) -> None:
    host = Host(os_id="ubuntu", shm_total_mib=64, container="docker")
    h200 = gpus("NVIDIA H200", 8, 18, fabric_state="Completed", fabric_status="Success")
    found = result(machine(broken(warning), alone(), on=h200, host=host))
    assert found.outcome == "fail" and headline_of(found).startswith(headline)


def test_multicast_is_the_cause_where_it_works_without() -> None:
    warning = "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401"
    found = result(machine(broken(warning), alone(), trial(NVLS_OFF)))
    assert headline_of(found).endswith("without it the sum is right")
    still = result(machine(broken(warning), alone(), broken(warning, name=NVLS_OFF)))
    assert headline_of(still) == "NCCL fails between the GPUs"


def test_error_of_no_known_cause_quotes_what_nccl_warns_of() -> None:
    found = result(machine(broken("it broke", others=["/usr/lib/libnccl.so.2"]), alone()))
    assert (found.outcome, headline_of(found)) == ("fail", "NCCL fails between the GPUs")
    assert 'ncclSystemError ("it broke"); the target has 2 of them' in found.findings[0].message


# Bandwidth


def test_what_eight_gpus_reach_is_shown() -> None:
    fast = trial(algorithm="NVLS", bus_32_mib=276.0, bus_1024_mib=463.6, algorithm_1024_mib="NVLS")
    found = result(machine(fast, alone(), trial(NVLS_OFF, bus_1024_mib=360.0)), RATE)
    assert found.outcome == "pass"
    assert found.detail == (
        "463.6 GB/s with 1 GiB, NVLS over P2P/CUMEM; 360 GB/s with 1 GiB without NVLS"
    )


@pytest.mark.parametrize(
    ("name", "number", "links", "evidence", "slow"),
    [
        (NAMED_H100, 8, 18, {"bus_1024_mib": 226.0}, False),
        (NAMED_H100, 8, 18, {"bus_1024_mib": 224.0}, True),  # half of 18 × 25
        (NAMED_H100, 8, 18, {"bus_256_mib": 160.0}, False),
        (NAMED_H100, 8, 18, {"bus_256_mib": 150.0}, True),
        (NAMED_H100, 8, 18, {"bus_32_mib": 5.0}, False),  # latency counts there
        (NAMED_H100, 2, 18, {"bus_1024_mib": 100.0}, True),
        ("NVIDIA A100 80GB PCIe", 2, 12, {"bus_1024_mib": 140.0}, True),
        # pairs, and PCIe between them
        ("NVIDIA A100 80GB PCIe", 4, 12, {"bus_1024_mib": 25.0}, False),
        ("Tesla V100-SXM2-16GB", 8, 6, {"bus_1024_mib": 110.0}, False),
        # its links' rate is not known
        ("NVIDIA GeForce RTX 3090", 2, 4, {"bus_1024_mib": 9.0}, False),
        ("NVIDIA GeForce RTX 4090", 2, 0, {"bus_1024_mib": 1.0}, True),
        ("NVIDIA GeForce RTX 4090", 8, 0, {"bus_1024_mib": 2.5}, False),
        ("NVIDIA H200", 8, 18, {"bus_1024_mib": 330.0, "algorithm_1024_mib": "NVLS"}, False),
        ("NVIDIA H200", 8, 18, {"bus_1024_mib": 320.0, "algorithm_1024_mib": "NVLS"}, True),
        ("NVIDIA H200", 8, 18, {"bus_1024_mib": 320.0, "algorithm_1024_mib": "Ring"}, False),
        ("NVIDIA H200", 7, 18, {"bus_1024_mib": 320.0, "algorithm_1024_mib": "NVLS"}, False),
    ],
)
def test_far_below_the_links_or_what_others_reach_is_a_warning(
    name: str, number: int, links: int, evidence: dict[str, Any], slow: bool
) -> None:
    there = gpus(name, number, links, pcie_gen_max=4, pcie_width=16)
    ran = machine(trial(ranks=number, **evidence), alone(number), on=there)
    found = result(ran, RATE)
    assert found.outcome == ("warn" if slow else "pass")
    if slow:
        assert headline_of(found).startswith("NCCL is slow between the GPUs: ")


def test_the_way_round_by_the_host_is_named_with_the_setting_that_asks_for_it() -> None:
    off = {"settings": ["NCCL_P2P_DISABLE=1"], "transports": ["SHM"], "bus_1024_mib": 400.0}
    asked = network(settings=[setting("NCCL_P2P_DISABLE", "1", "/etc/nccl.conf")])
    found = result(machine(trial(**off), alone(), network=asked), RATE)
    assert headline_of(found) == "NCCL goes over SHM, since NCCL_P2P_DISABLE=1 is set"
    assert "18 NVLinks of each GPU stay unused" in found.findings[0].message
    assert found.findings[0].remedy.commands == ["sudoedit /etc/nccl.conf"]  # type: ignore[union-attr]
    plain = gpus("NVIDIA GeForce RTX 4090", 2, pcie_gen_max=4, pcie_width=16)
    host = trial(ranks=2, transports=["SHM"], bus_1024_mib=9.0)  # GeForce has no other way
    assert result(machine(host, alone(2), on=plain), RATE).outcome == "pass"
    socket = trial(ranks=2, transports=["NET/Socket"], bus_1024_mib=9.0)
    assert (
        headline_of(result(machine(socket, alone(2), on=plain), RATE))
        == "NCCL goes over NET/Socket"
    )


@pytest.mark.parametrize("trials", [(trial(wrong=1, bus_32_mib=9.0),), (trial(),), ()])
def test_no_rate_of_a_sum_that_is_wrong_or_was_not_timed(trials: tuple[Any, ...]) -> None:
    found = result(machine(*trials, alone()), RATE)
    assert found.outcome == "could-not-run"

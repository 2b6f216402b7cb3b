"""Memory and links: what the checks make of made-up runs. No GPU and no process is in here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from h100 import ADDRESSES, COUNT, gpu, mig_instance, nvml
from judged import full_text
from memory_runs import (
    SYSTEMS,
    both,
    changed,
    judged,
    links_trials,
    memory_trials,
    peers_trials,
    run,
    runs,
    set_,
    trial,
    with_runs,
)

from envcheck.facts.acceleration import SystemRun
from envcheck.facts.gpu import Gpu, GpuPair
from envcheck.facts.snapshot import Snapshot

CODES = [f"MEM-{number:03d}" for number in (1, 2, 3, 5, 6)]
FIRST, SECOND = ADDRESSES[:2]
DIRECT = f"directly {FIRST} to {SECOND}"


def each(count: int = COUNT, **facts: Any) -> list[Gpu]:
    return [gpu(number, **facts) for number in range(count)]


# -- healthy


def test_a_healthy_machine_is_told_its_rates() -> None:
    snapshot = with_runs(runs())
    details = {code: judged(snapshot, code) for code in CODES}
    assert {code: one.outcome for code, one in details.items()} == dict.fromkeys(CODES, "pass")
    assert details["MEM-001"].detail == (
        "8 GPUs, 20,000 MiB or more of each written and read back, nothing wrong"
    )
    assert details["MEM-002"].detail == "8 GPUs: 2,900 GB/s, of 3,350 GB/s published"
    assert "to it 55.1 GB/s, back 54.2 GB/s" in details["MEM-003"].detail
    assert "over generation 5 x16" in details["MEM-003"].detail
    assert details["MEM-005"].detail == "380 GB/s"
    assert details["MEM-006"].detail == "56 direct copies arrived whole"


SLOW_MEMORY = both(*[set_(way, gb_s=300.0) for way in ("copy", "read")])
SLOW_LINK = both(*[set_(f"pinned {way} the GPU", gb_s=9.0) for way in ("to", "from")])


@pytest.mark.parametrize(
    ("code", "made", "outcome", "words"),
    [
        # -- the pattern
        (
            "MEM-001",
            changed("memory", set_("pattern", wrong=3, where=["0x7f10 to 0x7fff"], bits="0x10")),
            "fail",
            "3 words of 8 bytes in 20,000 MiB of the memory of GPU 0 came back different from what was"
            " written, at device addresses 0x7f10 to 0x7fff (bits that differ: 0x10)",
        ),
        (
            "MEM-001",
            changed(
                "memory", set_("pattern", "error", "cuMemcpyDtoH: CUDA_ERROR_ECC_UNCORRECTABLE")
            ),
            "fail",
            "meets an uncorrectable error",
        ),
        (
            "MEM-001",
            changed(
                "memory",
                both(
                    set_("pattern", "out-of-memory", "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"),
                    set_("inverted pattern", "out-of-memory"),
                ),
            ),
            "could-not-run",
            "CUDA_ERROR_OUT_OF_MEMORY",
        ),
        # -- its bandwidth
        ("MEM-002", changed("memory", SLOW_MEMORY), "warn",
         "reaches 300 GB/s, while DCGM passes from 1,905 GB/s on"),
        ("MEM-002", changed("memory", both(SLOW_MEMORY, set_("device", l2_mib=512.0)), count=1),
         "skipped", "too little free memory"),
        # -- host and GPU
        (
            "MEM-003",
            changed("links", set_("round trip", wrong=2, where=["byte 0x8 to 0xf"], bits="0x1")),
            "fail",
            "2 words of 8 bytes came back different from a copy of 64 MiB to the host and back to GPU 0",
        ),
        ("MEM-003", changed("links", SLOW_LINK), "warn",
         "reach 9.0 GB/s, while its link, generation 5 x16, carries 63.0 GB/s: a factor of 7.0"),
        # -- GPU to GPU
        ("MEM-005", changed("peers", set_(DIRECT, gb_s=20.0)), "warn",
         "GPU 0 to GPU 1 20.0 GB/s, while the NVLinks of each carry 450 GB/s"),
        # -- and whole
        (
            "MEM-006",
            changed("peers", set_(DIRECT, wrong=2, where=["byte 0x8 to 0xf of the copy"])),
            "fail",
            "Direct copies from GPU to GPU arrive damaged: GPU 0 to GPU 1 (2 words); first at byte 0x8",
        ),
        ("MEM-006", changed("peers", set_(DIRECT, "timeout", "not done within 60 s"), outcome="timeout"),
         "fail", "A direct copy from GPU 0 to GPU 1 never ends"),
    ],
)  # fmt: skip
def test_each_state_and_cause(code: str, made: list[SystemRun], outcome: str, words: str) -> None:
    result = judged(with_runs(made), code)
    assert result.outcome == outcome, full_text(result)
    assert words in full_text(result), full_text(result)
    for finding in result.findings:
        assert finding.evidence and finding.subjects and finding.headline
        assert finding.message.endswith((".", ")")) and finding.remedy is not None


# -- no wolf


def test_a_share_of_a_gpu_is_held_against_nothing() -> None:
    gpus = each(mig_enabled=True, mig_instances=[mig_instance()])
    slow = changed("memory", SLOW_MEMORY)
    link = changed("links", SLOW_LINK)
    for made, code in ((slow, "MEM-002"), (link, "MEM-003")):
        result = judged(with_runs(made, gpus), code)
        assert result.outcome == "pass" and "not judged" in result.detail, full_text(result)


def test_a_link_that_nobody_saw_is_taken_from_the_facts() -> None:
    trials = links_trials()
    for name in ("pinned to the GPU", "pinned from the GPU"):
        trials[name] = trial(name, gb_s=9.0, mib=64)
    result = judged(with_runs([run("links", trials)], each(1)), "MEM-003")
    assert "generation 5 x16" in full_text(result) and result.outcome == "warn"
    blind = each(1, pcie_gen_max=None or gpu().pcie_replays, pcie_width=16)
    assert judged(with_runs([run("links", trials)], blind), "MEM-003").outcome == "pass"


def pcie_pairs(level: str, rate: float, odd: float) -> Snapshot:
    """Eight boards without NVLink, joined in one way; one copy differs."""
    trials = peers_trials()
    for name, one in trials.items():
        trials[name] = trial(name, **{**one.evidence, "GB/s": odd if name == DIRECT else rate})
    gpus = each(name="NVIDIA L40S", nvlinks=[], pcie_gen_max=4)
    pairs = [
        GpuPair(first=one, second=other, level=level, p2p_read="ok")
        for place, one in enumerate(ADDRESSES)
        for other in ADDRESSES[place + 1 :]
    ]
    return with_runs([run("peers", trials)], gpus, nvml=nvml(gpus, pairs=pairs))


def test_gpus_without_direct_access_are_not_judged() -> None:
    trials = {name: trial(name, "not-supported", "no access") for name in peers_trials()}
    for code in ("MEM-005", "MEM-006"):
        result = judged(with_runs([run("peers", trials)]), code)
        assert result.outcome == "skipped" and "no direct access" in result.reason


def test_pairs_over_pcie() -> None:
    result = judged(pcie_pairs("PIX", 25.0, 25.0), "MEM-005")
    assert result.outcome == "pass", full_text(result)


# -- what was not asked for, or is not there


@pytest.mark.parametrize("system", SYSTEMS)
def test_hostile_evidence_breaks_nothing(system: str) -> None:
    healthy = {"memory": memory_trials, "links": links_trials, "peers": peers_trials}[system]()
    values: list[Any] = ["", "many", -1, 0, 1e308, True, ["a", "b"], float(1 << 63)]
    for value in values:
        trials = {
            name: trial(name, **dict.fromkeys(one.evidence, value)) for name, one in healthy.items()
        }
        trials["directly  to "] = trial("directly  to ", gb_s=value)
        for code in CODES:
            judged(with_runs([run(system, trials)]), code)
    for code in CODES:
        judged(with_runs([run(system, healthy, gpus=[])], gpus=[]), code)


def test_a_replay_says_the_same() -> None:
    for made in (runs(), changed("links", SLOW_LINK), changed("peers", set_(DIRECT, wrong=1))):
        snapshot = with_runs(made)
        again = msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot)
        for code in CODES:
            assert judged(snapshot, code) == judged(again, code)

"""What is made of a soak, from made-up ones: what it saw, and a soak that did not look."""

from __future__ import annotations

from typing import Any

import build
import h100
import msgspec
import pytest
from soak_runs import BEFORE, gpu, judged, minute, snapshot, soak

from envcheck.checks.engine import diagnose
from envcheck.facts.gpu import Gpu
from envcheck.facts.soak import Mismatch, SoakGpu, XidSeen
from envcheck.findings.model import SOAK, CheckResult
from envcheck.reports import soak as text


def outcomes(results: dict[str, CheckResult]) -> dict[str, str]:
    """Without those that passed, and those that do not apply: one GPU has no peers."""
    quiet = ("pass", "skipped")
    return {code: one.outcome for code, one in results.items() if one.outcome not in quiet}


def message(results: dict[str, CheckResult], code: str) -> str:
    return " ".join(finding.message for finding in results[code].findings)


def after_errors(**grown: float) -> dict[str, Any]:
    return {"errors_after": {**BEFORE, **grown}}


def test_gpus_that_were_well_pass_and_say_what_was_compared() -> None:
    results = judged(gpu(0), gpu(1), gpu(2))
    assert outcomes(results) == {}
    assert results["SOAK-001"].detail == "5,400,000 products, each compared to the bit"
    assert results["SOAK-002"].detail == "3 GPUs, after 30 min"
    assert {one.outcome for one in results.values()} == {"pass"}


def test_without_a_soak_nobody_hears_of_it() -> None:
    results = diagnose(build.snapshot()).results
    mine = [result for result in results if result.area == "soak"]
    assert len(mine) == 9
    assert {(one.outcome, one.reason) for one in mine} == {("skipped", SOAK)}


WRONG = Mismatch(
    seconds=7800.0,
    what="product",
    product=812_345,
    words=1,
    row=17,
    column=9,
    found="0x45a3c021",
    wanted="0x45a3c020",
    unit=58,
)


def test_a_wrong_bit_is_a_failure_with_gpu_time_place_and_both_words() -> None:
    results = judged(gpu(0), gpu(1, mismatches=[WRONG], wrong=1, wrong_words=1))
    assert outcomes(results) == {"SOAK-001": "fail"}
    (finding,) = results["SOAK-001"].findings
    assert finding.subject == "GPU 1 NVIDIA H100 80GB HBM3 at 0000:11:00.0"
    for words in ("after 2 h 10 min", "product 812345", "row 17, column 9", "0x45a3c021"):
        assert words in finding.message
    assert "multiprocessor 58" in finding.message
    assert finding.remedy is not None
    assert "envcheck soak --for 1h --gpu 1" in finding.remedy.commands


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (Mismatch(seconds=9.0, what="peers", product=1), "not what the other GPUs of its name"),
        (Mismatch(seconds=9.0, what="first", words=3), "parts that must be equal were not"),
        (
            Mismatch(seconds=9.0, what="memory", addresses="0x10 to 0x17", bits="0x10"),
            "0x10 to 0x17",
        ),
    ],
)
def test_every_kind_of_mismatch_is_record(seen: Mismatch, words: str) -> None:
    assert words in message(judged(gpu(mismatches=[seen], wrong=1)), "SOAK-001")


@pytest.mark.parametrize("outcome", ["died", "hung"])
def test_a_gpu_that_died_is_record_with_its_time_and_the_others_pass(outcome: Any) -> None:
    results = judged(gpu(0, outcome=outcome, ended=605.0, reason="Xid 79"), gpu(1))
    assert outcomes(results) == {"SOAK-002": "fail"}
    assert f"{outcome} under load after 10 min: Xid 79" in message(results, "SOAK-002")


def test_a_gpu_in_use_was_not_judged() -> None:
    results = judged(SoakGpu(index=0, outcome="busy", reason="train.py is using it"), gpu(1))
    assert outcomes(results) == {"SOAK-002": "could-not-run"}
    assert judged(SoakGpu(index=0, outcome="busy"))["SOAK-006"].outcome == "skipped"


@pytest.mark.parametrize(
    ("name", "by", "expected"),
    [
        ("ecc_uncorrected", 1, "fail"),
        ("remap_uncorrectable", 1, "fail"),
        ("retired_pages", 2, "fail"),
        ("ecc_corrected", 9, "pass"),
        ("ecc_corrected", 10, "warn"),
        ("remap_pending", 1, "fail"),
    ],
)
def test_memory_errors_that_came_are_record(name: str, by: int, expected: str) -> None:
    results = judged(gpu(errors_after={**BEFORE, name: BEFORE.get(name, 0) + by}))
    assert results["SOAK-003"].outcome == expected


@pytest.mark.parametrize(("number", "expected"), [(79, "fail"), (48, "fail"), (31, "fail")])
def test_xids_are_judged_by_their_table(number: int, expected: str) -> None:
    results = judged(gpu(xids=[XidSeen(seconds=65.0, number=number)] * 2))
    assert results["SOAK-004"].outcome == expected
    assert f"Xid {number} under load after 1 min, 2 times" in message(results, "SOAK-004")


def test_links_that_lose_lanes_or_packets_are_record() -> None:
    narrow = [minute(place, pcie_width=16 if place < 9 else 8) for place in range(30)]
    assert "from 16 to 8 lanes" in message(judged(gpu(minutes=narrow)), "SOAK-005")
    assert judged(gpu(**after_errors(pcie_replays=63)))["SOAK-005"].outcome == "pass"
    assert judged(gpu(**after_errors(pcie_replays=64)))["SOAK-005"].outcome == "warn"
    assert judged(gpu(**after_errors(nvlink_errors=1)))["SOAK-005"].outcome == "warn"


def falling(share: float, minutes: int = 30) -> list[float]:
    step = share / (minutes - 1)
    return [600.0 * (1 - step * place) for place in range(minutes)]


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, "pass"), (0.02, "pass"), (0.05, "warn"), (0.13, "fail")]
)
def test_a_rate_that_fell_is_record_by_how_much(share: float, expected: str) -> None:
    assert judged(gpu(rates=falling(share)))["SOAK-006"].outcome == expected


def test_a_gpu_that_is_slower_than_its_peers_is_record() -> None:
    slow = gpu(2, rates=[560.0] * 30)
    results = judged(gpu(0), gpu(1, rates=[603.0] * 30), slow, gpu(3, rates=[598.0] * 30))
    assert outcomes(results) == {"SOAK-007": "warn"}
    assert "GPU 2" in results["SOAK-007"].findings[0].subject
    other = gpu(2, rates=[300.0] * 30, name="NVIDIA T4")
    assert outcomes(judged(gpu(0), gpu(1), other)) == {}


@pytest.mark.parametrize(
    ("reason", "share", "expected"),
    [
        ("hw_thermal_slowdown", 0.5, "fail"),
        ("hw_power_brake_slowdown", 0.02, "fail"),
        ("sw_thermal_slowdown", 0.02, "warn"),
        ("hw_thermal_slowdown", 0.001, "pass"),
        ("sw_power_cap", 1.0, "pass"),
    ],
)
def test_held_down_clocks_are_record_and_the_power_cap_is_not(
    reason: str, share: float, expected: str
) -> None:
    minutes = [minute(place, throttled={reason: share}) for place in range(30)]
    assert judged(gpu(minutes=minutes))["SOAK-009"].outcome == expected


@pytest.mark.parametrize(
    "one",
    [
        gpu(minutes=[], products=0),
        gpu(rates=[0.0] * 30),
        gpu(rates=[float("nan")] * 30),
        gpu(rates=[1e308] * 30),
        gpu(minutes=[minute(0, samples=0, tflops=None, pcie_width=None)] * 9),
        gpu(minutes=[minute(0, seconds=0.0)] * 9),
        gpu(errors_before={}, errors_after={"ecc_uncorrected": -4.0, "x": 1e300}),
        gpu(mismatches=[Mismatch(seconds=-1e9, what="memory")], wrong=1),
        gpu(outcome="died"),
        gpu(name="\x1b[31mred\n", reason="\x1b]0;x\x07", outcome="hung", ended=1e18),
    ],
)
def test_whatever_a_snapshot_holds_is_judged_and_shown(one: SoakGpu) -> None:
    results = list(judged(one, gpu(1), gpu(2)).values())
    assert not [
        finding for result in results for finding in result.findings if "crashed" in finding.message
    ]
    record = soak(one, gpu(1))
    shown = text.render(record, results)
    assert "\x1b" not in shown and "\x07" not in shown
    assert text.summary_json(record, results).count("\n") == 1


def test_the_summary_is_one_line_and_the_bits_are_shown() -> None:
    record = snapshot(gpu(0), gpu(1, mismatches=[WRONG], wrong=1)).machine.soak
    assert record is not None and record.facts is not None
    results = list(judged(gpu(0), gpu(1, mismatches=[WRONG], wrong=1)).values())
    shown = text.render(record.facts, results, width=100)
    assert shown.startswith(
        "FAIL: GPU 1 NVIDIA H100 80GB HBM3 at 0000:11:00.0 computed wrong results"
    )
    assert "0x45a3c021" in shown
    well = text.render(record.facts, list(judged(gpu(0), gpu(1)).values()), width=100)
    assert well.startswith("OK: 2 GPUs, 30:00, 3,600,000 products compared")


def blind(index: int = 0, **changes: Any) -> SoakGpu:
    """A GPU that computed, while nothing was sampled."""
    bare = [
        minute(
            place,
            sm_clock_mhz=None,
            temperature_c=None,
            memory_temperature_c=None,
            power_w=None,
            throttled={},
            pcie_width=None,
            pcie_gen=None,
            samples=0,
            reason_samples=0,
        )
        for place in range(30)
    ]
    values: dict[str, Any] = {
        "minutes": bare,
        "errors_before": {},
        "errors_after": {},
        "no_samples": "no libnvidia-ml.so.1",
    }
    return gpu(index, **{**values, **changes})


SAMPLED = ("SOAK-003", "SOAK-004", "SOAK-005", "SOAK-009", "SOAK-010")


@pytest.mark.parametrize("code", SAMPLED)
def test_without_samples_and_counters_nothing_passes(code: str) -> None:
    result = judged(blind(0), blind(1), blind(2))[code]
    assert result.outcome == "could-not-run", result
    assert "no libnvidia-ml.so.1" in result.reason


def test_a_counter_that_a_board_does_not_have_is_no_failure_of_looking() -> None:
    """A GeForce without ECC: there is no counter, and NVML answers everything else."""
    link = {name: BEFORE[name] for name in ("pcie_replays", "pcie_width", "pcie_gen", "xid_events")}
    results = judged(gpu(errors_before=link, errors_after=link))
    assert results["SOAK-003"].outcome == "skipped"
    assert results["SOAK-005"].outcome == "pass"


def test_xids_that_nvml_did_not_watch_are_not_known() -> None:
    unwatched = {**BEFORE, "xid_events": 0.0}
    result = judged(gpu(errors_before=BEFORE, errors_after=unwatched))["SOAK-004"]
    assert result.outcome == "could-not-run"


# -- what was seen


def link(gens: list[int], widths: list[int] | None = None, **changes: Any) -> SoakGpu:
    widths = widths or [16] * len(gens)
    minutes = [
        minute(place, pcie_gen=gen, pcie_width=width)
        for place, (gen, width) in enumerate(zip(gens, widths, strict=True))
    ]
    return gpu(minutes=minutes, **changes)


def test_a_link_that_fell_to_a_lower_generation_under_load_is_a_failure() -> None:
    result = judged(link([5] * 9 + [1] * 9))["SOAK-005"]
    assert result.outcome == "fail" and "from generation 5 to 1" in result.findings[0].message


def hot(celsius: float, **board: Any) -> CheckResult:
    seen: Gpu = msgspec.structs.replace(h100.gpu(), pci_address="0000:10:00.0", **board)
    minutes = [minute(place, memory_temperature_c=celsius) for place in range(10)]
    return judged(gpu(minutes=minutes), nvml=[seen])["SOAK-010"]


def test_memory_that_is_too_hot_is_judged_by_the_boards_own_limit_or_its_generations() -> None:
    assert hot(80.0).outcome == "pass"
    assert hot(105.0).outcome == "fail"
    assert hot(91.0, memory_temperature_max_c=95).outcome == "warn"
    assert hot(91.0, memory_temperature_max_c=110).outcome == "pass"
    unknown = {"memory_temperature_max_c": h100.NOT_SUPPORTED, "architecture": "Unheard"}
    assert hot(91.0, **unknown).outcome == "skipped"


@pytest.mark.parametrize("codes", ["SOAK", "BEN", "MEM", "ACC"])
def test_no_check_passes_on_empty_facts(codes: str) -> None:
    """Sections that are there, and hold nothing."""
    from build import snapshot

    from envcheck.checks.engine import diagnose
    from envcheck.facts.acceleration import Acceleration
    from envcheck.facts.base import Probe
    from envcheck.facts.bench import Bench
    from envcheck.facts.soak import Soak

    whole = snapshot()
    sections = {
        "acceleration": Probe(outcome="ok", facts=Acceleration()),
        "bench": Probe(outcome="ok", facts=Bench()),
    }
    machine = msgspec.structs.replace(
        whole.machine, soak=Probe(outcome="ok", facts=Soak()), **sections
    )
    target = msgspec.structs.replace(whole.machine, **sections)
    results = diagnose(msgspec.structs.replace(whole, machine=machine, target=target)).results
    mine = [one for one in results if one.code.startswith(codes)]
    assert mine and not [one.code for one in mine if one.outcome == "pass"]

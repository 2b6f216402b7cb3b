"""A soak that did not look does not pass; what it saw is judged."""

from __future__ import annotations

from typing import Any

import h100
import msgspec
import pytest
from soak_runs import BEFORE, gpu, judged, minute

from envcheck.facts.gpu import Gpu
from envcheck.facts.soak import SoakGpu
from envcheck.findings.model import CheckResult


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

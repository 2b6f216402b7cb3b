"""Copies and all-reduces by size, from made-up runs: rates, bus bandwidth, tables, plots; hostile values."""

from __future__ import annotations

from typing import Any

import build
import h100
import nccl_runs
import pytest

from envcheck.bench.results import results
from envcheck.bench.sizes import SizeSeries, bus, series
from envcheck.cli import bench_report
from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.snapshot import Snapshot
from envcheck.reports import bench, bench_page
from envcheck.reports.bench_sizes import name_of, size_of

ONE, OTHER = nccl_runs.ADDRESSES[:2]


def ran(system: str, name: str, gpus: list[str], told: dict[str, Any], **more: Any) -> SystemRun:
    trial = SystemTrial(name=name, outcome=more.pop("ended", "ok"), evidence=told)
    return SystemRun(system=system, gpus=gpus, outcome="ok", trials=[trial], **more)


def machine(*runs: SystemRun) -> Snapshot:
    facts = Acceleration(systems=sorted({run.system for run in runs}), runs=list(runs))
    there = nccl_runs.gpus("NVIDIA H200", 8, 18, pcie_gen_max=5, pcie_width=16)
    return build.snapshot(**(h100.sections(there) | {"acceleration": facts}))


NCCL = ran(
    "nccl",
    "all-reduce",
    nccl_runs.ADDRESSES,
    {"ranks": 8, "seconds_8_bytes": 2e-5, "seconds_1073741824_bytes": 4e-3},
)
EVERY = (
    NCCL,
    ran("memory", "copy by size", [ONE], {"seconds_16777216_bytes": 1e-5}),
    ran("links", "pinned to the GPU by size", [ONE], {"seconds_16777216_bytes": 3e-4}),
    ran("peers", f"directly {ONE} to {OTHER}", [ONE, OTHER], {"seconds_64_bytes": 4e-6}),
)


def by_title(*runs: SystemRun) -> dict[str, SizeSeries]:
    return {one.title: one for one in series(machine(*runs))}


def test_bus_bandwidth_is_what_each_link_carries() -> None:
    assert bus(100.0, 2) == pytest.approx(100.0)
    assert bus(100.0, 8) == pytest.approx(175.0)
    first, last = by_title(*EVERY)["NCCL"].rates
    assert (first.bytes, first.seconds) == (8, 2e-5)
    assert last.gb_s == pytest.approx(268.435, rel=1e-4)
    assert last.bus_gb_s == pytest.approx(469.76, rel=1e-4)


def test_a_copy_in_a_gpu_s_memory_reads_and_writes() -> None:
    found = by_title(*EVERY)
    assert found["GPU memory"].rates[0].gb_s == pytest.approx(2 * 1677.7, rel=1e-4)
    assert found["Host link"].rates[0].gb_s == pytest.approx(55.92, rel=1e-3)
    assert found["GPU to GPU"].rates[0].bus_gb_s is None
    assert found["GPU memory"].context == "published: 4,800 GB/s"
    assert found["Host link"].context == "16 lanes of PCIe 5 carry 63.0 GB/s each way"
    assert [one.what for one in series(machine(*EVERY))] == ["links"] * 3 + ["allreduce"]


def test_the_deep_level_s_own_trials_are_not_by_size() -> None:
    plain = ran("nccl", "all-reduce", [ONE, OTHER], {"ranks": 2, "bus_32_mib": 300.0})
    assert series(machine(plain)) == []
    assert results(machine(plain)) is None


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan"), True, "fast", 1e-300])
def test_what_is_no_time_is_no_rate(seconds: Any) -> None:
    told = {
        "ranks": 2,
        "seconds_8_bytes": seconds,
        "seconds_64_bytes": 1e-5,
        "seconds_0_bytes": 1.0,
    }
    (found,) = series(machine(ran("nccl", "all-reduce", [ONE, OTHER], told)))
    assert [one.bytes for one in found.rates] == [64]


def test_a_trial_that_failed_says_why() -> None:
    failed = ran("memory", "copy by size", [ONE], {}, ended="out-of-memory")
    assert by_title(failed)["GPU memory"].reason == "out-of-memory"


def test_text_has_sizes_times_and_rates() -> None:
    snapshot = machine(*EVERY)
    found = results(snapshot)
    assert found is not None and found.bench.asked == ["links", "allreduce"]  # without a target
    report = bench_report.report(snapshot, found)
    text = bench.render(report, found, snapshot, width=120)
    assert "Links: median of in-place copies" in text
    assert "GPU to GPU, directly GPU 0 to GPU 1:" in text
    assert "All-reduce: bus bandwidth is the rate" in text
    line = next(line for line in text.splitlines() if line.strip().startswith("1 GiB"))
    assert line.split() == ["1", "GiB", "4.00", "ms", "268", "470"]
    assert report.sizes == found.sizes


def test_the_page_has_a_plot_for_each() -> None:
    snapshot = machine(*EVERY)
    found = results(snapshot)
    assert found is not None
    page = bench_page.render(bench_report.report(snapshot, found), found, snapshot)
    assert "NCCL by size" in page and "Host link by size" in page
    assert "GB/s on the bus" in page


def test_names() -> None:
    assert [size_of(one) for one in (8, 512, 32768, 1 << 30)] == ["8 B", "512 B", "32 KiB", "1 GiB"]
    cpu = SizeSeries(what="allreduce", title="Horovod", name="all-reduce", ranks=2, on_cpu=True)
    assert name_of(cpu, {}) == "Horovod, all-reduce, 2 ranks on the CPU"

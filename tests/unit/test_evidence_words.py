"""Facts as evidence: what they are called, their values with units, of several devices in one line."""

from __future__ import annotations

import demos
import pytest

from envcheck.facts.evidence import Evidence
from envcheck.reports.evidence_words import evidence_lines

GPU = "machine.nvml.gpus[3]."


def lines(*facts: tuple[str, str]) -> list[str]:
    found = evidence_lines([Evidence(*fact) for fact in facts], demos.healthy())
    return [text for text, _proof in found]


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        (GPU + "slowdown_hw_thermal_us", "1260000000", "slowed down by heat for 21 min"),
        (GPU + "clock_sm_max_mhz", "1980", "highest SM clock: 1,980 MHz"),
        (GPU + "power_draw_w", "171.0", "power draw: 171 W"),
        (GPU + "memory_total_mib", "81559", "memory: 79.6 GiB"),
        (GPU + "clock_event_reasons", "hw_slowdown, so_so", "clocks held down by: the hardware, so_so"),
        (GPU + "temperature_c", "lost: GPU is lost", "temperature: lost: GPU is lost"),
        (GPU + "processes", '{"pid":7,"memory_mib":900}', "processes: process 7, memory 900 MiB"),
        (GPU + "processes", "{not json", "processes: {not json"),
        ("machine.host.shm_total_mib", "64", "/dev/shm: 64 MiB"),
        ("machine.kernel.driver_flavour", "open", "kernel module: open"),
        ("machine.pci.devices", "4 NVSwitches", "PCI devices: 4 NVSwitches"),
        ("machine.of_a_plugin.fan_speed_percent", "40", "of a plugin fan speed: 40 %"),
        ("oddly", "{}", "oddly: {}"),
    ],
)  # fmt: skip
def test_a_fact_has_words_and_a_unit(path: str, value: str, shown: str) -> None:
    assert lines((path, value)) == [shown]


def test_the_same_fact_of_several_gpus_is_one_line() -> None:
    heat = [
        (f"machine.nvml.gpus[{n}].temperature_c", c) for n, c in ((0, "86"), (2, "88"), (3, "88"))
    ]
    assert lines(*heat) == ["temperature: 86 °C (GPU 0), 88 °C (GPUs 2–3)"]
    assert lines(*heat[1:], ("machine.nvml.gpus[99].temperature_c", "88")) == ["temperature: 88 °C"]

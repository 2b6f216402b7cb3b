"""Clocks, power and heat."""

from __future__ import annotations

from world.gpus import Gpu, busy
from world.machine import Machine

from ..model import Collection

FAULTS = Collection("clocks, power, heat")
add = FAULTS.add
COOLING = r"cool|fan|air|temperature|heat"
POWER = r"power|PSU|cable|supply"
NEW = "GPU-02[7-9]|GPU-03[0-4]"


def at_work(m: Machine) -> None:
    for gpu in m.gpus:
        busy(gpu)
        gpu.change(pcie=gpu.pcie_max)
        m.of(gpu.index).files["current_link_speed"] = m.of(gpu.index).files["max_link_speed"]


def _one(index: int, **values: object):  # type: ignore[no-untyped-def]
    def apply(m: Machine) -> None:
        at_work(m)
        m.gpu(index).change(**values)

    return apply


def count(gpu: Gpu, **nanoseconds: int) -> None:
    gpu.change(counters={**gpu.counters, **nanoseconds})


add(
    "hardware slows GPU 3 down for heat",
    "h100",
    _one(
        3, reasons=["hw_slowdown", "hw_thermal_slowdown"], temperature=88, margin=-1, clock_sm=345
    ),
    ("GPU-00[78]", r"GPU 3\b", r"therm|heat|hot", COOLING),
    also="GPU-00[78]|GPU-02[7-9]|GPU-03[0-4]",
)
add(
    "software slows a card down for heat",
    "rtx4090",
    _one(1, reasons=["sw_thermal_slowdown"], temperature=84, margin=6, clock_sm=1500, fan=100),
    ("GPU-00[78]", r"GPU 1\b", r"therm|heat|hot", COOLING),
    also="GPU-00[78]|GPU-02[7-9]|GPU-03[0-4]",
)
add(
    "the power brake is pulled on GPU 6",
    "h100",
    _one(6, reasons=["hw_slowdown", "hw_power_brake_slowdown"], clock_sm=690),
    ("GPU-008", r"GPU 6\b", r"power.?brake", POWER),
    also=NEW,
)
add(
    "hardware slows GPU 0 down, and does not say why",
    "h100",
    _one(0, reasons=["hw_slowdown"], clock_sm=525),
    ("GPU-008", r"GPU 0\b", r"slow", rf"{POWER}|{COOLING}"),
    also=NEW,
)
add(
    "GPU 2 is near its shutdown temperature",
    "h100",
    _one(2, temperature=91, margin=-4, reasons=["sw_thermal_slowdown"]),
    ("GPU-00[78]", r"GPU 2\b", r"91|hot|temperature", COOLING),
    also="GPU-00[78]|GPU-02[7-9]|GPU-03[0-4]",
)
add(
    "the memory of GPU 4 has 105 °C",
    "h100",
    _one(4, memory_temperature=105),
    (f"GPU-007|{NEW}", r"GPU 4\b", r"memory.*105|105.*memory", COOLING),
)


def _counted(index: int, **nanoseconds: int):  # type: ignore[no-untyped-def]
    def apply(m: Machine) -> None:
        count(m.gpu(index), **nanoseconds)

    return apply


add(
    "GPU 5 was slowed down for heat for an hour",
    "h100",
    _counted(5, hw_thermal_slowdown=3_600_000_000_000),
    (f"GPU-00[78]|{NEW}", r"GPU 5\b", r"therm|heat|hot", COOLING),
)


def _application_clocks(m: Machine) -> None:
    at_work(m)
    m.gpu(3).change(app_sm=345, clock_sm=345, reasons=["applications_clocks_setting"])


add(
    "application clocks of 345 MHz",
    "h100",
    _application_clocks,
    (
        f"GPU-008|{NEW}",
        r"GPU 3\b",
        r"345|application",
        r"nvidia-smi.*(-rac|-ac|reset-applications-clocks|-rgc)",
    ),
)
add(
    "GPU 3 may draw 400 W of 700",
    "h100",
    lambda m: m.gpu(3).change(limit_mw=400 * 1000),
    ("GPU-009|GPU-02[1-6]", "GPU 3\\b", "400", "nvidia-smi.*-pl|power-limit|default"),
)
add(
    "the default power limit of one GPU is lower than its peers'",
    "h100",
    lambda m: m.gpu(4).change(default_mw=500000, limit_mw=500000),
    ("GPU-02[1-6]|GPU-009", r"GPU 4\b", r"500", r"VBIOS|vendor|firmware|nvidia-smi|card"),
)
add(
    "the highest clock of one GPU is lower than its peers'",
    "h100",
    lambda m: m.gpu(1).change(max_sm=1755, app_sm=1755, default_app_sm=1755),
    ("GPU-02[1-6]", r"GPU 1\b", r"1.?755", r"VBIOS|vendor|firmware|nvidia-smi|card|RMA|reset"),
)

"""Clocks, power and heat."""

from __future__ import annotations

from world.gpus import busy
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


add(
    "hardware slows GPU 3 down for heat",
    _one(
        3, reasons=["hw_slowdown", "hw_thermal_slowdown"], temperature=88, margin=-1, clock_sm=345
    ),
    ("GPU-00[78]", r"GPU 3\b", r"therm|heat|hot", COOLING),
    also="GPU-00[78]|GPU-02[7-9]|GPU-03[0-4]",
)
add(
    "hardware slows GPU 0 down, and does not say why",
    _one(0, reasons=["hw_slowdown"], clock_sm=525),
    ("GPU-008", r"GPU 0\b", r"slow", rf"{POWER}|{COOLING}"),
    also=NEW,
)
add(
    "the memory of GPU 4 has 105 °C",
    _one(4, memory_temperature=105),
    (f"GPU-007|{NEW}", r"GPU 4\b", r"memory.*105|105.*memory", COOLING),
)


def _slowed_before(m: Machine) -> None:
    m.gpu(5).change(counters=m.gpu(5).counters | {"hw_thermal_slowdown": 3_600_000_000_000})


add(
    "GPU 5 was slowed down for heat for an hour",
    _slowed_before,
    (f"GPU-00[78]|{NEW}", r"GPU 5\b", r"therm|heat|hot", COOLING),
)


def _application_clocks(m: Machine) -> None:
    at_work(m)
    m.gpu(3).change(app_sm=345, clock_sm=345, reasons=["applications_clocks_setting"])


add(
    "application clocks of 345 MHz",
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
    lambda m: m.gpu(3).change(limit_mw=400 * 1000),
    ("GPU-009|GPU-02[1-6]", "GPU 3\\b", "400", "nvidia-smi.*-pl|power-limit|default"),
)
add(
    "the default power limit of one GPU is lower than its peers'",
    lambda m: m.gpu(4).change(default_mw=500000, limit_mw=500000),
    ("GPU-02[1-6]|GPU-009", r"GPU 4\b", r"500", r"VBIOS|vendor|firmware|nvidia-smi|card"),
)

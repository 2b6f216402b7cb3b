"""Clocks, power and heat."""

from __future__ import annotations

from world.gpus import busy
from world.machine import Machine

from ..changes import both, gpu
from ..model import Collection

FAULTS = Collection("clocks, power, heat")
add = FAULTS.add
COOLING = r"cool|fan|air|temperature|heat"
POWER = r"power|PSU|cable|supply"
NEW = "GPU-02[7-9]|GPU-03[0-4]"
HOT = ["hw_slowdown", "hw_thermal_slowdown"]


def at_work(m: Machine) -> None:
    for one in m.gpus:
        busy(one, pcie=one.pcie_max)
        m.of(one.index).files["current_link_speed"] = m.of(one.index).files["max_link_speed"]


add(
    "hardware slows GPU 3 down for heat",
    both(at_work, gpu(3, reasons=HOT, temperature=88, margin=-1, clock_sm=345)),
    ("GPU-00[78]", r"GPU 3\b", r"therm|heat|hot", COOLING),
    also="GPU-00[78]|GPU-02[7-9]|GPU-03[0-4]",
)
add(
    "hardware slows GPU 0 down, and does not say why",
    both(at_work, gpu(0, reasons=HOT[:1], clock_sm=525)),
    ("GPU-008", r"GPU 0\b", r"slow", rf"{POWER}|{COOLING}"),
    also=NEW,
)
add(
    "the memory of GPU 4 has 105 °C",
    both(at_work, gpu(4, memory_temperature=105)),
    (f"GPU-007|{NEW}", r"GPU 4\b", r"memory.*105|105.*memory", COOLING),
)


add(
    "GPU 5 was slowed down for heat for an hour",
    lambda m: m.gpu(5).counters.update(hw_thermal_slowdown=3_600_000_000_000),
    (f"GPU-00[78]|{NEW}", r"GPU 5\b", r"therm|heat|hot", COOLING),
)


add(
    "application clocks of 345 MHz",
    both(at_work, gpu(3, app_sm=345, clock_sm=345, reasons=["applications_clocks_setting"])),
    (
        f"GPU-008|{NEW}",
        r"GPU 3\b",
        r"345|application",
        r"nvidia-smi.*(-rac|-ac|reset-applications-clocks|-rgc)",
    ),
)
add(
    "GPU 3 may draw 400 W of 700",
    gpu(3, limit_mw=400_000),
    ("GPU-009|GPU-02[1-6]", "GPU 3\\b", "400", "nvidia-smi.*-pl|power-limit|default"),
)
add(
    "the default power limit of one GPU is lower than its peers'",
    gpu(4, default_mw=500_000, limit_mw=500_000),
    ("GPU-02[1-6]|GPU-009", r"GPU 4\b", r"500", r"VBIOS|vendor|firmware|nvidia-smi|card"),
)

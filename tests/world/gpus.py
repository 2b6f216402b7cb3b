"""What a made-up GPU is like."""

from __future__ import annotations

from typing import Any

SRAM = ("agg_parity", "agg_secded", "agg_cor", "vol_parity", "vol_secded", "vol_cor",
        "l2", "sm", "pcie", "mcu", "other")  # fmt: skip
# Why a GPU runs slower, of which the time is counted.
SLOWED = ("sw_power_cap", "sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown",
          "hw_power_brake_slowdown")  # fmt: skip
HEALTHY_FABRIC = 2 | 2 << 2 | 2 << 4 | 2 << 6 | 1 << 8


class Gpu(dict[str, Any]):
    """Its properties by name. None is what this GPU does not support."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def change(self, **values: Any) -> None:
        unknown = set(values) - set(self)
        assert not unknown, f"a GPU has no {unknown}"
        self.update(values)

    @property
    def handle(self) -> int:
        return int(self.index) + 1


def gpu(index: int, address: str, **values: Any) -> Gpu:
    """A data-centre GPU without work; ``values`` make it a product."""
    made = Gpu(
        index=index,
        minor=index,
        address=address,
        uuid=f"{0x6D1F0000 + index:08x}-1c2d-4e3f-8a9b-0c1d2e3f{index:04x}",
        serial=f"16543230{index:05d}",
        name="NVIDIA H100 80GB HBM3",
        brand=14,
        board_part="692-2G520-0200-500",
        architecture=9,
        capability=(9, 0),
        vbios="96.00.A5.00.01",
        inforom="G520.0200.00.05",
        inforom_valid=True,
        device_id=0x2330,
        virtualization=0,
        persistence=True,
        compute_mode=0,
        pstate=0,
        bar1_mib=131072,
        memory_mib=81559,
        reserved_mib=551,
        used_mib=0,
        bus_width=5120,
        cores=16896,
        mig=(False, False),
        mig_instances=[],
        max_mig=7,
        ecc=(True, True),
        sram=dict.fromkeys(SRAM, 0),
        sram_exceeded=False,
        dram_corrected=(0, 0),  # volatile, aggregate
        dram_uncorrected=(0, 0),
        retired=None,  # (single bit, double bit, pending)
        remap=(0, 0, False, False),
        histogram=(640, 0, 0, 0, 0),
        repair=(False, False),
        unrepairable=False,
        reset_required=False,
        recovery_action=0,
        temperature=32,
        slowdown_c=87,
        shutdown_c=92,
        margin=55,
        memory_temperature=41,
        memory_max_c=95,
        fan=None,
        power_mw=70500,
        limit_mw=700000,
        power_range=(200000, 700000),
        clock_sm=345,
        clock_memory=2619,
        max_sm=1980,
        max_memory=2619,
        app_sm=1980,
        app_memory=2619,
        reasons=["gpu_idle"],
        counters=dict.fromkeys(SLOWED, 0),  # nanoseconds
        utilization=0,
        pcie=(5, 16),  # generation, width
        pcie_max=(5, 16),
        replays=0,
        links=[{"active": True, "errors": {}, "version": 4} for _ in range(18)],
        link_mbps=26562,
        remote=2,  # a switch
        fabric=("Completed", 0, HEALTHY_FABRIC, 1),  # state, status, mask, summary
        fabric_cluster=bytes(16),
        fabric_clique=0,
        gsp="570.86.15",
        gsp_mode=(1, 1),
        addressing=0,
        processes=[],  # (pid, MiB or None)
        graphics=[],
        mps=[],
        licence=None,  # True, False
        licence_expiry={"status": 4},  # permanent
        numa=None,
        cuda=True,  # whether libcuda lists it
    )
    given = {**made, **values}
    generation = given["pcie_max"] and given["pcie_max"][0]
    made |= {
        "default_mw": given["limit_mw"],
        "default_app_sm": given["app_sm"],
        "default_app_memory": given["app_memory"],
        "pcie_max_device": generation,
        "pcie_max_host": generation,
    }
    made.change(**values)
    return made


def busy(one: Gpu, **values: Any) -> None:
    """At full load, as training does it."""
    one.change(
        utilization=98,
        clock_sm=one.max_sm - 45,
        clock_memory=one.max_memory,
        pstate=0,
        power_mw=int(one.limit_mw * 0.95),
        temperature=58,
        margin=29 if one.margin is not None else None,
        used_mib=one.memory_mib * 3 // 4,
        reasons=[],
        processes=[(4711, one.memory_mib * 3 // 4 - 500)],
    )
    one.change(**values)

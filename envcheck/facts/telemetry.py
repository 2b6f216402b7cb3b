"""What NVML said about a GPU again and again, while something ran on it."""

from __future__ import annotations

from .base import Address, Facts


class GpuSamples(Facts, frozen=True, kw_only=True):
    """Columns of equal length; null where a sample has no value.

    Names in ``values``: sm_clock_mhz, memory_clock_mhz, temperature_c, memory_temperature_c, power_w,
    throttle_reasons (NVML's bits), pcie_rx_mb_s, pcie_tx_mb_s,
    other_processes (how many that are not envcheck's).
    """

    gpu: Address
    seconds: list[float]  # of each sample, since the bench or the soak began
    values: dict[str, list[float | None]] = {}

"""Names that NVML has for what tests/world/gpus.py has others for."""

REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clocks_setting",
)  # by their bits
FABRIC_STATES = (None, "Not Started", "In Progress", "Completed")
TEXTS = {
    "Serial": "serial",
    "Name": "name",
    "BoardPartNumber": "board_part",
    "VbiosVersion": "vbios",
    "InforomImageVersion": "inforom",
    "GspFirmwareVersion": "gsp",
}
NUMBERS = {
    "Brand": "brand",
    "Architecture": "architecture",
    "MinorNumber": "minor",
    "PersistenceMode": "persistence",
    "ComputeMode": "compute_mode",
    "PerformanceState": "pstate",
    "PowerState": "pstate",
    "MemoryBusWidth": "bus_width",
    "NumGpuCores": "cores",
    "FanSpeed": "fan",
    "PowerUsage": "power_mw",
    "EnforcedPowerLimit": "limit_mw",
    "PowerManagementLimit": "limit_mw",
    "PowerManagementDefaultLimit": "default_mw",
    "GpuMaxPcieLinkGeneration": "pcie_max_device",
    "PcieReplayCounter": "replays",
    "VirtualizationMode": "virtualization",
    "NumaNodeId": "numa",
}
LISTS = {
    "CudaComputeCapability": "capability",
    "GspFirmwareMode": "gsp_mode",
    "EccMode": "ecc",
    "MigMode": "mig",
    "PowerManagementLimitConstraints": "power_range",
    "RemappedRows": "remap",
}
CLOCKS = {
    "ClockInfo": "clock",
    "MaxClockInfo": "max",
    "MaxCustomerBoostClock": "max",
    "ApplicationsClock": "app",
    "DefaultApplicationsClock": "default_app",
}
SRAM = {
    "aggregateUncParity": "agg_parity",
    "aggregateUncSecDed": "agg_secded",
    "aggregateCor": "agg_cor",
    "volatileUncParity": "vol_parity",
    "volatileUncSecDed": "vol_secded",
    "volatileCor": "vol_cor",
    "aggregateUncBucketL2": "l2",
    "aggregateUncBucketSm": "sm",
    "aggregateUncBucketPcie": "pcie",
    "aggregateUncBucketMcu": "mcu",
    "aggregateUncBucketOther": "other",
}
USERS = {"Compute": "processes", "Graphics": "graphics", "MPSCompute": "mps"}

"""NVML's numbers in the words that nvidia-smi uses for them (nvml.h; nvidia-smi -q of driver 595)."""

BRANDS = {
    1: "Quadro",
    2: "Tesla",
    3: "NVS",
    4: "Grid",
    5: "GeForce",
    6: "Titan",
    7: "NVIDIA Virtual Applications",
    8: "NVIDIA Virtual PC",
    9: "NVIDIA Virtual Compute Server",
    10: "NVIDIA RTX Virtual Workstation",
    11: "NVIDIA Cloud Gaming",
    12: "Quadro RTX",
    13: "NVIDIA RTX",
    14: "NVIDIA",
    15: "GeForce RTX",
    16: "Titan RTX",
}
ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
COMPUTE_MODES = {
    0: "Default",
    1: "Exclusive_Thread",
    2: "Prohibited",
    3: "Exclusive_Process",
}
VIRTUALIZATION = {
    0: "None",
    1: "Pass-Through",
    2: "VGPU",
    3: "Host VGPU",
    4: "Host VSGA",
}
DRIVER_MODELS = {0: "WDDM", 1: "TCC", 2: "MCDM"}
ADDRESSING_MODES = {0: "None", 1: "HMM", 2: "ATS"}
RECOVERY_ACTIONS = {
    0: "None",
    1: "Reset",
    2: "Reboot",
    3: "Drain P2P",
    4: "Drain and Reset",
    5: "Recover IMEX Domain",
    6: "Bus Reset",
    7: "System Reboot",
}
# Bits of nvmlClocksEventReason*, once nvmlClocksThrottleReason*.
CLOCK_EVENT_REASONS = (
    (0x001, "gpu_idle"),
    (0x002, "applications_clocks_setting"),
    (0x004, "sw_power_cap"),
    (0x008, "hw_slowdown"),
    (0x010, "sync_boost"),
    (0x020, "sw_thermal_slowdown"),
    (0x040, "hw_thermal_slowdown"),
    (0x080, "hw_power_brake_slowdown"),
    (0x100, "display_clocks_setting"),
    (0x200, "board_limit"),  # this and the next since nvidia-ml-py 13.615
    (0x400, "reliability"),
)
THERMAL_VIOLATION = 75  # NVML_FI_DEV_PERF_POLICY_THERMAL, in ns
FABRIC_STATES = {1: "Not Started", 2: "In Progress", 3: "Completed"}
FABRIC_HEALTH = {1: "Healthy", 2: "Unhealthy", 3: "Limited Capacity"}
# Parts of the fabric's health mask: shift, width, the value of a healthy part, and the fault that each
# other value stands for (NVML_GPU_FABRIC_HEALTH_MASK_*); 0 is not supported.
FABRIC_HEALTH_MASK = (
    (0, 0x3, 2, {1: "degraded_bandwidth"}),
    (2, 0x3, 2, {1: "route_recovery_in_progress"}),
    (4, 0x3, 2, {1: "route_unhealthy"}),
    (6, 0x3, 2, {1: "access_timeout_recovery"}),
    (
        8,
        0xF,
        1,
        {
            2: "incorrect_system_guid",
            3: "incorrect_chassis_serial_number",
            4: "no_partition",
            5: "insufficient_nvlinks",
            6: "incompatible_gpu_firmware",
            7: "invalid_location",
            8: "gpu_state_invalid",
        },
    ),
    (12, 0x3, 1, {2: "partition_not_assigned"}),
    (14, 0x3, 1, {2: "fabric_manager_disconnected"}),
)
# Counters of field values that tell for how long, in ns, clocks were held down: by software's thermal
# slowdown, by hardware's, by the power brake. Drivers 575 to 580.76 have them under other numbers, which
# mean something else in all others (nvidia-ml-py 12.570.86, 12.575.51, 13.580.65, 13.580.82).
SLOWDOWN_FIELDS = (269, 270, 271)
SLOWDOWN_FIELDS_OF_575 = (251, 252, 253)
# nvmlGpuTopologyLevel_t, as `nvidia-smi topo -m` writes it.
TOPOLOGY = {0: "internal", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
P2P = {
    0: "ok",
    1: "chipset not supported",
    2: "GPU not supported",
    3: "topology not supported",
    4: "disabled by registry key",
    5: "not supported",
    6: "unknown",
}


def clock_event_reasons(mask):
    """The names of the bits that are set; a bit without a name is named by its value."""
    names = [name for bit, name in CLOCK_EVENT_REASONS if mask & bit]
    known = sum(bit for bit, _name in CLOCK_EVENT_REASONS)
    rest = mask & ~known
    while rest:
        bit = rest & -rest
        names.append("reason_0x%x" % bit)
        rest ^= bit
    return names

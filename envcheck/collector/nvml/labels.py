"""NVML's numbers in the words that nvidia-smi uses for them (nvml.h; nvidia-smi -q of driver 595)."""


def _numbered(words, first=0):
    return dict(enumerate(words.split("|"), first))


BRANDS = _numbered(
    "Quadro|Tesla|NVS|Grid|GeForce|Titan|NVIDIA Virtual Applications|NVIDIA Virtual PC"
    "|NVIDIA Virtual Compute Server|NVIDIA RTX Virtual Workstation|NVIDIA Cloud Gaming|Quadro RTX"
    "|NVIDIA RTX|NVIDIA|GeForce RTX|Titan RTX",
    1,
)
ARCHITECTURES = _numbered(
    "Kepler|Maxwell|Pascal|Volta|Turing|Ampere|Ada Lovelace|Hopper|Blackwell", 2
)
ARCHITECTURES[13] = "Rubin"
COMPUTE_MODES = _numbered("Default|Exclusive_Thread|Prohibited|Exclusive_Process")
VIRTUALIZATION = _numbered("None|Pass-Through|VGPU|Host VGPU|Host VSGA")
DRIVER_MODELS = _numbered("WDDM|TCC|MCDM")
ADDRESSING_MODES = _numbered("None|HMM|ATS")
RECOVERY_ACTIONS = _numbered(
    "None|Reset|Reboot|Drain P2P|Drain and Reset|Recover IMEX Domain|Bus Reset|System Reboot"
)
FABRIC_STATES = _numbered("Not Started|In Progress|Completed", 1)
FABRIC_HEALTH = _numbered("Healthy|Unhealthy|Limited Capacity", 1)
# Bits of nvmlClocksEventReason*, once nvmlClocksThrottleReason*.
# The last two since nvidia-ml-py 13.615.
CLOCK_EVENT_REASONS = _numbered(
    "gpu_idle|applications_clocks_setting|sw_power_cap|hw_slowdown|sync_boost|sw_thermal_slowdown"
    "|hw_thermal_slowdown|hw_power_brake_slowdown|display_clocks_setting|board_limit|reliability"
)
THERMAL_VIOLATION = 75  # NVML_FI_DEV_PERF_POLICY_THERMAL, in ns
_REGISTRATION = (
    "incorrect_system_guid|incorrect_chassis_serial_number|no_partition|insufficient_nvlinks"
    "|incompatible_gpu_firmware|invalid_location|gpu_state_invalid"
)
# Parts of the fabric's health mask: shift, width, the value of a healthy part, and the fault that each
# other value stands for (NVML_GPU_FABRIC_HEALTH_MASK_*); 0 is not supported.
FABRIC_HEALTH_MASK = (
    (0, 0x3, 2, {1: "degraded_bandwidth"}),
    (2, 0x3, 2, {1: "route_recovery_in_progress"}),
    (4, 0x3, 2, {1: "route_unhealthy"}),
    (6, 0x3, 2, {1: "access_timeout_recovery"}),
    (8, 0xF, 1, _numbered(_REGISTRATION, 2)),
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
P2P = _numbered(
    "ok|chipset not supported|GPU not supported|topology not supported|disabled by registry key"
    "|not supported|unknown"
)


def clock_event_reasons(mask):
    """The names of the bits that are set; a bit without a name is named by its value."""
    bits = [number for number in range(mask.bit_length()) if mask >> number & 1]
    return [CLOCK_EVENT_REASONS.get(number, "reason_0x%x" % (1 << number)) for number in bits]

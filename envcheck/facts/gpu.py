"""Facts about the driver and its GPUs, as NVML, nvidia-smi and libcuda each tell them."""

from __future__ import annotations

from typing import Literal

from .base import NOT_COLLECTED, Address, Facts, Maybe, StuckProcess


class MigInstance(Facts, frozen=True, kw_only=True):
    gpu_instance: Maybe[int] = NOT_COLLECTED
    compute_instance: Maybe[int] = NOT_COLLECTED
    uuid: Maybe[str] = NOT_COLLECTED
    multiprocessors: Maybe[int] = NOT_COLLECTED
    memory_mib: Maybe[int] = NOT_COLLECTED


class NvLink(Facts, frozen=True, kw_only=True):
    link: int
    active: Maybe[bool] = NOT_COLLECTED
    crc_errors: Maybe[int] = NOT_COLLECTED
    replay_errors: Maybe[int] = NOT_COLLECTED
    recovery_errors: Maybe[int] = NOT_COLLECTED


class GpuProcess(Facts, frozen=True, kw_only=True):
    pid: int
    kind: str  # "C" compute, "G" graphics, "C+G", "M+C" under MPS
    name: Maybe[str] = NOT_COLLECTED
    memory_mib: Maybe[int] = NOT_COLLECTED


class Gpu(Facts, frozen=True, kw_only=True):
    """One GPU. ``index`` is nvidia-smi's; match GPUs by ``pci_address`` and ``uuid``, never by it."""

    index: Maybe[int] = NOT_COLLECTED
    pci_address: Maybe[Address] = NOT_COLLECTED  # in PciDevice.address's form
    # The call of NVML's that hung or crashed, and how; what comes after it was not asked.
    stopped: Maybe[str] = NOT_COLLECTED
    uuid: Maybe[str] = NOT_COLLECTED
    serial: Maybe[str] = NOT_COLLECTED
    name: Maybe[str] = NOT_COLLECTED
    brand: Maybe[str] = NOT_COLLECTED
    architecture: Maybe[str] = NOT_COLLECTED  # "Hopper", "Ada Lovelace"
    compute_capability: Maybe[str] = NOT_COLLECTED  # "9.0"
    minor_number: Maybe[int] = NOT_COLLECTED
    vbios: Maybe[str] = NOT_COLLECTED
    inforom: Maybe[str] = NOT_COLLECTED  # the version of its whole image
    board_part_number: Maybe[str] = NOT_COLLECTED
    gsp_enabled: Maybe[bool] = NOT_COLLECTED
    inforom_valid: Maybe[bool] = NOT_COLLECTED  # its checksums, when it was last read
    driver_model: Maybe[str] = NOT_COLLECTED  # Windows: "WDDM", "TCC", "MCDM"
    virtualization: Maybe[str] = (
        NOT_COLLECTED  # "None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA"
    )
    vgpu_licence: Maybe[str] = NOT_COLLECTED  # "Licensed ...", "Unlicensed ..."
    addressing_mode: Maybe[str] = NOT_COLLECTED
    persistence: Maybe[bool] = NOT_COLLECTED
    compute_mode: Maybe[str] = NOT_COLLECTED  # "Default", "Exclusive_Process", "Prohibited"
    performance_state: Maybe[str] = NOT_COLLECTED  # "P0" ... "P12"
    # memory, MiB
    memory_total_mib: Maybe[int] = NOT_COLLECTED
    memory_used_mib: Maybe[int] = NOT_COLLECTED
    memory_free_mib: Maybe[int] = NOT_COLLECTED
    bar1_total_mib: Maybe[int] = NOT_COLLECTED
    bar1_used_mib: Maybe[int] = NOT_COLLECTED
    # MIG
    mig_enabled: Maybe[bool] = NOT_COLLECTED
    mig_pending: Maybe[bool] = NOT_COLLECTED
    mig_instances: Maybe[list[MigInstance]] = NOT_COLLECTED
    # ECC, retired pages, row remapping (counts)
    ecc_enabled: Maybe[bool] = NOT_COLLECTED
    ecc_pending: Maybe[bool] = NOT_COLLECTED
    ecc_corrected_volatile: Maybe[int] = NOT_COLLECTED
    ecc_uncorrected_volatile: Maybe[int] = NOT_COLLECTED  # since the driver was loaded
    ecc_corrected_aggregate: Maybe[int] = NOT_COLLECTED
    ecc_uncorrected_aggregate: Maybe[int] = NOT_COLLECTED  # over the board's life
    # Uncorrectable errors of on-chip memory, which are in the sums above too
    sram_parity_volatile: Maybe[int] = NOT_COLLECTED
    sram_parity_aggregate: Maybe[int] = NOT_COLLECTED
    sram_secded_volatile: Maybe[int] = NOT_COLLECTED
    sram_secded_aggregate: Maybe[int] = NOT_COLLECTED
    sram_threshold_exceeded: Maybe[bool] = NOT_COLLECTED
    retired_single_bit: Maybe[int] = NOT_COLLECTED
    retired_double_bit: Maybe[int] = NOT_COLLECTED
    retired_pending: Maybe[bool] = NOT_COLLECTED
    remap_correctable: Maybe[int] = NOT_COLLECTED
    remap_uncorrectable: Maybe[int] = NOT_COLLECTED
    remap_pending: Maybe[bool] = NOT_COLLECTED
    remap_failed: Maybe[bool] = NOT_COLLECTED
    # Memory banks by the spare rows that they have left
    remap_banks_low: Maybe[int] = NOT_COLLECTED
    remap_banks_none: Maybe[int] = NOT_COLLECTED
    channel_repair_pending: Maybe[bool] = NOT_COLLECTED
    tpc_repair_pending: Maybe[bool] = NOT_COLLECTED
    unrepairable_memory: Maybe[bool] = NOT_COLLECTED
    reset_required: Maybe[bool] = NOT_COLLECTED
    drain_and_reset_recommended: Maybe[bool] = NOT_COLLECTED
    recovery_action: Maybe[str] = (
        NOT_COLLECTED  # "None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"
    )
    # heat and power, degrees Celsius and watts
    temperature_c: Maybe[int] = NOT_COLLECTED
    temperature_slowdown_c: Maybe[int] = NOT_COLLECTED
    temperature_shutdown_c: Maybe[int] = NOT_COLLECTED
    temperature_margin_c: Maybe[int] = NOT_COLLECTED  # T.Limit: degrees left before slowdown
    memory_temperature_c: Maybe[int] = NOT_COLLECTED
    memory_temperature_max_c: Maybe[int] = NOT_COLLECTED  # above it the driver slows the memory
    power_draw_w: Maybe[float] = NOT_COLLECTED
    power_limit_w: Maybe[float] = NOT_COLLECTED
    power_default_limit_w: Maybe[float] = NOT_COLLECTED
    power_min_limit_w: Maybe[float] = NOT_COLLECTED
    power_max_limit_w: Maybe[float] = NOT_COLLECTED
    # clocks, MHz
    clock_sm_mhz: Maybe[int] = NOT_COLLECTED
    clock_memory_mhz: Maybe[int] = NOT_COLLECTED
    clock_sm_max_mhz: Maybe[int] = NOT_COLLECTED
    clock_memory_max_mhz: Maybe[int] = NOT_COLLECTED
    # What programs are to run at, where that can be set ("applications clocks"), and what it is by default
    clock_set_mhz: Maybe[int] = NOT_COLLECTED
    clock_set_default_mhz: Maybe[int] = NOT_COLLECTED
    clock_memory_set_mhz: Maybe[int] = NOT_COLLECTED
    clock_memory_set_default_mhz: Maybe[int] = NOT_COLLECTED
    # Active clock-event ("throttle") reasons: "gpu_idle", "applications_clocks_setting",
    # "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown",
    # "sync_boost", "sw_thermal_slowdown", "display_clocks_setting"
    clock_event_reasons: Maybe[list[str]] = NOT_COLLECTED
    # For how long each has held the clocks down since the driver was loaded, microseconds
    slowdown_sw_thermal_us: Maybe[int] = NOT_COLLECTED
    slowdown_hw_thermal_us: Maybe[int] = NOT_COLLECTED
    slowdown_hw_power_brake_us: Maybe[int] = NOT_COLLECTED
    utilization_percent: Maybe[int] = NOT_COLLECTED
    # PCIe
    pcie_gen: Maybe[int] = NOT_COLLECTED
    pcie_gen_max: Maybe[int] = NOT_COLLECTED  # of card and slot together
    pcie_gen_max_device: Maybe[int] = NOT_COLLECTED
    pcie_gen_max_host: Maybe[int] = NOT_COLLECTED
    pcie_width: Maybe[int] = NOT_COLLECTED
    pcie_width_max: Maybe[int] = NOT_COLLECTED  # of the card
    pcie_replays: Maybe[int] = NOT_COLLECTED
    # NVLink and fabric
    nvlinks: Maybe[list[NvLink]] = NOT_COLLECTED
    fabric_state: Maybe[str] = NOT_COLLECTED  # "Not Started", "In Progress", "Completed"
    fabric_status: Maybe[str] = NOT_COLLECTED
    fabric_health: Maybe[str] = NOT_COLLECTED  # "Healthy", "Unhealthy", "Limited Capacity"
    fabric_clique: Maybe[int] = NOT_COLLECTED  # of which GPUs reach each other by NVLink
    fabric_cluster: Maybe[str] = NOT_COLLECTED  # UUID; all zero within one machine
    # What is wrong with it, in the words of collector/nvml/labels.py: "route_unhealthy", "no_partition"
    fabric_faults: Maybe[list[str]] = NOT_COLLECTED
    processes: Maybe[list[GpuProcess]] = NOT_COLLECTED


class LostGpu(Facts, frozen=True, kw_only=True):
    """A GPU that the driver counts and cannot open."""

    index: int
    error: str  # NVML's own words
    code: int  # nvmlReturn_t
    pci_address: Maybe[Address] = NOT_COLLECTED


class GpuPair(Facts, frozen=True, kw_only=True):
    """How two GPUs reach each other; addresses in PciDevice.address's form, ``first`` < ``second``."""

    first: Address
    second: Address
    level: Maybe[str] = NOT_COLLECTED  # "PIX", "PXB", "PHB", "NODE", "SYS", "internal"
    p2p_read: Maybe[str] = NOT_COLLECTED  # "ok", "chipset not supported", "not supported", ...


class Nvml(Facts, frozen=True, kw_only=True):
    library_path: Maybe[str] = NOT_COLLECTED  # the libnvidia-ml that the process mapped
    init_code: Maybe[int] = NOT_COLLECTED  # nvmlReturn_t of nvmlInit; 0 is success
    init_error: Maybe[str] = NOT_COLLECTED
    driver_version: Maybe[str] = NOT_COLLECTED
    cuda_version: Maybe[str] = NOT_COLLECTED  # newest CUDA that the driver supports, "12.2"
    gpu_count: Maybe[int] = NOT_COLLECTED
    gpus: Maybe[list[Gpu]] = NOT_COLLECTED
    lost: list[LostGpu] = []
    confidential: Maybe[bool] = NOT_COLLECTED  # confidential computing is on
    confidential_ready: Maybe[bool] = NOT_COLLECTED  # its GPUs were set ready for work
    pairs: Maybe[list[GpuPair]] = NOT_COLLECTED


class NvidiaSmi(Facts, frozen=True, kw_only=True):
    path: Maybe[str] = NOT_COLLECTED
    exit_code: Maybe[int] = NOT_COLLECTED  # 0 is success; negative: died by that signal
    message: Maybe[str] = NOT_COLLECTED  # what it printed instead of a document
    stuck: list[StuckProcess] = []  # nvidia-smi itself, where not even SIGKILL ended it
    form: Maybe[Literal["xml", "text", "table", "list", "csv"]] = NOT_COLLECTED
    cut: bool = False  # it ends in the midst of a GPU
    schema: Maybe[str] = NOT_COLLECTED  # DTD: "v12"
    driver_version: Maybe[str] = NOT_COLLECTED
    cuda_version: Maybe[str] = NOT_COLLECTED
    gpu_count: Maybe[int] = NOT_COLLECTED  # as it says itself ("attached_gpus")
    gpus: Maybe[list[Gpu]] = NOT_COLLECTED


class CudaDevice(Facts, frozen=True, kw_only=True):
    ordinal: int
    name: Maybe[str] = NOT_COLLECTED
    pci_address: Maybe[Address] = NOT_COLLECTED
    uuid: Maybe[str] = NOT_COLLECTED
    compute_capability: Maybe[str] = NOT_COLLECTED


class CudaDriver(Facts, frozen=True, kw_only=True):
    """libcuda, asked in a process of its own: the same door that every framework goes through."""

    # CUDA_VISIBLE_DEVICES where envcheck was started; libcuda is asked without it. absent: not set
    visible_devices: Maybe[str] = NOT_COLLECTED
    library_path: Maybe[str] = NOT_COLLECTED  # as mapped; absent: the loader found none
    library_real_path: Maybe[str] = NOT_COLLECTED
    load_error: Maybe[str] = NOT_COLLECTED
    init_code: Maybe[int] = NOT_COLLECTED  # CUresult of cuInit; 0 is success
    init_name: Maybe[str] = NOT_COLLECTED  # "CUDA_ERROR_UNKNOWN"
    driver_api_version: Maybe[str] = NOT_COLLECTED  # cuDriverGetVersion, "12.2"
    device_count: Maybe[int] = NOT_COLLECTED
    devices: Maybe[list[CudaDevice]] = NOT_COLLECTED

"""One GPU's facts, as NVML tells them: a table of functions, and the groups that take more than one."""

import ctypes

from ..addresses import pci_address
from ..facts import unavailable
from . import labels as w
from . import lists
from .binding import NotThere, code_of, reason_fact, text

CORRUPTED_INFOROM = 14  # NVML_ERROR_CORRUPTED_INFOROM


def each_bool(values):
    return tuple(bool(value) for value in values)


def word(table):
    """A converter from NVML's number to nvidia-smi's word."""

    def convert(number):
        if number not in table:
            raise NotThere("not-supported", "number %s has no name here" % number)
        return table[number]

    return convert


def watts(milliwatts):
    return round(milliwatts / 1000.0, 2)


def microseconds(nanoseconds):
    return int(nanoseconds) // 1000


def how_many(items):
    return len(list(items))  # pynvml up to 8.0 gives a map


def bar1(info):
    return info.bar1Total >> 20, info.bar1Used >> 20


def above_zero(number):
    """Thresholds and sensors that a GPU does not have read as 0."""
    if number <= 0:
        raise NotThere("not-supported")
    return int(number)


def performance_state(number):
    if not 0 <= number <= 15:  # NVML_PSTATE_UNKNOWN is 32
        raise NotThere("not-supported")
    return "P%d" % number


def recovery_action(number):
    return w.RECOVERY_ACTIONS.get(number, "action %d" % number)


# (fields, functions without "nvmlDeviceGet" of which the first that is known counts, arguments after the
# handle, converter). The converter returns a value, or a tuple where there are several fields.
FUNCTIONS = (
    ("pci_address", "PciInfo", (), lambda pci: pci_address(text(pci.busId))),
    ("uuid", "UUID", (), text),
    ("serial", "Serial", (), text),
    ("name", "Name", (), text),
    ("brand", "Brand", (), word(w.BRANDS)),
    ("architecture", "Architecture", (), word(w.ARCHITECTURES)),
    ("compute_capability", "CudaComputeCapability", (), lambda pair: "%d.%d" % tuple(pair)),
    ("minor_number", "MinorNumber", (), int),
    ("vbios", "VbiosVersion", (), text),
    ("inforom", "InforomImageVersion", (), text),
    ("board_part_number", "BoardPartNumber", (), text),
    ("gsp_enabled", "GspFirmwareMode", (), lambda modes: bool(modes[0])),
    ("driver_model", "CurrentDriverModel", (), word(w.DRIVER_MODELS)),
    ("virtualization", "VirtualizationMode", (), word(w.VIRTUALIZATION)),
    ("addressing_mode", "AddressingMode", (), word(w.ADDRESSING_MODES)),
    ("persistence", "PersistenceMode", (), bool),
    ("compute_mode", "ComputeMode", (), word(w.COMPUTE_MODES)),
    ("performance_state", "PerformanceState PowerState", (), performance_state),
    ("bar1_total_mib bar1_used_mib", "BAR1MemoryInfo", (), bar1),
    ("mig_enabled mig_pending", "MigMode", (), each_bool),
    ("ecc_enabled ecc_pending", "EccMode", (), each_bool),
    # (NVML_MEMORY_ERROR_TYPE_*: corrected, uncorrected; counter: volatile, aggregate)
    ("ecc_corrected_volatile", "TotalEccErrors", (0, 0), int),
    ("ecc_uncorrected_volatile", "TotalEccErrors", (1, 0), int),
    ("ecc_corrected_aggregate", "TotalEccErrors", (0, 1), int),
    ("ecc_uncorrected_aggregate", "TotalEccErrors", (1, 1), int),
    ("retired_single_bit", "RetiredPages", (0,), how_many),
    ("retired_double_bit", "RetiredPages", (1,), how_many),
    ("retired_pending", "RetiredPagesPendingStatus", (), bool),
    (
        "remap_correctable remap_uncorrectable remap_pending remap_failed",
        "RemappedRows",
        (),
        lambda rows: (int(rows[0]), int(rows[1]), bool(rows[2]), bool(rows[3])),
    ),
    (
        "remap_banks_low remap_banks_none",
        "RowRemapperHistogram",
        (),
        lambda banks: (int(banks.low), int(banks.none)),
    ),
    ("channel_repair_pending tpc_repair_pending", "RepairStatus", (), each_bool),
    ("unrepairable_memory", "UnrepairableMemoryFlag_v1", (), bool),
    ("temperature_c", "Temperature TemperatureV", (0,), int),
    ("temperature_shutdown_c", "TemperatureThreshold", (0,), above_zero),
    ("temperature_slowdown_c", "TemperatureThreshold", (1,), above_zero),
    ("memory_temperature_max_c", "TemperatureThreshold", (2,), above_zero),
    ("temperature_margin_c", "MarginTemperature", (), int),
    ("power_draw_w", "PowerUsage", (), watts),
    ("power_limit_w", "EnforcedPowerLimit PowerManagementLimit", (), watts),
    ("power_default_limit_w", "PowerManagementDefaultLimit", (), watts),
    (
        "power_min_limit_w power_max_limit_w",
        "PowerManagementLimitConstraints",
        (),
        lambda limits: (watts(limits[0]), watts(limits[1])),
    ),
    # (NVML_CLOCK_*: 1 SM, 2 memory)
    ("clock_sm_mhz", "ClockInfo", (1,), int),
    ("clock_memory_mhz", "ClockInfo", (2,), int),
    ("clock_sm_max_mhz", "MaxClockInfo", (1,), int),
    ("clock_memory_max_mhz", "MaxClockInfo", (2,), int),
    # (NVML_CLOCK_*: 0 graphics, which is the one that is set)
    ("clock_set_mhz", "ApplicationsClock", (0,), above_zero),
    ("clock_set_default_mhz", "DefaultApplicationsClock", (0,), above_zero),
    ("clock_memory_set_mhz", "ApplicationsClock", (2,), above_zero),
    ("clock_memory_set_default_mhz", "DefaultApplicationsClock", (2,), above_zero),
    (
        "clock_event_reasons",
        "CurrentClocksEventReasons CurrentClocksThrottleReasons",
        (),
        w.clock_event_reasons,
    ),
    ("utilization_percent", "UtilizationRates", (), lambda rates: int(rates.gpu)),
    ("pcie_gen", "CurrPcieLinkGeneration", (), int),
    ("pcie_gen_max", "MaxPcieLinkGeneration", (), int),
    ("pcie_gen_max_device", "GpuMaxPcieLinkGeneration", (), int),
    ("pcie_width", "CurrPcieLinkWidth", (), int),
    ("pcie_width_max", "MaxPcieLinkWidth", (), int),
    ("pcie_replays", "PcieReplayCounter", (), int),
)

# (field, constant of nvmlDeviceGetFieldValues, converter)
FIELD_VALUES = (
    ("memory_temperature_c", "NVML_FI_DEV_MEMORY_TEMP", above_zero),
    ("reset_required", "NVML_FI_DEV_RESET_STATUS", bool),
    ("drain_and_reset_recommended", "NVML_FI_DEV_DRAIN_AND_RESET_STATUS", bool),
    ("recovery_action", "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", recovery_action),
)


def memory(nvml, handle):
    """Total, used and free MiB; with the driver's own reserve apart, where NVML tells it apart."""
    version = nvml.constant("nvmlMemory_v2")
    info = None
    if version is not None:
        try:
            info = nvml.call("nvmlDeviceGetMemoryInfo", handle, version)
        except Exception as error:
            if reason_fact(error)["unavailable"] != "not-supported":
                raise
    if info is None:
        info = nvml.call("nvmlDeviceGetMemoryInfo", handle)
    return info.total >> 20, info.used >> 20, info.free >> 20


def sram_errors(nvml, handle):
    status = nvml.structure("c_nvmlEccSramErrorStatus_v1_t")
    nvml.call("nvmlDeviceGetSramEccErrorStatus", handle, ctypes.byref(status))
    return (
        bool(status.bThresholdExceeded),
        int(status.volatileUncParity),
        int(status.aggregateUncParity),
        int(status.volatileUncSecDed),
        int(status.aggregateUncSecDed),
    )


def inforom_valid(nvml, handle):
    """Whether the InfoROM's checksums are right; it is read for that."""
    try:
        nvml.call("nvmlDeviceValidateInforom", handle)
    except Exception as error:
        if code_of(error) != CORRUPTED_INFOROM:
            raise
        return (False,)
    return (True,)


def slowdowns(nvml, handle):
    """For how long heat and the power brake have held the clocks down.

    Drivers before 575 count heat alone, whoever slowed the clocks down for it.
    """
    version = text(nvml.call("nvmlSystemGetDriverVersion")).split(".")
    numbers = tuple(int(part) if part.isdecimal() else 0 for part in version[:2])
    renumbered = (575,) <= numbers < (580, 82)
    fields = w.SLOWDOWN_FIELDS_OF_575 if renumbered else w.SLOWDOWN_FIELDS
    times = [_slowdown(nvml, handle, field) for field in fields]
    if isinstance(times[0], dict) and numbers < (575,):
        times[0] = _slowdown(nvml, handle, w.THERMAL_VIOLATION)
    return tuple(times)


def _slowdown(nvml, handle, number):
    try:
        return microseconds(nvml.field_number(handle, number))
    except Exception as error:
        return reason_fact(error)


# (fields, where from, function of the binding and the handle that returns as many values)
GROUPS = (
    ("memory_total_mib memory_used_mib memory_free_mib", "nvmlDeviceGetMemoryInfo", memory),
    (
        "sram_threshold_exceeded sram_parity_volatile sram_parity_aggregate sram_secded_volatile"
        " sram_secded_aggregate",
        "nvmlDeviceGetSramEccErrorStatus",
        sram_errors,
    ),
    ("inforom_valid", "nvmlDeviceValidateInforom", inforom_valid),
    (
        "slowdown_sw_thermal_us slowdown_hw_thermal_us slowdown_hw_power_brake_us",
        "nvmlDeviceGetFieldValues",
        slowdowns,
    ),
    ("vgpu_licence", "nvmlDeviceGetGridLicensableFeatures", lists.vgpu_licence),
    ("mig_instances", "nvmlDeviceGetMigDeviceHandleByIndex", lists.mig_instances),
    ("nvlinks", "nvmlDeviceGetNvLinkState", lists.nvlinks),
    (
        "fabric_state fabric_status fabric_health fabric_faults fabric_clique fabric_cluster",
        "nvmlDeviceGetGpuFabricInfoV",
        lists.fabric,
    ),
    ("processes", "nvmlDeviceGetComputeRunningProcesses", lists.processes),
)


def _functions(names):
    return tuple("nvmlDeviceGet" + name for name in names.split())


SOURCES = {"gpus." + field: _functions(row[1])[0] for row in FUNCTIONS for field in row[0].split()}
SOURCES.update(("gpus." + row[0], "nvmlDeviceGetFieldValues %s" % row[1]) for row in FIELD_VALUES)
SOURCES.update(("gpus." + field, row[1]) for row in GROUPS for field in row[0].split())
_FIELDS = [row[0].split() for table in (FUNCTIONS, FIELD_VALUES, GROUPS) for row in table]


def cut_short(gpu, failure):
    """The facts of a GPU of which one call hung or crashed, with why the others are missing."""
    missing = [names for names in _FIELDS if names[0] not in gpu]
    if missing:
        call = SOURCES["gpus." + missing[0][0]]
        gpu["stopped"] = "%s %s" % (call, failure["detail"])
        why = unavailable(failure["unavailable"], gpu["stopped"])
        after = unavailable("not-collected", "not asked after %s" % call)
        for names in missing:
            gpu.update((name, why if names is missing[0] else after) for name in names)
    return gpu


def read(nvml, handle, index, tell=None):
    """Everything that NVML says of one GPU: a dict of facts/gpu.py's Gpu.

    tell: gets the facts of each call as it comes back; the next one may hang.
    """
    gpu = {"index": index}

    def put(names, function, *arguments):
        """One value for one name, a tuple for several, the reason of a failure for each of them."""
        names = names.split()
        try:
            value = function(*arguments)
            gpu.update(zip(names, value) if len(names) > 1 else [(names[0], value)])
        except Exception as error:
            gpu.update((name, reason_fact(error)) for name in names)
        if tell is not None:
            tell({name: gpu[name] for name in names})

    for names, functions, arguments, convert in FUNCTIONS:
        put(names, lambda *a: convert(nvml.first(_functions(functions), handle, *a)), *arguments)  # noqa: B023
    for name, constant, convert in FIELD_VALUES:
        put(name, lambda: convert(nvml.field(handle, constant)))  # noqa: B023
    for names, _source, function in GROUPS:
        one = " " not in names
        put(names, lambda: function(nvml, handle)[0] if one else function(nvml, handle))  # noqa: B023
    return gpu

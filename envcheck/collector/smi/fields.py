"""Where each fact of a GPU stands in nvidia-smi's documents: a table.

A row is (field of facts/gpu.py's Gpu, how its text is read, paths in XML, paths in text). Of the
paths, the first that has a value counts; a tuple of paths is a sum, for which all must be there unless
those that are make more than nothing.

The names are those of the DTDs v10 to v13 (drivers 418 to 595): they changed ("throttle" became
"event"), groups moved (power_readings, gpu_power_readings), and ECC counters went from
single_bit/double_bit over sram/dram to parity and SEC-DED.
"""

from ..facts import unavailable
from . import values as v


def _ecc(period, title, kind):
    """The ECC counters of one kind ("correctable") in all three shapes that they have had."""
    old, old_title = {
        "correctable": ("single_bit", "Single Bit"),
        "uncorrectable": ("double_bit", "Double Bit"),
    }[kind]
    xml, text = "ecc_errors/%s/" % period, "ECC Errors/%s/" % title
    name = kind.capitalize()
    return (
        (
            (xml + "sram_%s_parity" % kind, xml + "sram_%s_secded" % kind, xml + "dram_%s" % kind),
            (xml + "sram_%s" % kind, xml + "dram_%s" % kind),
            xml + old + "/total",
        ),
        (
            (
                text + "SRAM %s Parity" % name,
                text + "SRAM %s SEC-DED" % name,
                text + "DRAM %s" % name,
            ),
            (text + "SRAM %s" % name, text + "DRAM %s" % name),
            text + old_title + "/Total",
        ),
    )


def _sram(period, title, kind, kind_title):
    """Uncorrectable errors of on-chip memory that is protected in one way, since Ampere."""
    return (
        ("ecc_errors/%s/sram_uncorrectable_%s" % (period, kind),),
        ("ECC Errors/%s/SRAM Uncorrectable %s" % (title, kind_title),),
    )


def _banks(word):
    """How many memory banks have so many spare rows left: "3072 bank(s)"."""
    return (
        ("remapped_rows/row_remapper_histogram/row_remapper_histogram_%s" % word,),
        ("Remapped Rows/Bank Remap Availability Histogram/%s" % word.capitalize(),),
    )


def _reason_counter(word, *titles):
    """For how long a clock-event reason has been active."""
    return (
        ("clocks_event_reasons_counters/clocks_event_reasons_counters_%s" % word,),
        tuple("Clocks Event Reasons Counters/%s" % title for title in titles),
    )


def _limit(word):
    """A power limit in XML; since driver 610 in a group of its own."""
    group = "gpu_power_readings/"
    return (
        group + word,
        group + "gpu_ceiling_power_limit/" + word,
        "gpu_ceiling_power_limit/" + word,
    )


def _limit_title(title):
    group = "GPU Power Readings/"
    ceiling = "GPU Ceiling Power Limit/"
    return group + title, group + ceiling + title, ceiling + title


_LINK = "pci/pci_gpu_link_info/pcie_gen/"
_LINK_TEXT = "PCI/GPU Link Info/PCIe Generation/"

FIELDS = (
    ("pci_address", v.address, ("pci/pci_bus_id",), ("PCI/Bus Id",)),
    ("uuid", v.words, ("uuid",), ("GPU UUID",)),
    ("serial", v.words, ("serial",), ("Serial Number",)),
    ("name", v.words, ("product_name",), ("Product Name",)),
    ("brand", v.words, ("product_brand",), ("Product Brand",)),
    ("architecture", v.words, ("product_architecture",), ("Product Architecture",)),
    ("minor_number", v.count, ("minor_number",), ("Minor Number",)),
    ("vbios", v.words, ("vbios_version",), ("VBIOS Version",)),
    (
        "inforom",
        v.words,
        ("inforom_version/img_version",),
        ("Inforom Version/Image Version", "InfoROM Version/Image Version"),
    ),
    (
        "board_part_number",
        v.words,
        ("board_part_number", "gpu_part_number"),
        ("Board Part Number", "GPU Part Number"),
    ),
    ("gsp_firmware", v.words, ("gsp_firmware_version",), ("GSP Firmware Version",)),
    ("driver_model", v.words, ("driver_model/current_dm",), ("Driver Model/Current",)),
    (
        "virtualization",
        v.words,
        ("gpu_virtualization_mode/virtualization_mode",),
        (
            "GPU Virtualization Mode/Virtualization Mode",
            "GPU Virtualization Mode/Virtualization mode",
        ),
    ),
    (
        "vgpu_licence",
        v.words,
        ("vgpu_software_licensed_product/license_status", "grid_licensed_product/license_status"),
        ("vGPU Software Licensed Product/License Status", "GRID Licensed Product/License Status"),
    ),
    ("addressing_mode", v.words, ("addressing_mode",), ("Addressing Mode",)),
    ("persistence", v.flag, ("persistence_mode",), ("Persistence Mode",)),
    ("compute_mode", v.words, ("compute_mode",), ("Compute Mode",)),
    ("performance_state", v.words, ("performance_state",), ("Performance State",)),
    ("memory_total_mib", v.mebibytes, ("fb_memory_usage/total",), ("FB Memory Usage/Total",)),
    ("memory_used_mib", v.mebibytes, ("fb_memory_usage/used",), ("FB Memory Usage/Used",)),
    ("memory_free_mib", v.mebibytes, ("fb_memory_usage/free",), ("FB Memory Usage/Free",)),
    ("bar1_total_mib", v.mebibytes, ("bar1_memory_usage/total",), ("BAR1 Memory Usage/Total",)),
    ("bar1_used_mib", v.mebibytes, ("bar1_memory_usage/used",), ("BAR1 Memory Usage/Used",)),
    ("mig_enabled", v.flag, ("mig_mode/current_mig",), ("MIG Mode/Current",)),
    ("mig_pending", v.flag, ("mig_mode/pending_mig",), ("MIG Mode/Pending",)),
    ("ecc_enabled", v.flag, ("ecc_mode/current_ecc",), ("ECC Mode/Current", "Ecc Mode/Current")),
    ("ecc_pending", v.flag, ("ecc_mode/pending_ecc",), ("ECC Mode/Pending", "Ecc Mode/Pending")),
    ("ecc_corrected_volatile", v.count) + _ecc("volatile", "Volatile", "correctable"),
    ("ecc_uncorrected_volatile", v.count) + _ecc("volatile", "Volatile", "uncorrectable"),
    ("ecc_corrected_aggregate", v.count) + _ecc("aggregate", "Aggregate", "correctable"),
    ("ecc_uncorrected_aggregate", v.count) + _ecc("aggregate", "Aggregate", "uncorrectable"),
    ("sram_parity_volatile", v.count) + _sram("volatile", "Volatile", "parity", "Parity"),
    ("sram_parity_aggregate", v.count) + _sram("aggregate", "Aggregate", "parity", "Parity"),
    ("sram_secded_volatile", v.count) + _sram("volatile", "Volatile", "secded", "SEC-DED"),
    ("sram_secded_aggregate", v.count) + _sram("aggregate", "Aggregate", "secded", "SEC-DED"),
    (
        "sram_threshold_exceeded",
        v.flag,
        ("ecc_errors/aggregate/sram_threshold_exceeded",),
        ("ECC Errors/Aggregate/SRAM Threshold Exceeded",),
    ),
    (
        "channel_repair_pending",
        v.flag,
        ("ecc_errors/channel_repair_pending",),
        ("ECC Errors/Channel Repair Pending",),
    ),
    (
        "tpc_repair_pending",
        v.flag,
        ("ecc_errors/tpc_repair_pending",),
        ("ECC Errors/TPC Repair Pending",),
    ),
    (
        "unrepairable_memory",
        v.flag,
        ("ecc_errors/unrepairable_memory",),
        ("ECC Errors/Unrepairable Memory",),
    ),
    (
        "retired_single_bit",
        v.count,
        ("retired_pages/multiple_single_bit_retirement/retired_count",),
        ("Retired Pages/Single Bit ECC",),
    ),
    (
        "retired_double_bit",
        v.count,
        ("retired_pages/double_bit_retirement/retired_count",),
        ("Retired Pages/Double Bit ECC",),
    ),
    (
        "retired_pending",
        v.flag,
        ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
        ("Retired Pages/Pending Page Blacklist", "Retired Pages/Pending"),
    ),
    (
        "remap_correctable",
        v.count,
        ("remapped_rows/remapped_row_corr",),
        ("Remapped Rows/Correctable Error",),
    ),
    (
        "remap_uncorrectable",
        v.count,
        ("remapped_rows/remapped_row_unc",),
        ("Remapped Rows/Uncorrectable Error",),
    ),
    ("remap_pending", v.flag, ("remapped_rows/remapped_row_pending",), ("Remapped Rows/Pending",)),
    (
        "remap_failed",
        v.flag,
        ("remapped_rows/remapped_row_failure",),
        ("Remapped Rows/Remapping Failure Occurred",),
    ),
    ("remap_banks_max", v.count) + _banks("max"),
    ("remap_banks_high", v.count) + _banks("high"),
    ("remap_banks_partial", v.count) + _banks("partial"),
    ("remap_banks_low", v.count) + _banks("low"),
    ("remap_banks_none", v.count) + _banks("none"),
    (
        "reset_required",
        v.flag,
        ("gpu_reset_status/reset_required",),
        ("GPU Reset Status/Reset Required",),
    ),
    (
        "drain_and_reset_recommended",
        v.flag,
        ("gpu_reset_status/drain_and_reset_recommended",),
        ("GPU Reset Status/Drain and Reset Recommended",),
    ),
    ("recovery_action", v.words, ("gpu_recovery_action",), ("GPU Recovery Action",)),
    (
        "temperature_c",
        v.integer,
        ("temperature/gpu_temp",),
        ("Temperature/GPU Current Temp", "Temperature/Gpu"),
    ),
    (
        "temperature_slowdown_c",
        v.integer,
        ("temperature/gpu_temp_slow_threshold",),
        ("Temperature/GPU Slowdown Temp",),
    ),
    (
        "temperature_shutdown_c",
        v.integer,
        ("temperature/gpu_temp_max_threshold",),
        ("Temperature/GPU Shutdown Temp",),
    ),
    (
        "temperature_margin_c",
        v.integer,
        ("temperature/gpu_temp_tlimit",),
        ("Temperature/GPU T.Limit Temp",),
    ),
    (
        "memory_temperature_c",
        v.integer,
        ("temperature/memory_temp",),
        ("Temperature/Memory Current Temp",),
    ),
    (
        "memory_temperature_max_c",
        v.integer,
        ("temperature/gpu_temp_max_mem_threshold",),
        ("Temperature/Memory Max Operating Temp",),
    ),
    ("fan_percent", v.count, ("fan_speed",), ("Fan Speed",)),
    (
        "power_draw_w",
        v.watts,
        (
            "gpu_power_readings/power_draw",
            "gpu_power_readings/average_power_draw",
            "gpu_power_readings/instant_power_draw",
            "power_readings/power_draw",
        ),
        (
            "GPU Power Readings/Power Draw",
            "GPU Power Readings/Average Power Draw",
            "GPU Power Readings/Instantaneous Power Draw",
            "Power Readings/Power Draw",
        ),
    ),
    (
        "power_limit_w",
        v.watts,
        (
            *_limit("current_power_limit"),
            "power_readings/enforced_power_limit",
            "power_readings/power_limit",
        ),
        (
            *_limit_title("Current Power Limit"),
            "Power Readings/Enforced Power Limit",
            "Power Readings/Power Limit",
        ),
    ),
    (
        "power_default_limit_w",
        v.watts,
        (*_limit("default_power_limit"), "power_readings/default_power_limit"),
        (*_limit_title("Default Power Limit"), "Power Readings/Default Power Limit"),
    ),
    (
        "power_min_limit_w",
        v.watts,
        (*_limit("min_power_limit"), "power_readings/min_power_limit"),
        (*_limit_title("Min Power Limit"), "Power Readings/Min Power Limit"),
    ),
    (
        "power_max_limit_w",
        v.watts,
        (*_limit("max_power_limit"), "power_readings/max_power_limit"),
        (*_limit_title("Max Power Limit"), "Power Readings/Max Power Limit"),
    ),
    (
        "module_power_limit_w",
        v.watts,
        ("module_power_readings/current_power_limit",),
        ("Module Power Readings/Current Power Limit",),
    ),
    (
        "module_power_default_limit_w",
        v.watts,
        ("module_power_readings/default_power_limit",),
        ("Module Power Readings/Default Power Limit",),
    ),
    ("clock_sm_mhz", v.count, ("clocks/sm_clock",), ("Clocks/SM",)),
    ("clock_memory_mhz", v.count, ("clocks/mem_clock",), ("Clocks/Memory",)),
    ("clock_sm_max_mhz", v.count, ("max_clocks/sm_clock",), ("Max Clocks/SM",)),
    ("clock_memory_max_mhz", v.count, ("max_clocks/mem_clock",), ("Max Clocks/Memory",)),
    (
        "clock_set_mhz",
        v.count,
        ("applications_clocks/graphics_clock",),
        ("Applications Clocks/Graphics",),
    ),
    (
        "clock_set_default_mhz",
        v.count,
        ("default_applications_clocks/graphics_clock",),
        ("Default Applications Clocks/Graphics",),
    ),
    (
        "clock_memory_set_mhz",
        v.count,
        ("applications_clocks/mem_clock",),
        ("Applications Clocks/Memory",),
    ),
    (
        "clock_memory_set_default_mhz",
        v.count,
        ("default_applications_clocks/mem_clock",),
        ("Default Applications Clocks/Memory",),
    ),
    ("slowdown_sw_power_cap_us", v.count)
    + _reason_counter("sw_power_cap", "SW Power Capping", "SW Power Cap"),
    ("slowdown_sync_boost_us", v.count) + _reason_counter("sync_boost", "Sync Boost"),
    ("slowdown_sw_thermal_us", v.count)
    + _reason_counter("sw_therm_slowdown", "SW Thermal Slowdown"),
    ("slowdown_hw_thermal_us", v.count)
    + _reason_counter("hw_therm_slowdown", "HW Thermal Slowdown"),
    ("slowdown_hw_power_brake_us", v.count)
    + _reason_counter("hw_power_brake", "HW Power Braking", "HW Power Brake Slowdown"),
    (
        "utilization_percent",
        v.count,
        ("utilization/gpu_util",),
        ("Utilization/GPU", "Utilization/Gpu"),
    ),
    ("pcie_gen", v.count, (_LINK + "current_link_gen",), (_LINK_TEXT + "Current",)),
    ("pcie_gen_max", v.count, (_LINK + "max_link_gen",), (_LINK_TEXT + "Max",)),
    (
        "pcie_gen_max_device",
        v.count,
        (_LINK + "max_device_link_gen",),
        (_LINK_TEXT + "Device Max",),
    ),
    ("pcie_gen_max_host", v.count, (_LINK + "max_host_link_gen",), (_LINK_TEXT + "Host Max",)),
    (
        "pcie_width",
        v.count,
        ("pci/pci_gpu_link_info/link_widths/current_link_width",),
        ("PCI/GPU Link Info/Link Width/Current",),
    ),
    (
        "pcie_width_max",
        v.count,
        ("pci/pci_gpu_link_info/link_widths/max_link_width",),
        ("PCI/GPU Link Info/Link Width/Max",),
    ),
    (
        "pcie_replays",
        v.count,
        ("pci/replay_counter",),
        ("PCI/Replays Since Reset", "PCI/Replays since reset"),
    ),
    ("fabric_state", v.words, ("fabric/state",), ("Fabric/State",)),
    ("fabric_clique", v.count, ("fabric/cliqueId",), ("Fabric/CliqueId", "Fabric/Clique ID")),
    (
        "fabric_cluster",
        v.words,
        ("fabric/clusterUuid",),
        ("Fabric/ClusterUUID", "Fabric/Cluster UUID"),
    ),
)

# Of one MIG instance; the same form of row.
MIG_FIELDS = (
    ("gpu_instance", v.count, ("gpu_instance_id",), ("GPU Instance ID",)),
    ("compute_instance", v.count, ("compute_instance_id",), ("Compute Instance ID",)),
    (
        "multiprocessors",
        v.count,
        ("device_attributes/shared/multiprocessor_count",),
        ("Device Attributes/Shared/Multiprocessor count",),
    ),
    (
        "memory_mib",
        v.mebibytes,
        ("fb_memory_usage/total",),
        ("Shared FB Memory Usage/Total", "FB Memory Usage/Total"),
    ),
)

# Clock-event reasons in text; in XML the element's name ends in the reason's.
CLOCK_REASONS = {
    "Idle": "gpu_idle",
    "Applications Clocks Setting": "applications_clocks_setting",
    "User Defined Clocks": "applications_clocks_setting",
    "SW Power Cap": "sw_power_cap",
    "HW Slowdown": "hw_slowdown",
    "HW Thermal Slowdown": "hw_thermal_slowdown",
    "HW Power Brake Slowdown": "hw_power_brake_slowdown",
    "Sync Boost": "sync_boost",
    "SW Thermal Slowdown": "sw_thermal_slowdown",
    "Display Clock Setting": "display_clocks_setting",
}


def read(node, row, form):
    """The fact of one row, or None where the document has no place for it."""
    _name, converter, xml, text = row
    best, least = None, 0
    for alternative in xml if form == "xml" else text:
        paths = (alternative,) if isinstance(alternative, str) else alternative
        found = [node.text(path) for path in paths]
        facts = [v.convert(word, converter) for word in found if word is not None]
        known = [fact for fact in facts if not isinstance(fact, dict)]
        if len(facts) == len(paths):
            if known:
                return sum(known) if len(paths) > 1 else known[0]
            best = best or facts[0]
        elif known:
            least = max(least, sum(known))
            best = best or unavailable("absent", "the document has only a part of its terms")
    return least or best

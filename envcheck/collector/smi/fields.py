"""Where each fact of a GPU stands in nvidia-smi's documents: a table.

Rows are grouped by what their paths in XML and in text begin with: (field of facts/gpu.py's Gpu, how its
text is read, the rest of its path in XML, in text). Of several paths, in several rows or separated by "|",
the first that has a value counts; "+" joins paths whose values are added up: all must be there unless those
that are make more than nothing.

The names are those of the DTDs v10 to v13 (drivers 418 to 595): they changed ("throttle" became
"event"), groups moved (power_readings, gpu_power_readings), and ECC counters went from
single_bit/double_bit over sram/dram to parity and SEC-DED.
"""

from ..facts import unavailable
from . import values as v

# The shapes that ECC counters have had, by kind ("correctable") and period.
_ECC = (
    "{p}/sram_{k}_parity+{p}/sram_{k}_secded+{p}/dram_{k}|{p}/sram_{k}+{p}/dram_{k}|{p}/{o}/total"
)
_ECC_TEXT = (
    "{p}/SRAM {k} Parity+{p}/SRAM {k} SEC-DED+{p}/DRAM {k}|{p}/SRAM {k}+{p}/DRAM {k}|{p}/{o}/Total"
)
# Power limits; since driver 610 in a group of their own.
_LIMIT = "gpu_power_readings/{n}|gpu_power_readings/{c}/{n}|{c}/{n}|power_readings/{o}"
_LIMIT_TEXT = "GPU Power Readings/{n}|GPU Power Readings/{c}/{n}|{c}/{n}|Power Readings/{o}"


def _ecc(name, period, kind, old):
    return (
        name,
        v.count,
        _ECC.format(p="ecc_errors/" + period, k=kind, o=old.lower().replace(" ", "_")),
        _ECC_TEXT.format(p="ECC Errors/" + period.capitalize(), k=kind.capitalize(), o=old),
    )


def _limit(name, title, *old):
    words = [word.lower().replace(" ", "_") for word in (title,) + old]
    xml = _LIMIT.format(n=words[0], c="gpu_ceiling_power_limit", o=(words[1:] or words)[0])
    text = _LIMIT_TEXT.format(n=title, c="GPU Ceiling Power Limit", o=(old or (title,))[0])
    return name, v.watts, xml, text


_HOTTEST = "gpu_temp_max_mem_threshold"
_DRAIN = "drain_and_reset_recommended"
_GROUPS = {
    ("", ""): (
        ("uuid", str, "uuid", "GPU UUID"),
        ("serial", str, "serial", "Serial Number"),
        ("name", str, "product_name", "Product Name"),
        ("brand", str, "product_brand", "Product Brand"),
        ("architecture", str, "product_architecture", "Product Architecture"),
        ("minor_number", v.count, "minor_number", "Minor Number"),
        ("vbios", str, "vbios_version", "VBIOS Version"),
        ("board_part_number", str, "board_part_number", "Board Part Number"),
        ("board_part_number", str, "gpu_part_number", "GPU Part Number"),
        ("driver_model", str, "driver_model/current_dm", "Driver Model/Current"),
        ("addressing_mode", str, "addressing_mode", "Addressing Mode"),
        ("persistence", v.flag, "persistence_mode", "Persistence Mode"),
        ("compute_mode", str, "compute_mode", "Compute Mode"),
        ("performance_state", str, "performance_state", "Performance State"),
        ("recovery_action", str, "gpu_recovery_action", "GPU Recovery Action"),
        ("utilization_percent", v.count, "utilization/gpu_util", "Utilization/GPU|Utilization/Gpu"),
        _limit("power_limit_w", "Current Power Limit", "Enforced Power Limit"),
        ("power_limit_w", v.watts, "power_readings/power_limit", "Power Readings/Power Limit"),
        _limit("power_default_limit_w", "Default Power Limit"),
        _limit("power_min_limit_w", "Min Power Limit"),
        _limit("power_max_limit_w", "Max Power Limit"),
        ("power_draw_w", v.watts, "power_readings/power_draw", "Power Readings/Power Draw"),
        _ecc("ecc_corrected_volatile", "volatile", "correctable", "Single Bit"),
        _ecc("ecc_uncorrected_volatile", "volatile", "uncorrectable", "Double Bit"),
        _ecc("ecc_corrected_aggregate", "aggregate", "correctable", "Single Bit"),
        _ecc("ecc_uncorrected_aggregate", "aggregate", "uncorrectable", "Double Bit"),
    ),
    ("inforom_version/", "Inforom Version/|InfoROM Version/"): (
        ("inforom", str, "img_version", "Image Version"),
    ),
    ("gpu_virtualization_mode/virtualization_mode", "GPU Virtualization Mode/Virtualization "): (
        ("virtualization", str, "", "Mode|mode"),
    ),
    (
        "vgpu_software_licensed_product/|grid_licensed_product/",
        "vGPU Software Licensed Product/|GRID Licensed Product/",
    ): (("vgpu_licence", str, "license_status", "License Status"),),
    ("fb_memory_usage/", "FB Memory Usage/"): (
        ("memory_total_mib", v.mebibytes, "total", "Total"),
        ("memory_used_mib", v.mebibytes, "used", "Used"),
        ("memory_free_mib", v.mebibytes, "free", "Free"),
    ),
    ("bar1_memory_usage/", "BAR1 Memory Usage/"): (
        ("bar1_total_mib", v.mebibytes, "total", "Total"),
        ("bar1_used_mib", v.mebibytes, "used", "Used"),
    ),
    ("mig_mode/", "MIG Mode/"): (
        ("mig_enabled", v.flag, "current_mig", "Current"),
        ("mig_pending", v.flag, "pending_mig", "Pending"),
    ),
    ("ecc_mode/", "ECC Mode/|Ecc Mode/"): (
        ("ecc_enabled", v.flag, "current_ecc", "Current"),
        ("ecc_pending", v.flag, "pending_ecc", "Pending"),
    ),
    ("ecc_errors/", "ECC Errors/"): (
        ("channel_repair_pending", v.flag, "channel_repair_pending", "Channel Repair Pending"),
        ("tpc_repair_pending", v.flag, "tpc_repair_pending", "TPC Repair Pending"),
        ("unrepairable_memory", v.flag, "unrepairable_memory", "Unrepairable Memory"),
    ),
    ("ecc_errors/volatile/sram_", "ECC Errors/Volatile/SRAM "): (
        ("sram_parity_volatile", v.count, "uncorrectable_parity", "Uncorrectable Parity"),
        ("sram_secded_volatile", v.count, "uncorrectable_secded", "Uncorrectable SEC-DED"),
    ),
    ("ecc_errors/aggregate/sram_", "ECC Errors/Aggregate/SRAM "): (
        ("sram_parity_aggregate", v.count, "uncorrectable_parity", "Uncorrectable Parity"),
        ("sram_secded_aggregate", v.count, "uncorrectable_secded", "Uncorrectable SEC-DED"),
        ("sram_threshold_exceeded", v.flag, "threshold_exceeded", "Threshold Exceeded"),
    ),
    ("retired_pages/", "Retired Pages/"): (
        (
            "retired_single_bit",
            v.count,
            "multiple_single_bit_retirement/retired_count",
            "Single Bit ECC",
        ),
        ("retired_double_bit", v.count, "double_bit_retirement/retired_count", "Double Bit ECC"),
        ("retired_pending", v.flag, "pending_retirement", "Pending Page Blacklist"),
        ("retired_pending", v.flag, "pending_blacklist", "Pending"),
    ),
    ("remapped_rows/remapped_row_", "Remapped Rows/"): (
        ("remap_correctable", v.count, "corr", "Correctable Error"),
        ("remap_uncorrectable", v.count, "unc", "Uncorrectable Error"),
        ("remap_pending", v.flag, "pending", "Pending"),
        ("remap_failed", v.flag, "failure", "Remapping Failure Occurred"),
    ),
    # How many memory banks have so many spare rows left: "3072 bank(s)".
    (
        "remapped_rows/row_remapper_histogram/row_remapper_histogram_",
        "Remapped Rows/Bank Remap Availability Histogram/",
    ): tuple(("remap_banks_" + word, v.count, word, word.capitalize()) for word in ("low", "none")),
    ("gpu_reset_status/", "GPU Reset Status/"): (
        ("reset_required", v.flag, "reset_required", "Reset Required"),
        (_DRAIN, v.flag, _DRAIN, "Drain and Reset Recommended"),
    ),
    ("temperature/", "Temperature/"): (
        ("temperature_c", v.integer, "gpu_temp", "GPU Current Temp|Gpu"),
        ("temperature_slowdown_c", v.integer, "gpu_temp_slow_threshold", "GPU Slowdown Temp"),
        ("temperature_shutdown_c", v.integer, "gpu_temp_max_threshold", "GPU Shutdown Temp"),
        ("temperature_margin_c", v.integer, "gpu_temp_tlimit", "GPU T.Limit Temp"),
        ("memory_temperature_c", v.integer, "memory_temp", "Memory Current Temp"),
        ("memory_temperature_max_c", v.integer, _HOTTEST, "Memory Max Operating Temp"),
    ),
    ("gpu_power_readings/", "GPU Power Readings/"): (
        ("power_draw_w", v.watts, "power_draw|average_power_draw", "Power Draw|Average Power Draw"),
        ("power_draw_w", v.watts, "instant_power_draw", "Instantaneous Power Draw"),
    ),
    ("clocks/", "Clocks/"): (
        ("clock_sm_mhz", v.count, "sm_clock", "SM"),
        ("clock_memory_mhz", v.count, "mem_clock", "Memory"),
    ),
    ("max_clocks/", "Max Clocks/"): (
        ("clock_sm_max_mhz", v.count, "sm_clock", "SM"),
        ("clock_memory_max_mhz", v.count, "mem_clock", "Memory"),
    ),
    ("applications_clocks/", "Applications Clocks/"): (
        ("clock_set_mhz", v.count, "graphics_clock", "Graphics"),
        ("clock_memory_set_mhz", v.count, "mem_clock", "Memory"),
    ),
    ("default_applications_clocks/", "Default Applications Clocks/"): (
        ("clock_set_default_mhz", v.count, "graphics_clock", "Graphics"),
        ("clock_memory_set_default_mhz", v.count, "mem_clock", "Memory"),
    ),
    # For how long each clock-event reason has been active.
    (
        "clocks_event_reasons_counters/clocks_event_reasons_counters_",
        "Clocks Event Reasons Counters/",
    ): (
        ("slowdown_sw_thermal_us", v.count, "sw_therm_slowdown", "SW Thermal Slowdown"),
        ("slowdown_hw_thermal_us", v.count, "hw_therm_slowdown", "HW Thermal Slowdown"),
        ("slowdown_hw_power_brake_us", v.count, "hw_power_brake", "HW Power Braking"),
        ("slowdown_hw_power_brake_us", v.count, "hw_power_brake", "HW Power Brake Slowdown"),
    ),
    ("pci/", "PCI/"): (
        ("pci_address", v.pci_address, "pci_bus_id", "Bus Id"),
        ("pcie_replays", v.count, "replay_counter", "Replays Since Reset|Replays since reset"),
    ),
    ("pci/pci_gpu_link_info/pcie_gen/", "PCI/GPU Link Info/PCIe Generation/"): (
        ("pcie_gen", v.count, "current_link_gen", "Current"),
        ("pcie_gen_max", v.count, "max_link_gen", "Max"),
        ("pcie_gen_max_device", v.count, "max_device_link_gen", "Device Max"),
        ("pcie_gen_max_host", v.count, "max_host_link_gen", "Host Max"),
    ),
    ("pci/pci_gpu_link_info/link_widths/", "PCI/GPU Link Info/Link Width/"): (
        ("pcie_width", v.count, "current_link_width", "Current"),
        ("pcie_width_max", v.count, "max_link_width", "Max"),
    ),
    ("fabric/", "Fabric/"): (
        ("fabric_state", str, "state", "State"),
        ("fabric_clique", v.count, "cliqueId", "CliqueId|Clique ID"),
        ("fabric_cluster", str, "clusterUuid", "ClusterUUID|Cluster UUID"),
    ),
}
_MIG_GROUPS = {
    ("", ""): (
        ("gpu_instance", v.count, "gpu_instance_id", "GPU Instance ID"),
        ("compute_instance", v.count, "compute_instance_id", "Compute Instance ID"),
        ("memory_mib", v.mebibytes, "fb_memory_usage/total", "Shared FB Memory Usage/Total"),
        ("memory_mib", v.mebibytes, "fb_memory_usage/total", "FB Memory Usage/Total"),
    ),
    ("device_attributes/shared/", "Device Attributes/Shared/"): (
        ("multiprocessors", v.count, "multiprocessor_count", "Multiprocessor count"),
    ),
}
_TOP_GROUPS = {
    ("", ""): (
        ("driver_version", str, "kmd_version|driver_version", "KMD Version|Driver Version"),
        ("cuda_version", str, "cuda_umd_version|cuda_version", "CUDA UMD Version|CUDA Version"),
        ("gpu_count", v.count, "attached_gpus", "Attached GPUs"),
    ),
}


def _rows(groups):
    """[(field, converter, {form: [[path]]})] of grouped rows: alternatives, each a list of terms."""
    return [
        (name, converter, {"xml": _paths(before, xml), "text": _paths(title, text)})
        for (before, title), rows in groups.items()
        for name, converter, xml, text in rows
    ]


def _paths(before, names):
    return [
        [start + term for term in one.split("+")]
        for start in before.split("|")
        for one in names.split("|")
    ]


TOP, GPU, MIG = _rows(_TOP_GROUPS), _rows(_GROUPS), _rows(_MIG_GROUPS)


def read(node, rows, form):
    """{field: fact} of the rows that the document has a place for."""
    found = {}
    for name, converter, paths in rows:
        fact = _fact(node, converter, paths[form])
        if fact is not None and isinstance(found.get(name, {}), dict):
            found[name] = found.get(name, fact) if isinstance(fact, dict) else fact
    return found


def _fact(node, converter, alternatives):
    best, least = None, 0
    for paths in alternatives:
        found = [node.text(path) for path in paths]
        facts = [v.convert(text, converter) for text in found if text is not None]
        known = [fact for fact in facts if not isinstance(fact, dict)]
        if len(facts) == len(paths):
            if known:
                return sum(known) if len(paths) > 1 else known[0]
            best = best or facts[0]
        elif known:
            least = max(least, sum(known))
            best = best or unavailable("absent", "the document has only a part of its terms")
    return least or best

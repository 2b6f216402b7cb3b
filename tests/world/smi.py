"""What nvidia-smi -q -x prints of a made-up machine (DTD v12, drivers 530 to 575)."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from .gpus import Gpu
from .nvml_names import REASONS

BRANDS = {2: "Tesla", 5: "GeForce", 14: "NVIDIA", 15: "GeForce RTX"}
ARCHITECTURES = {2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing",
                 7: "Ampere", 8: "Ada Lovelace", 9: "Hopper", 10: "Blackwell"}  # fmt: skip
COMPUTE = {0: "Default", 1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
VIRTUALIZATION = {0: "None", 1: "Pass-Through", 2: "VGPU", 3: "Host VGPU", 4: "Host VSGA"}
RECOVERY = {0: "None", 1: "Reset", 2: "Reboot", 3: "Drain P2P", 4: "Drain and Reset"}
COUNTERS = {
    "sw_thermal_slowdown": "sw_therm_slowdown",
    "hw_thermal_slowdown": "hw_therm_slowdown",
    "hw_power_brake_slowdown": "hw_power_brake",
}
SOURCES = {"l2": "l2", "sm": "sm", "microcontroller": "mcu", "pcie": "pcie", "other": "other"}
NOT_AVAILABLE = "N/A"
# Of the fabric's health: where an element's two bits begin
HEALTH = {"route_recovery_in_progress": 2, "route_unhealthy": 4, "access_timeout_recovery": 6}
CONFIGURATIONS = (
    NOT_AVAILABLE, "None", "Incorrect System GUID", "Incorrect Chassis Serial Number",
    "No Partition", "Insufficient Nvlinks", "Incompatible GPU Firmware", "Invalid Location",
    "Invalid GPU State",
)  # fmt: skip


def document(
    driver: str, cuda: tuple[int, int], gpus: list[Gpu], attached: int | None = None
) -> str:
    tree = {
        "timestamp": "Sat Nov 21 09:30:00 2026",
        "driver_version": driver,
        "cuda_version": f"{cuda[0]}.{cuda[1]}",
        "attached_gpus": str(len(gpus) if attached is None else attached),
    }
    body = _render(tree, 1)
    for one in gpus:
        body += f'\t<gpu id="0000{one.address.upper()}">\n{_render(_gpu(one), 2)}\t</gpu>\n'
    head = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
    return f"{head}<nvidia_smi_log>\n{body}</nvidia_smi_log>\n"


def _render(tree: dict[str, Any], depth: int) -> str:
    text, tab = "", "\t" * depth
    for name, value in tree.items():
        if isinstance(value, dict):
            text += f"{tab}<{name}>\n{_render(value, depth + 1)}{tab}</{name}>\n"
        elif isinstance(value, list):
            text += "".join(_render({name: item}, depth) for item in value)
        else:
            text += f"{tab}<{name}>{escape(str(value))}</{name}>\n"
    return text


def _of(value: Any, unit: str = "") -> str:
    return NOT_AVAILABLE if value is None else f"{value}{unit}"


def _on(value: Any, yes: str = "Enabled", no: str = "Disabled") -> str:
    return NOT_AVAILABLE if value is None else yes if value else no


def _watts(milliwatts: int | None) -> str:
    return NOT_AVAILABLE if milliwatts is None else f"{milliwatts / 1000:.2f} W"


def _gpu(one: Gpu) -> dict[str, Any]:
    domain, bus, rest = one.address.upper().split(":")
    ecc, mig, pcie, top = one.ecc or (None, None), one.mig or (None, None), one.pcie, one.pcie_max
    clocks = {"graphics_clock": f"{one.clock_sm} MHz", "sm_clock": f"{one.clock_sm} MHz"}
    clocks |= {"mem_clock": f"{one.clock_memory} MHz", "video_clock": "1200 MHz"}
    links = {
        "pcie_gen": {
            "max_link_gen": _of(top and top[0]),
            "current_link_gen": _of(pcie and pcie[0]),
            "device_current_link_gen": _of(pcie and pcie[0]),
            "max_device_link_gen": _of(one.pcie_max_device),
            "max_host_link_gen": _of(one.pcie_max_host),
        },
        "link_widths": {
            "max_link_width": _of(top and top[1], "x"),
            "current_link_width": _of(pcie and pcie[1], "x"),
        },
    }
    return {
        "product_name": one.name,
        "product_brand": BRANDS[one.brand],
        "product_architecture": ARCHITECTURES[one.architecture],
        "display_mode": "Enabled",
        "display_active": "Disabled",
        "persistence_mode": _on(one.persistence),
        "addressing_mode": "None",
        "mig_mode": {"current_mig": _on(mig[0]), "pending_mig": _on(mig[1])},
        "mig_devices": {"mig_device": [_instance(n, i) for n, i in enumerate(one.mig_instances)]}
        if one.mig_instances
        else "\n\t\t",
        "accounting_mode": "Disabled",
        "driver_model": {"current_dm": NOT_AVAILABLE, "pending_dm": NOT_AVAILABLE},
        "serial": _of(one.serial),
        "uuid": f"GPU-{one.uuid}",
        "minor_number": one.minor,
        "vbios_version": one.vbios,
        "multigpu_board": "No",
        "board_part_number": _of(one.board_part),
        "inforom_version": {
            "img_version": _of(one.inforom),
            "oem_object": "2.1",
            "ecc_object": "7.16" if one.ecc else NOT_AVAILABLE,
            "pwr_object": NOT_AVAILABLE,
        },
        "gsp_firmware_version": _of(one.gsp),
        "gpu_virtualization_mode": {
            "virtualization_mode": VIRTUALIZATION[one.virtualization],
            "host_vgpu_mode": NOT_AVAILABLE,
        },
        **_licence(one),
        "gpu_reset_status": {
            "reset_required": _on(one.reset_required, "Yes", "No"),
            "drain_and_reset_recommended": "No",
        },
        "gpu_recovery_action": RECOVERY[one.recovery_action],
        "pci": {
            "pci_bus": bus,
            "pci_device": rest.partition(".")[0],
            "pci_domain": domain,
            "pci_device_id": f"{one.device_id:04X}10DE",
            "pci_bus_id": f"0000{one.address.upper()}",
            "pci_sub_system_id": "16C110DE",
            "pci_gpu_link_info": links,
            "replay_counter": _of(one.replays),
            "replay_rollover_counter": 0,
        },
        "fan_speed": _of(one.fan, " %"),
        "performance_state": f"P{one.pstate}",
        "clocks_event_reasons": {
            f"clocks_event_reason_{name}": _on(name in one.reasons, "Active", "Not Active")
            for name in REASONS
        },
        "clocks_event_reasons_counters": {
            "clocks_event_reasons_counters_" + COUNTERS.get(name, name): f"{spent // 1000} us"
            for name, spent in one.counters.items()
        },
        "fb_memory_usage": {
            "total": f"{one.memory_mib} MiB",
            "reserved": f"{one.reserved_mib} MiB",
            "used": f"{one.used_mib} MiB",
            "free": f"{one.memory_mib - one.reserved_mib - one.used_mib} MiB",
        },
        "bar1_memory_usage": {
            "total": f"{one.bar1_mib} MiB",
            "used": "2 MiB",
            "free": f"{one.bar1_mib - 2} MiB",
        },
        "compute_mode": COMPUTE[one.compute_mode],
        "utilization": {
            "gpu_util": f"{one.utilization} %",
            "memory_util": f"{one.utilization // 2} %",
        },
        "ecc_mode": {"current_ecc": _on(ecc[0]), "pending_ecc": _on(ecc[1])},
        "ecc_errors": _errors(one),
        "retired_pages": _retired(one),
        "remapped_rows": _remapped(one),
        "temperature": {
            "gpu_temp": f"{one.temperature} C",
            "gpu_temp_tlimit": _of(one.margin, " C"),
            "gpu_temp_max_threshold": _of(one.shutdown_c, " C"),
            "gpu_temp_slow_threshold": _of(one.slowdown_c, " C"),
            "gpu_temp_max_gpu_threshold": _of(one.slowdown_c, " C"),
            "gpu_target_temperature": NOT_AVAILABLE,
            "memory_temp": _of(one.memory_temperature, " C"),
            "gpu_temp_max_mem_threshold": _of(one.memory_max_c, " C"),
        },
        "gpu_power_readings": {
            "power_state": f"P{one.pstate}",
            "power_draw": _watts(one.power_mw),
            "current_power_limit": _watts(one.limit_mw),
            "requested_power_limit": _watts(one.limit_mw),
            "default_power_limit": _watts(one.default_mw),
            "min_power_limit": _watts(one.power_range and one.power_range[0]),
            "max_power_limit": _watts(one.power_range and one.power_range[1]),
        },
        "clocks": clocks,
        **{
            f"{name}applications_clocks": {
                "graphics_clock": _of(one[f"{name}app_sm"], " MHz"),
                "mem_clock": _of(one[f"{name}app_memory"], " MHz"),
            }
            for name in ("", "default_")
        },
        "max_clocks": {
            "graphics_clock": f"{one.max_sm} MHz",
            "sm_clock": f"{one.max_sm} MHz",
            "mem_clock": f"{one.max_memory} MHz",
            "video_clock": "1545 MHz",
        },
        "max_customer_boost_clocks": {"graphics_clock": f"{one.max_sm} MHz"},
        "fabric": _fabric(one),
        "processes": {"process_info": [_process(pid, mib) for pid, mib in one.processes]}
        if one.processes
        else "\n\t\t",
    }


def _process(pid: int, mib: int) -> dict[str, Any]:
    return {
        "gpu_instance_id": NOT_AVAILABLE,
        "compute_instance_id": NOT_AVAILABLE,
        "pid": pid,
        "type": "C",
        "process_name": "/usr/bin/python3",
        "used_memory": f"{mib} MiB",
    }


def _instance(index: int, instance: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": index,
        "gpu_instance_id": instance["gi"],
        "compute_instance_id": 0,
        "device_attributes": {"shared": {"multiprocessor_count": instance["sms"]}},
        "fb_memory_usage": {"total": f"{instance['mib']} MiB", "used": "12 MiB"},
    }


def _licence(one: Gpu) -> dict[str, Any]:
    if one.licence is None:
        return {}
    status = "Licensed (Expiry: Permanent)" if one.licence else "Unlicensed"
    return {
        "vgpu_software_licensed_product": {
            "licensed_product_name": "NVIDIA Virtual Compute Server",
            "license_status": status,
        }
    }


def _errors(one: Gpu) -> dict[str, Any]:
    on = one.ecc is not None and one.ecc[0]
    s = one.sram

    def counters(place: int, prefix: str) -> dict[str, Any]:
        values = {
            "sram_correctable": s[prefix + "_cor"],
            "sram_uncorrectable_parity": s[prefix + "_parity"],
            "sram_uncorrectable_secded": s[prefix + "_secded"],
            "dram_correctable": one.dram_corrected[place],
            "dram_uncorrectable": one.dram_uncorrected[place],
        }
        return {name: str(value) if on else NOT_AVAILABLE for name, value in values.items()}

    aggregate = counters(1, "agg") | {
        "sram_threshold_exceeded": _on(one.sram_exceeded if on else None, "Yes", "No")
    }
    sources = {
        f"sram_{name}": str(s[key]) if on else NOT_AVAILABLE for name, key in SOURCES.items()
    }
    values: dict[str, Any] = {
        "volatile": counters(0, "vol"),
        "aggregate": aggregate,
        "aggregate_uncorrectable_sram_sources": sources,
    }
    if one.repair is not None:
        values["channel_repair_pending"] = _on(one.repair[0], "Yes", "No")
        values["tpc_repair_pending"] = _on(one.repair[1], "Yes", "No")
    if one.unrepairable is not None:
        values["unrepairable_memory"] = _on(one.unrepairable, "Yes", "No")
    return values


def _retired(one: Gpu) -> dict[str, Any]:
    retired = one.retired or (None, None, None)
    single, double = (
        {"retired_count": _of(count), "retired_pagelist": NOT_AVAILABLE} for count in retired[:2]
    )
    return {
        "multiple_single_bit_retirement": single,
        "double_bit_retirement": double,
        "pending_blacklist": _on(retired[2], "Yes", "No"),
        "pending_retirement": _on(retired[2], "Yes", "No"),
    }


def _remapped(one: Gpu) -> Any:
    if one.remap is None:
        return NOT_AVAILABLE
    names = ("max", "high", "partial", "low", "none")
    return {
        "remapped_row_corr": one.remap[0],
        "remapped_row_unc": one.remap[1],
        "remapped_row_pending": _on(one.remap[2], "Yes", "No"),
        "remapped_row_failure": _on(one.remap[3], "Yes", "No"),
        "row_remapper_histogram": {
            f"row_remapper_histogram_{name}": f"{banks} bank(s)"
            for name, banks in zip(names, one.histogram, strict=True)
        },
    }


def _fabric(one: Gpu) -> dict[str, Any]:
    if one.fabric is None:
        return {"state": NOT_AVAILABLE, "status": NOT_AVAILABLE, "cliqueId": NOT_AVAILABLE}
    state, status, mask, summary = one.fabric
    number = one.fabric_cluster.hex()
    cluster = "-".join((number[:8], number[8:12], number[12:16], number[16:20], number[20:]))
    health: dict[str, Any] = {}
    if summary:
        health["summary"] = {1: "Healthy", 2: "Unhealthy", 3: "Limited Capacity"}[summary]
    health["bandwidth"] = {0: NOT_AVAILABLE, 1: "Degraded", 2: "Full"}[mask & 3]
    for name, shift in HEALTH.items():
        health[name] = {0: NOT_AVAILABLE, 1: "True", 2: "False"}[mask >> shift & 3]
    health["incorrect_configuration"] = CONFIGURATIONS[mask >> 8 & 0xF]
    return {
        "state": state,
        "status": "Success" if status == 0 else "Unknown Error",
        "cliqueId": one.fabric_clique,
        "clusterUuid": cluster,
        "health": health,
    }

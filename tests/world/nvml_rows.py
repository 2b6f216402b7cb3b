"""What NVML answers about made-up GPUs: rows as c/nvml.c describes them."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pynvml

from .gpus import SLOWED, Gpu
from .nvml_names import CLOCKS, FABRIC_STATES, LISTS, NUMBERS, REASONS, SRAM, TEXTS, USERS

MIB = 1 << 20
NOT_AVAILABLE = (1 << 64) - 1  # NVML_VALUE_NOT_AVAILABLE


def _number(value: int | None, form: str = "I") -> bytes | None:
    return None if value is None else struct.pack("=" + form, value)


def _text(value: str | None) -> bytes | None:
    return None if value is None else value.encode() + b"\0"


def _structure(name: str, **values: Any) -> bytes:
    """One of nvidia-ml-py's; where it has a version, with that in front."""
    names = (f"c_nvml{name}_t", f"c_nvml{name}", f"nvml{name}_t")
    made = next(getattr(pynvml, one) for one in names if hasattr(pynvml, one))()
    for field, value in values.items():
        setattr(made, field, value)
    if hasattr(made, "version") and not made.version:
        made.version = 1 << 24 | ctypes.sizeof(made)
    return bytes(made)


class _Rows(list[str]):
    """What one handle is asked."""

    def __init__(self, handle: int | str) -> None:
        self.handle = handle

    def say(self, name: str, *blobs: bytes | None, key: object = "-", code: int = 0) -> None:
        """A None among the blobs: not supported."""
        code = 3 if None in blobs else code
        words = [blob.hex() or "-" for blob in blobs if blob is not None and None not in blobs]
        full = name if name.startswith("nvml") else f"nvmlDeviceGet{name}"
        self.append(" ".join([f"{self.handle} {full} {key} {code} -", *words]))

    def number(self, name: str, value: int | None, key: object = "-", form: str = "I") -> None:
        self.say(name, _number(value, form), key=key)

    def listed(self, name: str, count: int, data: bytes, key: object = "-") -> None:
        self.append(f"{self.handle} nvmlDeviceGet{name} {key} 0 - {count}:{data.hex() or '-'}")


def rows(one: Gpu) -> list[str]:
    """What NVML says of one GPU."""
    domain, bus, rest = one.address.split(":")
    found, ways = _Rows(one.handle), _Rows(0)
    handle = struct.pack("=Q", one.handle)
    ways.say("HandleByIndex_v2", handle, key=one.index)
    ways.say("HandleByPciBusId_v2", handle, key=one.address)
    ways.say("HandleByUUID", handle, key=f"GPU-{one.uuid}")
    place = _structure(
        "PciInfo",
        busIdLegacy=one.address.encode()[:15],
        domain=int(domain, 16),
        bus=int(bus, 16),
        device=int(rest.partition(".")[0], 16),
        pciDeviceId=one.device_id << 16 | 0x10DE,
        pciSubSystemId=0x16C110DE,
        busId=f"0000{one.address}".upper().encode(),
    )
    found.say("PciInfo_v3", place)
    found.say("UUID", _text(f"GPU-{one.uuid}"))
    for name, of in TEXTS.items():
        found.say(name, _text(one[of]))
    if one.inforom is not None:
        found.say("nvmlDeviceValidateInforom", code=0 if one.inforom_valid else 14)
    for name, of in NUMBERS.items():
        found.number(name, one[of])
    for name, of in LISTS.items():
        values = [None] if one[of] is None else [_number(int(value)) for value in one[of]]
        if name != "RemappedRows" or one.remap is not None:
            found.say(name, *values)
    for ends, pcie in (("Curr", one.pcie), ("Max", one.pcie_max)):
        for which, part in enumerate(("Generation", "Width")):
            found.number(f"{ends}PcieLink{part}", pcie and pcie[which])
    found.number("MaxMigDeviceCount", one.max_mig if one.mig is not None else 0)
    found.say("AddressingMode", _structure("DeviceAddressingMode", value=one.addressing))
    _memory(one, found)
    _errors(one, found)
    _heat_and_clocks(one, found)
    _fields(one, found)
    _links(one, found)
    for name, of in USERS.items():
        data = b"".join(
            _structure(
                "ProcessInfo_v2",
                pid=pid,
                usedGpuMemory=NOT_AVAILABLE if mib is None else mib * MIB,
                gpuInstanceId=~0 & 0xFFFFFFFF,
                computeInstanceId=~0 & 0xFFFFFFFF,
            )
            for pid, mib in one[of]
        )
        found.listed(f"{name}RunningProcesses_v3", len(one[of]), data)
    if one.licence is not None:
        _licence(one, found)
    return [*ways, *found, *_instances(one)]


def _memory(one: Gpu, found: _Rows) -> None:
    free = one.memory_mib - one.reserved_mib - one.used_mib
    sizes = {"total": one.memory_mib * MIB, "free": free * MIB, "used": one.used_mib * MIB}
    newer = {"version": pynvml.nvmlMemory_v2, "reserved": one.reserved_mib * MIB}
    found.say("MemoryInfo_v2", _structure("Memory_v2", **newer, **sizes))
    found.say("MemoryInfo", _structure("Memory", **sizes))
    used, total = 2 * MIB, one.bar1_mib * MIB
    bar1 = _structure("BAR1Memory", bar1Total=total, bar1Used=used, bar1Free=total - used)
    found.say("BAR1MemoryInfo", bar1)


def _errors(one: Gpu, found: _Rows) -> None:
    sram = one.sram
    supported = one.ecc is not None and one.ecc[0]
    kinds = ((one.dram_corrected, ["cor"]), (one.dram_uncorrected, ["parity", "secded"]))
    for kind, (dram, of_sram) in enumerate(kinds):
        for counter, when in enumerate(("vol", "agg")):
            total = dram[counter] + sum(sram[f"{when}_{name}"] for name in of_sram)
            found.number("TotalEccErrors", total if supported else None, f"{kind},{counter}", "Q")
            in_memory = dram[counter] if supported else None  # location 2 is the device's memory
            found.number("MemoryErrorCounter", in_memory, f"{kind},{counter},2", "Q")
    if supported and one.architecture >= 7:
        values = {field: sram[of] for field, of in SRAM.items()}
        exceeded = int(one.sram_exceeded)
        status = _structure("EccSramErrorStatus_v1", bThresholdExceeded=exceeded, **values)
        found.say("SramEccErrorStatus", status)
    found.number("RetiredPagesPendingStatus", one.retired and int(one.retired[2]))
    for cause, count in enumerate((one.retired or ())[:2]):
        pages = struct.pack(f"={count}Q", *range(0x1000, 0x1000 + count))
        found.listed("RetiredPages", count, pages, cause)
    if one.remap is not None:
        found.say("RowRemapperHistogram", struct.pack("=5I", *one.histogram))
    if one.repair is not None:
        channel, tpc = one.repair
        pending = {"bChannelRepairPending": channel, "bTpcRepairPending": tpc}
        found.say("RepairStatus", _structure("RepairStatus", **pending))
    if one.unrepairable is not None:
        flag = _structure("UnrepairableMemory_v1", unrepairableMemory=int(one.unrepairable))
        found.say("UnrepairableMemoryFlag_v1", flag)


def _heat_and_clocks(one: Gpu, found: _Rows) -> None:
    found.number("Temperature", one.temperature, 0)
    thresholds = (one.shutdown_c, one.slowdown_c, one.memory_max_c, one.slowdown_c)
    for kind, value in enumerate(thresholds):
        found.number("TemperatureThreshold", value, kind)
    if one.margin is not None:
        version = pynvml.nvmlMarginTemperature_v1
        margin = _structure("MarginTemperature_v1", version=version, marginTemperature=one.margin)
        found.say("MarginTemperature", margin)
    for name, of in CLOCKS.items():
        for kind, unit in enumerate(("sm", "sm", "memory")):
            found.number(name, one[f"{of}_{unit}"], kind)
    mask = sum(1 << REASONS.index(name) for name in one.reasons)
    for name in ("CurrentClocksEventReasons", "CurrentClocksThrottleReasons"):
        found.number(name, mask, form="Q")
    found.number("SupportedClocksEventReasons", 0x1FF, form="Q")
    thermal = one.counters["sw_thermal_slowdown"] + one.counters["hw_thermal_slowdown"]
    brake = one.counters["hw_power_brake_slowdown"]
    for policy, lost in enumerate((one.counters["sw_power_cap"], thermal, 0, 0, 0, brake)):
        found.say("ViolationStatus", struct.pack("=QQ", 1_700_000_000_000_000, lost), key=policy)
    found.say("UtilizationRates", struct.pack("=II", one.utilization, one.utilization // 2))


def _fields(one: Gpu, found: _Rows) -> None:
    """nvmlDeviceGetFieldValues."""

    def field(name: str, value: int | None, form: str = "I") -> None:
        number = getattr(pynvml, f"NVML_FI_DEV_{name}", None)
        if number is not None:
            kind, data = {"I": 1, "Q": 3}[form], _number(value, form)
            found.say(
                "FieldValues", _number(kind), data and data.ljust(8, b"\0"), key=f"{number},0"
            )

    field("MEMORY_TEMP", one.memory_temperature)
    field("RESET_STATUS", int(one.reset_required))
    field("GET_GPU_RECOVERY_ACTION", one.recovery_action)
    field("NVLINK_LINK_COUNT", len(one.links))
    if one.links:
        field("NVLINK_SPEED_MBPS_COMMON", one.link_mbps)
    for name in SLOWED:
        constant = name.replace("thermal", "therm").upper()
        field(f"CLOCKS_EVENT_REASON_{constant}", one.counters[name], "Q")
    policies = {
        "POWER": "sw_power_cap",
        "THERMAL": "sw_thermal_slowdown",
        "SYNC_BOOST": "sync_boost",
    }
    for old, name in policies.items():
        field(f"PERF_POLICY_{old}", one.counters[name], "Q")


def _links(one: Gpu, found: _Rows) -> None:
    for link, state in enumerate(one.links):
        found.number("NvLinkState", int(state["active"]), link)
        found.number("NvLinkVersion", state["version"], link)
        found.number("NvLinkRemoteDeviceType", one.remote, link)
        for counter, kind in enumerate(("replay", "recovery", "crc", "crc_lane", "ecc")):
            errors = state["errors"].get(kind, 0)
            found.number("NvLinkErrorCounter", errors, f"{link},{counter}", "Q")
    for link in range(len(one.links), 18):
        found.say("NvLinkState", None, key=link)
    if one.fabric is None:
        return
    state, status, mask, summary = one.fabric
    common = {
        "clusterUuid": (ctypes.c_ubyte * 16)(*one.fabric_cluster),
        "status": status,
        "cliqueId": one.fabric_clique,
        "state": FABRIC_STATES.index(state),
    }
    found.say("GpuFabricInfoV", _fabric("_v3", healthMask=mask, healthSummary=summary, **common))
    found.say("GpuFabricInfoV", _fabric("_v2", healthMask=mask, **common))
    found.say("GpuFabricInfo", _fabric("", **common))


def _fabric(version: str, **values: Any) -> bytes:
    return _structure(f"GpuFabricInfo{version}", **values)


def _instances(one: Gpu) -> list[str]:
    """MIG instances: handles of their own."""
    found = _Rows(one.handle)
    for place, instance in enumerate(one.mig_instances):
        inside, ways = _Rows(1000 + one.index * 32 + place), _Rows(0)
        handle = struct.pack("=Q", inside.handle)
        found.say("MigDeviceHandleByIndex", handle, key=place)
        ways.say("HandleByUUID", handle, key=f"MIG-{instance['uuid']}")
        inside.say("DeviceHandleFromMigDeviceHandle", struct.pack("=Q", one.handle))
        inside.number("GpuInstanceId", instance["gi"])
        inside.number("ComputeInstanceId", 0)
        inside.say("UUID", _text(f"MIG-{instance['uuid']}"))
        size = {"multiprocessorCount": instance["sms"], "memorySizeMB": instance["mib"]}
        inside.say("Attributes_v2", _structure("DeviceAttributes", **size))
        found += [*ways, *inside]
    if one.mig is not None and one.mig[0]:
        found.say("MigDeviceHandleByIndex", key="*", code=6)
    return found


def _licence(one: Gpu, found: _Rows) -> None:
    feature = pynvml.c_nvmlGridLicensableFeature_v4_t()
    feature.featureCode = 3
    feature.featureState = feature.featureEnabled = int(one.licence)
    for name, value in one.licence_expiry.items():
        setattr(feature.licenseExpiry, name, value)
    made = pynvml.c_nvmlGridLicensableFeatures_v4_t()
    made.isGridLicenseSupported = 1
    made.licensableFeaturesCount = 1
    made.gridLicensableFeatures[0] = feature
    found.say("GridLicensableFeatures_v4", bytes(made))


def system_rows(
    driver: str, cuda: tuple[int, int], count: int, nvml: str | None = None
) -> list[str]:
    """What NVML says of the machine."""
    found = _Rows(0)
    found.say("nvmlInit")
    found.say("nvmlSystemGetNVMLVersion", _text(f"{cuda[0]}.{nvml or driver}"))
    found.say("nvmlSystemGetDriverVersion", _text(driver))
    found.number("nvmlSystemGetCudaDriverVersion_v2", cuda[0] * 1000 + cuda[1] * 10)
    found.number("Count_v2", count)
    found.say("nvmlSystemGetProcessName", _text("/usr/bin/python3 train.py"), key="*")
    return found


def pair_rows(gpus: list[Gpu], level: int, p2p: int) -> list[str]:
    found = []
    for one in gpus:
        to = _Rows(one.handle)
        for other in gpus:
            if one is not other:
                to.number("TopologyCommonAncestor", level, other.handle)
        found += to
    every = _Rows("*")
    every.number("P2PStatus", p2p, "*")
    return found + every

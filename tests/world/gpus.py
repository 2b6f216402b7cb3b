"""What a made-up GPU is like, and what NVML therefore answers."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pynvml

MIB = 1 << 20
NOT_AVAILABLE = (1 << 64) - 1  # NVML_VALUE_NOT_AVAILABLE
REASONS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clocks_setting": 0x100,
}
# NVML_PERF_POLICY_*
POLICIES = {
    "power": 0,
    "thermal": 1,
    "sync_boost": 2,
    "board": 3,
    "low_utilization": 4,
    "reliability": 5,
}
# NVML_FI_DEV_CLOCKS_EVENT_REASON_*, in nanoseconds
COUNTERS = {
    "sw_power_cap": "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP",
    "sync_boost": "NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST",
    "sw_thermal_slowdown": "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",
    "hw_thermal_slowdown": "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    "hw_power_brake_slowdown": "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
}
FABRIC_STATES = {None: 0, "Not Started": 1, "In Progress": 2, "Completed": 3}
HEALTHY_FABRIC = 2 | 2 << 2 | 2 << 4 | 2 << 6 | 1 << 8


class Gpu(dict[str, Any]):
    """Its properties by name. None is what this GPU does not support."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def change(self, **values: Any) -> None:
        unknown = set(values) - set(self)
        assert not unknown, f"a GPU has no {unknown}"
        self.update(values)

    @property
    def handle(self) -> int:
        return int(self.index) + 1


def gpu(index: int, address: str, **values: Any) -> Gpu:
    """A data-centre GPU without work; ``values`` make it a product."""
    made = Gpu(
        index=index,
        minor=index,
        address=address,
        uuid=f"{0x6D1F0000 + index:08x}-1c2d-4e3f-8a9b-0c1d2e3f{index:04x}",
        serial=f"16543230{index:05d}",
        name="NVIDIA H100 80GB HBM3",
        brand=14,
        board_part="692-2G520-0200-500",
        architecture=9,
        capability=(9, 0),
        vbios="96.00.A5.00.01",
        inforom="G520.0200.00.05",
        inforom_valid=True,
        device_id=0x2330,
        virtualization=0,
        persistence=True,
        compute_mode=0,
        pstate=0,
        bar1_mib=131072,
        memory_mib=81559,
        reserved_mib=551,
        used_mib=0,
        bus_width=5120,
        cores=16896,
        mig=(False, False),
        mig_instances=[],
        max_mig=7,
        ecc=(True, True),
        sram=dict.fromkeys(
            [
                "agg_parity",
                "agg_secded",
                "agg_cor",
                "vol_parity",
                "vol_secded",
                "vol_cor",
                "l2",
                "sm",
                "pcie",
                "mcu",
                "other",
            ],
            0,
        ),
        sram_exceeded=False,
        dram_corrected=(0, 0),  # volatile, aggregate
        dram_uncorrected=(0, 0),
        retired=None,  # (single bit, double bit, pending)
        remap=(0, 0, False, False),
        histogram=(640, 0, 0, 0, 0),
        repair=(False, False),
        unrepairable=False,
        reset_required=False,
        recovery_action=0,
        temperature=32,
        slowdown_c=87,
        shutdown_c=92,
        margin=55,
        memory_temperature=41,
        memory_max_c=95,
        fan=None,
        power_mw=70500,
        limit_mw=700000,
        default_mw=700000,
        power_range=(200000, 700000),
        clock_sm=345,
        clock_memory=2619,
        max_sm=1980,
        max_memory=2619,
        app_sm=1980,
        app_memory=2619,
        default_app_sm=1980,
        default_app_memory=2619,
        reasons=["gpu_idle"],
        counters=dict.fromkeys(COUNTERS, 0),  # nanoseconds
        utilization=0,
        pcie=(5, 16),  # generation, width
        pcie_max=(5, 16),
        pcie_max_device=5,
        pcie_max_host=5,
        replays=0,
        links=[{"active": True, "errors": {}, "version": 4} for _ in range(18)],
        link_mbps=26562,
        remote=2,  # a switch
        fabric=("Completed", 0, HEALTHY_FABRIC, 1),  # state, status, mask, summary
        fabric_cluster=bytes(16),
        fabric_clique=0,
        gsp="570.86.15",
        gsp_mode=(1, 1),
        addressing=0,
        processes=[],  # (pid, MiB or None)
        graphics=[],
        mps=[],
        licence=None,  # True, False
        licence_expiry={"status": 4},  # permanent
        numa=None,
        cuda=True,  # whether libcuda lists it
    )
    made.change(**values)
    return made


def busy(one: Gpu, **values: Any) -> None:
    """At full load, as training does it."""
    one.change(
        utilization=98,
        clock_sm=one.max_sm - 45,
        pstate=0,
        power_mw=int(one.limit_mw * 0.95),
        temperature=58,
        margin=29 if one.margin is not None else None,
        used_mib=one.memory_mib * 3 // 4,
        reasons=[],
        processes=[(4711, one.memory_mib * 3 // 4 - 500)],
    )
    one.change(**values)


def _word(value: int | None, form: str = "I") -> bytes | None:
    return None if value is None else struct.pack("=" + form, value)


def _text(value: str | None) -> bytes | None:
    return None if value is None else value.encode() + b"\0"


def _structure(name: str, **values: Any) -> bytes:
    made = getattr(pynvml, name)()
    for field, value in values.items():
        setattr(made, field, value)
    return bytes(made)


def _row(handle: int | str, name: str, key: str, *blobs: bytes | None, code: int = 0) -> str:
    if any(blob is None for blob in blobs):
        return f"{handle} {name} {key} 3 -"
    words = " ".join(blob.hex() or "-" for blob in blobs if blob is not None)
    return f"{handle} {name} {key} {code} - {words}"


def rows(one: Gpu) -> list[str]:
    """What NVML says of one GPU."""
    h = one.handle
    found: list[str] = []

    def say(name: str, *blobs: bytes | None, key: str = "-") -> None:
        found.append(_row(h, name, key, *blobs))

    def number(name: str, value: int | None, key: str = "-", form: str = "I") -> None:
        say(name, _word(value, form), key=key)

    def pair(name: str, values: tuple[int, int] | None, key: str = "-") -> None:
        say(name, *([None] if values is None else [_word(int(value)) for value in values]), key=key)

    domain, bus, rest = one.address.split(":")
    device = rest.partition(".")[0]
    for by, key in (
        ("Index_v2", str(one.index)),
        ("PciBusId_v2", one.address),
        ("UUID", f"GPU-{one.uuid}"),
    ):
        found.append(_row(0, f"nvmlDeviceGetHandleBy{by}", key, struct.pack("=Q", h)))
    say(
        "nvmlDeviceGetPciInfo_v3",
        _structure(
            "nvmlPciInfo_t",
            busIdLegacy=one.address.encode()[:15],
            domain=int(domain, 16),
            bus=int(bus, 16),
            device=int(device, 16),
            pciDeviceId=one.device_id << 16 | 0x10DE,
            pciSubSystemId=0x16C110DE,
            busId=f"0000{one.address}".upper().encode(),
        ),
    )
    for name, value in (
        ("UUID", f"GPU-{one.uuid}"),
        ("Serial", one.serial),
        ("Name", one.name),
        ("BoardPartNumber", one.board_part),
        ("VbiosVersion", one.vbios),
        ("InforomImageVersion", one.inforom),
        ("GspFirmwareVersion", one.gsp),
    ):
        say(f"nvmlDeviceGet{name}", _text(value))
    if one.inforom is not None:
        found.append(_row(h, "nvmlDeviceValidateInforom", "-", code=0 if one.inforom_valid else 14))
    for name, value in (
        ("Brand", one.brand),
        ("Architecture", one.architecture),
        ("MinorNumber", one.minor),
        ("PersistenceMode", int(one.persistence)),
        ("ComputeMode", one.compute_mode),
        ("PerformanceState", one.pstate),
        ("PowerState", one.pstate),
        ("MemoryBusWidth", one.bus_width),
        ("NumGpuCores", one.cores),
        ("MaxMigDeviceCount", one.max_mig if one.mig is not None else 0),
        ("FanSpeed", one.fan),
        ("PowerUsage", one.power_mw),
        ("EnforcedPowerLimit", one.limit_mw),
        ("PowerManagementLimit", one.limit_mw),
        ("PowerManagementDefaultLimit", one.default_mw),
        ("CurrPcieLinkGeneration", one.pcie and one.pcie[0]),
        ("CurrPcieLinkWidth", one.pcie and one.pcie[1]),
        ("MaxPcieLinkGeneration", one.pcie_max and one.pcie_max[0]),
        ("MaxPcieLinkWidth", one.pcie_max and one.pcie_max[1]),
        ("GpuMaxPcieLinkGeneration", one.pcie_max_device),
        ("PcieReplayCounter", one.replays),
        ("VirtualizationMode", one.virtualization),
        ("NumaNodeId", one.numa),
        ("RetiredPagesPendingStatus", None if one.retired is None else int(one.retired[2])),
    ):
        number(f"nvmlDeviceGet{name}", value)
    pair("nvmlDeviceGetCudaComputeCapability", one.capability)
    pair("nvmlDeviceGetGspFirmwareMode", one.gsp_mode)
    pair("nvmlDeviceGetEccMode", one.ecc)
    pair("nvmlDeviceGetMigMode", one.mig)
    pair("nvmlDeviceGetPowerManagementLimitConstraints", one.power_range)
    say(
        "nvmlDeviceGetAddressingMode",
        _versioned("c_nvmlDeviceAddressingMode_t", value=one.addressing),
    )
    _memory(one, say)
    _errors(one, say, number, pair)
    _heat_and_clocks(one, say, number)
    _fields(one, found)
    _links(one, say, number)
    for name, users in (
        ("Compute", one.processes),
        ("Graphics", one.graphics),
        ("MPSCompute", one.mps),
    ):
        data = b"".join(
            _structure(
                "c_nvmlProcessInfo_v2_t",
                pid=pid,
                usedGpuMemory=NOT_AVAILABLE if mib is None else mib * MIB,
                gpuInstanceId=~0 & 0xFFFFFFFF,
                computeInstanceId=~0 & 0xFFFFFFFF,
            )
            for pid, mib in users
        )
        found.append(
            f"{h} nvmlDeviceGet{name}RunningProcesses_v3 - 0 - {len(users)}:{data.hex() or '-'}"
        )
    _instances(one, found)
    if one.licence is not None:
        _licence(one, say)
    return found


def _versioned(name: str, **values: Any) -> bytes:
    """A structure as pynvml brings it, with its version in front."""
    made = getattr(pynvml, name)()
    for field, value in values.items():
        setattr(made, field, value)
    if not made.version:
        made.version = 1 << 24 | ctypes.sizeof(made)
    return bytes(made)


def _memory(one: Gpu, say: Any) -> None:
    free = one.memory_mib - one.reserved_mib - one.used_mib
    sizes = {"total": one.memory_mib * MIB, "free": free * MIB, "used": one.used_mib * MIB}
    say(
        "nvmlDeviceGetMemoryInfo_v2",
        _structure(
            "c_nvmlMemory_v2_t",
            version=pynvml.nvmlMemory_v2,
            reserved=one.reserved_mib * MIB,
            **sizes,
        ),
    )
    say("nvmlDeviceGetMemoryInfo", _structure("c_nvmlMemory_t", **sizes))
    say(
        "nvmlDeviceGetBAR1MemoryInfo",
        _structure(
            "c_nvmlBAR1Memory_t",
            bar1Total=one.bar1_mib * MIB,
            bar1Used=2 * MIB,
            bar1Free=(one.bar1_mib - 2) * MIB,
        ),
    )


def _errors(one: Gpu, say: Any, number: Any, pair: Any) -> None:
    s = one.sram
    supported = one.ecc is not None and one.ecc[0]
    corrected = [one.dram_corrected[0] + s["vol_cor"], one.dram_corrected[1] + s["agg_cor"]]
    uncorrected = [
        one.dram_uncorrected[0] + s["vol_parity"] + s["vol_secded"],
        one.dram_uncorrected[1] + s["agg_parity"] + s["agg_secded"],
    ]
    for kind, totals in enumerate((corrected, uncorrected)):
        for counter, total in enumerate(totals):
            number(
                "nvmlDeviceGetTotalEccErrors",
                total if supported else None,
                f"{kind},{counter}",
                "Q",
            )
    for kind, dram in enumerate((one.dram_corrected, one.dram_uncorrected)):
        for counter, total in enumerate(dram):  # location 2 is the device's memory, 7 SRAM
            number(
                "nvmlDeviceGetMemoryErrorCounter",
                total if supported else None,
                f"{kind},{counter},2",
                "Q",
            )
    if supported and one.architecture >= 7:
        say(
            "nvmlDeviceGetSramEccErrorStatus",
            _versioned(
                "c_nvmlEccSramErrorStatus_v1_t",
                aggregateUncParity=s["agg_parity"],
                aggregateUncSecDed=s["agg_secded"],
                aggregateCor=s["agg_cor"],
                volatileUncParity=s["vol_parity"],
                volatileUncSecDed=s["vol_secded"],
                volatileCor=s["vol_cor"],
                aggregateUncBucketL2=s["l2"],
                aggregateUncBucketSm=s["sm"],
                aggregateUncBucketPcie=s["pcie"],
                aggregateUncBucketMcu=s["mcu"],
                aggregateUncBucketOther=s["other"],
                bThresholdExceeded=int(one.sram_exceeded),
            ),
        )
    if one.retired is not None:
        for cause in (0, 1):
            pages = struct.pack(
                f"={one.retired[cause]}Q", *range(0x1000, 0x1000 + one.retired[cause])
            )
            say("nvmlDeviceGetRetiredPages", _List(one.retired[cause], pages), key=str(cause))
    if one.remap is not None:
        say("nvmlDeviceGetRemappedRows", *[_word(int(value)) for value in one.remap])
        say("nvmlDeviceGetRowRemapperHistogram", struct.pack("=5I", *one.histogram))
    if one.repair is not None:
        say(
            "nvmlDeviceGetRepairStatus",
            _versioned(
                "c_nvmlRepairStatus_t",
                bChannelRepairPending=one.repair[0],
                bTpcRepairPending=one.repair[1],
            ),
        )
    if one.unrepairable is not None:
        say(
            "nvmlDeviceGetUnrepairableMemoryFlag_v1",
            _versioned("c_nvmlUnrepairableMemory_v1_t", unrepairableMemory=int(one.unrepairable)),
        )


class _List(bytes):
    """The items of a list, with how many they are."""

    count: int

    def __new__(cls, count: int, data: bytes) -> _List:
        made = super().__new__(cls, data)
        made.count = count
        return made

    def hex(self, *_arguments: Any) -> str:
        return f"{self.count}:{super().hex() or '-'}"


def _heat_and_clocks(one: Gpu, say: Any, number: Any) -> None:
    number("nvmlDeviceGetTemperature", one.temperature, "0")
    for kind, value in (
        (0, one.shutdown_c),
        (1, one.slowdown_c),
        (2, one.memory_max_c),
        (3, one.slowdown_c),
    ):
        number("nvmlDeviceGetTemperatureThreshold", value, str(kind))
    if one.margin is not None:
        say(
            "nvmlDeviceGetMarginTemperature",
            _versioned(
                "c_nvmlMarginTemperature_v1_t",
                version=pynvml.nvmlMarginTemperature_v1,
                marginTemperature=one.margin,
            ),
        )
    for function, sm, memory in (
        ("ClockInfo", one.clock_sm, one.clock_memory),
        ("MaxClockInfo", one.max_sm, one.max_memory),
        ("MaxCustomerBoostClock", one.max_sm, one.max_memory),
        ("ApplicationsClock", one.app_sm, one.app_memory),
        ("DefaultApplicationsClock", one.default_app_sm, one.default_app_memory),
    ):
        for kind, value in ((0, sm), (1, sm), (2, memory)):
            number(f"nvmlDeviceGet{function}", value, str(kind))
    mask = sum(REASONS[name] for name in one.reasons)
    for name in ("CurrentClocksEventReasons", "CurrentClocksThrottleReasons"):
        number(f"nvmlDeviceGet{name}", mask, form="Q")
    number("nvmlDeviceGetSupportedClocksEventReasons", 0x1FF, form="Q")
    lost = {
        "power": one.counters["sw_power_cap"],
        "thermal": one.counters["sw_thermal_slowdown"] + one.counters["hw_thermal_slowdown"],
        "reliability": one.counters["hw_power_brake_slowdown"],
    }
    for policy, place in POLICIES.items():
        say(
            "nvmlDeviceGetViolationStatus",
            struct.pack("=QQ", 1_700_000_000_000_000, lost.get(policy, 0)),
            key=str(place),
        )
    say("nvmlDeviceGetUtilizationRates", struct.pack("=II", one.utilization, one.utilization // 2))


def _fields(one: Gpu, found: list[str]) -> None:
    """nvmlDeviceGetFieldValues."""

    def field(name: str, value: int | None, form: str = "I", scope: int = 0) -> None:
        number = getattr(pynvml, name, None)
        if number is None:
            return
        key = f"{number},{scope}"
        kind = {"I": 1, "Q": 3}[form]
        blobs = [
            _word(kind),
            None if value is None else struct.pack("=" + form, value).ljust(8, b"\0"),
        ]
        found.append(_row(one.handle, "nvmlDeviceGetFieldValues", key, *blobs))

    field("NVML_FI_DEV_MEMORY_TEMP", one.memory_temperature)
    field("NVML_FI_DEV_RESET_STATUS", int(one.reset_required))
    field("NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", one.recovery_action)
    field("NVML_FI_DEV_NVLINK_LINK_COUNT", len(one.links))
    if one.links:
        field("NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON", one.link_mbps)
    for name, constant in COUNTERS.items():
        field(constant, one.counters[name], "Q")
    for old, name in (
        ("POWER", "sw_power_cap"),
        ("THERMAL", "sw_thermal_slowdown"),
        ("SYNC_BOOST", "sync_boost"),
    ):
        field(f"NVML_FI_DEV_PERF_POLICY_{old}", one.counters[name], "Q")


def _links(one: Gpu, say: Any, number: Any) -> None:
    for link, state in enumerate(one.links):
        number("nvmlDeviceGetNvLinkState", int(state["active"]), str(link))
        number("nvmlDeviceGetNvLinkVersion", state["version"], str(link))
        number("nvmlDeviceGetNvLinkRemoteDeviceType", one.remote, str(link))
        for counter, kind in enumerate(("replay", "recovery", "crc", "crc_lane", "ecc")):
            number(
                "nvmlDeviceGetNvLinkErrorCounter",
                state["errors"].get(kind, 0),
                f"{link},{counter}",
                "Q",
            )
    for link in range(len(one.links), 18):
        say("nvmlDeviceGetNvLinkState", None, key=str(link))
    if one.fabric is None:
        return
    state, status, mask, summary = one.fabric
    common = {
        "clusterUuid": (ctypes.c_ubyte * 16)(*one.fabric_cluster),
        "status": status,
        "cliqueId": one.fabric_clique,
        "state": FABRIC_STATES[state],
    }
    v3 = _versioned("c_nvmlGpuFabricInfo_v3_t", healthMask=mask, healthSummary=summary, **common)
    v2 = _versioned("c_nvmlGpuFabricInfo_v2_t", healthMask=mask, **common)
    say("nvmlDeviceGetGpuFabricInfoV", v3)
    say("nvmlDeviceGetGpuFabricInfoV", v2)
    say("nvmlDeviceGetGpuFabricInfo", _structure("c_nvmlGpuFabricInfo_t", **common))


def _instances(one: Gpu, found: list[str]) -> None:
    """MIG instances: handles of their own."""
    for place, instance in enumerate(one.mig_instances):
        handle = 1000 + one.index * 32 + place
        found.append(
            _row(
                one.handle,
                "nvmlDeviceGetMigDeviceHandleByIndex",
                str(place),
                struct.pack("=Q", handle),
            )
        )
        for name, value in (("GpuInstanceId", instance["gi"]), ("ComputeInstanceId", 0)):
            found.append(_row(handle, f"nvmlDeviceGet{name}", "-", _word(value)))
        found.append(_row(handle, "nvmlDeviceGetUUID", "-", _text(f"MIG-{instance['uuid']}")))
        attributes = _structure(
            "c_nvmlDeviceAttributes",
            multiprocessorCount=instance["sms"],
            memorySizeMB=instance["mib"],
        )
        found.append(_row(handle, "nvmlDeviceGetAttributes_v2", "-", attributes))
    if one.mig is not None and one.mig[0]:
        found.append(f"{one.handle} nvmlDeviceGetMigDeviceHandleByIndex * 6 -")


def _licence(one: Gpu, say: Any) -> None:
    feature = pynvml.c_nvmlGridLicensableFeature_v4_t()
    feature.featureCode = 3
    feature.featureState = feature.featureEnabled = int(one.licence)
    for name, value in one.licence_expiry.items():
        setattr(feature.licenseExpiry, name, value)
    made = pynvml.c_nvmlGridLicensableFeatures_v4_t()
    made.isGridLicenseSupported = 1
    made.licensableFeaturesCount = 1
    made.gridLicensableFeatures[0] = feature
    say("nvmlDeviceGetGridLicensableFeatures_v4", bytes(made))


def system_rows(
    driver: str, cuda: tuple[int, int], count: int, nvml: str | None = None
) -> list[str]:
    """What NVML says of the machine."""
    return [
        _row(0, "nvmlInit", "-", code=0),
        _row(0, "nvmlSystemGetNVMLVersion", "-", _text(f"{cuda[0]}.{nvml or driver}")),
        _row(0, "nvmlSystemGetDriverVersion", "-", _text(driver)),
        _row(0, "nvmlSystemGetCudaDriverVersion_v2", "-", _word(cuda[0] * 1000 + cuda[1] * 10)),
        _row(0, "nvmlDeviceGetCount_v2", "-", _word(count)),
        "0 nvmlSystemGetProcessName * 0 - " + _text("/usr/bin/python3 train.py").hex(),  # type: ignore[union-attr]
    ]


def pair_rows(gpus: list[Gpu], level: int, p2p: int) -> list[str]:
    found = []
    for one in gpus:
        for other in gpus:
            if one is not other:
                found.append(
                    _row(
                        one.handle,
                        "nvmlDeviceGetTopologyCommonAncestor",
                        str(other.handle),
                        _word(level),
                    )
                )
    found.append(f"* nvmlDeviceGetP2PStatus * 0 - {_word(p2p).hex()}")  # type: ignore[union-attr]
    return found

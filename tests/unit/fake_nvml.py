"""A pynvml without a driver: a healthy two-GPU machine whose every answer a test can replace.

Answers are those of an H100 as its nvidia-smi capture tells them, so that words can be compared.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace as Struct
from typing import Any

ADDRESSES = (b"00000000:00:09.0", b"00000000:0A:00.0")
MIB = 1 << 20


class NVMLError(Exception):
    """As pynvml has it: ``value`` is the code, and it cannot be hashed."""

    WORDS = {3: "Not Supported", 9: "Driver Not Loaded", 15: "GPU is lost", 999: "Unknown Error"}

    def __init__(self, value: int) -> None:
        self.value = value

    def __str__(self) -> str:
        return self.WORDS.get(self.value, f"NVML Error with code {self.value}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NVMLError) and self.value == other.value


class FabricV3(ctypes.Structure):
    _fields_ = [
        ("state", ctypes.c_uint),
        ("status", ctypes.c_uint),
        ("healthMask", ctypes.c_uint),
        ("healthSummary", ctypes.c_uint),
        ("clusterUuid", ctypes.c_uint8 * 16),
        ("cliqueId", ctypes.c_uint32),
    ]


class FabricV1(ctypes.Structure):
    _fields_ = [("state", ctypes.c_uint), ("status", ctypes.c_uint)]


class Sram(ctypes.Structure):
    _fields_ = [
        ("aggregateUncParity", ctypes.c_ulonglong),
        ("aggregateUncSecDed", ctypes.c_ulonglong),
        ("volatileUncParity", ctypes.c_ulonglong),
        ("volatileUncSecDed", ctypes.c_ulonglong),
        ("bThresholdExceeded", ctypes.c_uint),
    ]


def process(pid: int, mib: int | None) -> Struct:
    return Struct(pid=pid, usedGpuMemory=None if mib is None else mib * MIB)


def fill(structure: type[ctypes.Structure], **values: int) -> Callable[..., int]:
    """An answer that writes into the structure that the caller passes by reference."""

    def answer(_handle: object, reference: Any) -> int:
        if not isinstance(reference._obj, structure):
            raise NVMLError(25)
        for name, value in values.items():
            setattr(reference._obj, name, value)
        return 0

    return answer


# (190, 1) and (189, 1): limits of the module, as of a GPU that is on one. 269 to 271: slowdowns in ns.
FIELDS = {
    **dict.fromkeys((226, 227, 230, 74, 76, 269, 270, 271), 0),
    82: 48,
    (190, 1): 900000,
    (189, 1): 900000,
}

ANSWERS: dict[str, Any] = {
    "nvmlInit": None,
    "nvmlSystemGetDriverVersion": "590.48.01",
    "nvmlSystemGetNVMLVersion": "13.590.48.01",
    "nvmlSystemGetCudaDriverVersion_v2": 13010,
    "nvmlSystemGetProcessName": "/usr/bin/python3 train.py --token=s3cret",
    "nvmlErrorString": lambda code: f"error {code}",
    "nvmlDeviceGetCount": len(ADDRESSES),
    "nvmlDeviceGetHandleByIndex": lambda index: index,
    "nvmlDeviceGetPciInfo": lambda handle: Struct(busId=ADDRESSES[handle]),
    "nvmlDeviceGetUUID": lambda handle: f"GPU-00000000-0000-0000-0000-00000000000{handle}",
    "nvmlDeviceGetSerial": "1650522003820",
    "nvmlDeviceGetName": b"NVIDIA H100 80GB HBM3",
    "nvmlDeviceGetBrand": 14,
    "nvmlDeviceGetArchitecture": 9,
    "nvmlDeviceGetCudaComputeCapability": [9, 0],
    "nvmlDeviceGetMinorNumber": lambda handle: handle,
    "nvmlDeviceGetVbiosVersion": "96.00.A5.00.01",
    "nvmlDeviceGetInforomImageVersion": "G520.0200.00.05",
    "nvmlDeviceGetBoardPartNumber": b"692-2G520-0200-000",
    "nvmlDeviceGetGspFirmwareVersion": b"590.48.01",
    "nvmlDeviceGetGspFirmwareMode": [1, 1],
    "nvmlDeviceValidateInforom": None,
    "nvmlDeviceGetCurrentDriverModel": NVMLError(3),
    "nvmlDeviceGetVirtualizationMode": 1,
    "nvmlDeviceGetAddressingMode": 0,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetComputeMode": 0,
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetMemoryInfo": lambda *_: Struct(
        total=81559 * MIB, used=59 * MIB, free=81022 * MIB
    ),
    "nvmlDeviceGetBAR1MemoryInfo": Struct(bar1Total=131072 * MIB, bar1Used=81081 * MIB),
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetMaxMigDeviceCount": 7,
    "nvmlDeviceGetMigDeviceHandleByIndex": NVMLError(6),
    "nvmlDeviceGetGpuInstanceId": 2,
    "nvmlDeviceGetComputeInstanceId": 0,
    "nvmlDeviceGetAttributes_v2": Struct(multiprocessorCount=60, memorySizeMB=40448),
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetTotalEccErrors": lambda _handle, kind, counter: kind * 10 + counter,
    "nvmlDeviceGetSramEccErrorStatus": fill(Sram, bThresholdExceeded=0),
    "nvmlDeviceGetRetiredPages": lambda _handle, cause: [0x1000] * (cause + 1),
    "nvmlDeviceGetRetiredPagesPendingStatus": 0,
    "nvmlDeviceGetRemappedRows": (1, 0, 0, 0),
    "nvmlDeviceGetRowRemapperHistogram": Struct(max=3071, high=1, partial=0, low=0, none=0),
    "nvmlDeviceGetRepairStatus": [0, 1],
    "nvmlDeviceGetUnrepairableMemoryFlag_v1": 0,
    "nvmlDeviceGetTemperature": lambda _handle, sensor: 42,
    "nvmlDeviceGetTemperatureThreshold": lambda _handle, threshold: (92, 89, 95)[threshold],
    "nvmlDeviceGetApplicationsClock": lambda _handle, clock: {0: 1980, 2: 2619}[clock],
    "nvmlDeviceGetDefaultApplicationsClock": lambda _handle, clock: {0: 1980, 2: 2619}[clock],
    "nvmlDeviceGetMarginTemperature": 45,
    "nvmlDeviceGetFanSpeed": NVMLError(3),
    "nvmlDeviceGetPowerUsage": 71273,
    "nvmlDeviceGetEnforcedPowerLimit": 700000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700000,
    "nvmlDeviceGetPowerManagementLimitConstraints": [200000, 700000],
    "nvmlDeviceGetClockInfo": lambda _handle, clock: {1: 345, 2: 2619}[clock],
    "nvmlDeviceGetMaxClockInfo": lambda _handle, clock: {1: 1980, 2: 2619}[clock],
    "nvmlDeviceGetCurrentClocksEventReasons": 1,
    "nvmlDeviceGetUtilizationRates": Struct(gpu=0, memory=0),
    "nvmlDeviceGetCurrPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetPcieReplayCounter": 9,
    "nvmlDeviceGetNvLinkState": NVMLError(3),
    "nvmlDeviceGetNvLinkErrorCounter": lambda _handle, link, counter: link * 10 + counter,
    "nvmlDeviceGetGpuFabricInfoV": fill(FabricV3, state=3, status=0, healthSummary=0, healthMask=0),
    "nvmlDeviceGetGpuFabricInfo": fill(FabricV1, state=3, status=0),
    "nvmlDeviceGetFieldValues": lambda _handle, numbers: [
        Struct(nvmlReturn=0, valueType=1, value=Struct(uiVal=FIELDS[numbers[0]]))
    ],
    "nvmlDeviceGetComputeRunningProcesses_v3": lambda _handle: [],
    "nvmlDeviceGetGraphicsRunningProcesses_v3": lambda _handle: [],
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": lambda _handle: [],
    "nvmlDeviceGetGridLicensableFeatures_v4": Struct(isGridLicenseSupported=0),
    "nvmlDeviceGetTopologyCommonAncestor": 50,
    "nvmlDeviceGetP2PStatus": lambda _one, _other, index: {0: 0}[index],
}
CONSTANTS: dict[str, Any] = {
    "NVML_FI_DEV_MEMORY_TEMP": 82,
    "NVML_FI_DEV_RESET_STATUS": 226,
    "NVML_FI_DEV_DRAIN_AND_RESET_STATUS": 227,
    "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION": 230,
    "NVML_FI_DEV_PERF_POLICY_POWER": 74,
    "NVML_FI_DEV_PERF_POLICY_SYNC_BOOST": 76,
    "NVML_FI_DEV_POWER_CURRENT_LIMIT": 190,
    "NVML_FI_DEV_POWER_DEFAULT_LIMIT": 189,
    "NVML_POWER_SCOPE_MODULE": 1,
    "NVML_NVLINK_MAX_LINKS": 18,
    "NVML_P2P_CAPS_INDEX_READ": (0,),  # a tuple in nvidia-ml-py itself
    "nvmlMemory_v2": 0x02000028,
    "NVMLError": NVMLError,
    "c_nvmlGpuFabricInfo_v3_t": FabricV3,
    "c_nvmlGpuFabricInfo_t": FabricV1,
    "c_nvmlEccSramErrorStatus_v1_t": Sram,
}


class FakeNvml:
    """Stands in for the module. Answers: a value, a function, or an NVMLError to raise."""

    def __init__(self, without: tuple[str, ...] = (), **answers: Any) -> None:
        """without: names that this pynvml does not have. answers: what differs from the healthy one."""
        self._names = {
            k: v for k, v in {**CONSTANTS, **ANSWERS, **answers}.items() if k not in without
        }

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(f"module 'pynvml' has no attribute '{name}'")
        answer = self._names[name]
        if not name.startswith("nvml") or name in CONSTANTS:
            return answer

        def call(*arguments: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments) if callable(answer) else answer

        return call


def failing(code: int) -> dict[str, NVMLError]:
    """Every question about a device fails with this code; opening one does not."""
    spared = ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex")
    return {n: NVMLError(code) for n in ANSWERS if n.startswith("nvmlDevice") and n not in spared}

"""NVML's functions that the stand-in has, as C that asks the rules of c/nvml.c for their answers."""

from __future__ import annotations

# h a device, k a number in, t a text in, o a value out, v a structure out whose version must fit, s a string
# and its room, S a string, l a list and its count. ".Name" is nvmlDeviceGetName.
_SIGNATURES = """
s: nvmlSystemGetNVMLVersion nvmlSystemGetDriverVersion
o: nvmlSystemGetCudaDriverVersion_v2 nvmlSystemGetConfComputeState
    nvmlSystemGetConfComputeGpusReadyState .Count_v2 nvmlUnitGetCount
ks: nvmlSystemGetProcessName
ko: .HandleByIndex_v2
ho: .PciInfo_v3 .Brand .BoardId .MultiGpuBoard .Architecture .MinorNumber .ModuleId
    .InforomConfigurationChecksum .VirtualizationMode .PersistenceMode .ComputeMode
    .PerformanceState .PowerState .BAR1MemoryInfo .MemoryInfo .MemoryBusWidth .NumGpuCores
    .MaxMigDeviceCount .GpuInstanceId .ComputeInstanceId .Attributes_v2 .DefaultEccMode
    .RetiredPagesPendingStatus .RowRemapperHistogram .FanSpeed .NumFans .PowerUsage
    .EnforcedPowerLimit .PowerManagementLimit .PowerManagementMode .PowerManagementDefaultLimit
    .CurrentClocksEventReasons .CurrentClocksThrottleReasons .SupportedClocksEventReasons
    .UtilizationRates .CurrPcieLinkGeneration .MaxPcieLinkGeneration .GpuMaxPcieLinkGeneration
    .CurrPcieLinkWidth .MaxPcieLinkWidth .PcieReplayCounter .PcieSpeed .GpuFabricInfo
    .GridLicensableFeatures_v4 .NumaNodeId .HostVgpuMode .DeviceHandleFromMigDeviceHandle
hs: .UUID .Serial .Name .BoardPartNumber .VbiosVersion .InforomImageVersion
hoo: .CudaComputeCapability .GspFirmwareMode .DriverModel_v2 .MigMode .EccMode
    .PowerManagementLimitConstraints .AutoBoostedClocksEnabled
hks: .InforomVersion
h: nvmlDeviceValidateInforom
hS: .GspFirmwareVersion
hv: .AddressingMode .MemoryInfo_v2 .SramEccErrorStatus .RepairStatus .UnrepairableMemoryFlag_v1
    .MarginTemperature .GpuFabricInfoV
hko: .MigDeviceHandleByIndex .Temperature .TemperatureThreshold .FanSpeed_v2 .ClockInfo
    .MaxClockInfo .MaxCustomerBoostClock .ApplicationsClock .DefaultApplicationsClock
    .ViolationStatus .NvLinkState .NvLinkVersion .NvLinkRemoteDeviceType .NvLinkRemotePciInfo_v2
hkko: .TotalEccErrors .DetailedEccErrors .Clock .NvLinkCapability .NvLinkErrorCounter
hkkko: .MemoryErrorCounter
hkl: .RetiredPages
hoooo: .RemappedRows
hl: .ComputeRunningProcesses_v3 .GraphicsRunningProcesses_v3 .MPSComputeRunningProcesses_v3
hho: .TopologyCommonAncestor
hhko: .P2PStatus
to: .HandleByPciBusId_v2 .HandleByUUID
"""
LETTERS: dict[str, str] = {}  # of each function
for _word in _SIGNATURES.split():
    if _word.endswith(":"):
        _letters = _word[:-1]
    else:
        LETTERS["nvmlDeviceGet" + _word[1:] if _word.startswith(".") else _word] = _letters
KEYS = {"k": ("unsigned", "%u"), "t": ("const char *", "%s")}


def _function(name: str, letters: str) -> str:
    parameters, shape, keys, answers = [], [], [], []
    device, version = "0", "0"
    blob = 0
    for place, letter in enumerate(letters):
        one = f"a{place}"
        if letter == "h":
            parameters.append(f"void *{one}")
            if place:
                shape.append("%u")
                keys.append(f"(unsigned)(size_t){one}")
            else:
                device = one
        elif letter in "kt":
            parameters.append(f"{KEYS[letter][0]} {one}")
            shape.append(KEYS[letter][1])
            keys.append(one)
        elif letter in "ov":
            parameters.append(f"void *{one}")
            answers.append(f"put(rule, {blob}, {one}, 0);")
            version = one if letter == "v" else version
            blob += 1
        elif letter in "sS":
            parameters.append(f"char *{one}" + (f", unsigned n{place}" if letter == "s" else ""))
            answers.append(f"put(rule, {blob}, {one}, {f'n{place}' if letter == 's' else '0'});")
            blob += 1
        elif letter == "l":
            parameters.append(f"unsigned *{one}, void *list{place}")
            answers.append(f"return put_list(rule, {blob}, {one}, list{place});")
    if keys:
        form, values = ",".join(shape), ", ".join(keys)
        key = f'char key[48];\n    snprintf(key, sizeof key, "{form}", {values});'
    else:
        key = 'const char *key = "-";'
    body = "\n    ".join(answers)
    return f"""
int {name}({", ".join(parameters) or "void"})
{{
    {key}
    struct rule *rule = ask("{name}", {device}, key, {version});
    if (rule->code)
        return rule->code;
    {body}
    return 0;
}}"""


def functions() -> str:
    """c/nvml_functions.h."""
    return "".join(_function(name, letters) for name, letters in LETTERS.items())

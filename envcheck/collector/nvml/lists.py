"""What takes more than one call to NVML: MIG instances, NVLinks, the fabric, processes, the licence."""

import ctypes
import uuid

from ..facts import unavailable
from ..smi import lists as smi_lists
from ..smi import values as smi_values
from . import labels as w
from .binding import NotThere, code_of, reason_fact, text

MAX_LINKS = 18  # where the binding does not know; NVML says for each link whether there is one
_NO_LINK = ("not-supported", "absent")
_NO_MEMORY = (None, 0xFFFFFFFFFFFFFFFF)  # NVML_VALUE_NOT_AVAILABLE


def mig_instances(nvml, handle):
    if not nvml.call("nvmlDeviceGetMigMode", handle)[0]:
        return ([],)
    found = []
    for index in range(nvml.call("nvmlDeviceGetMaxMigDeviceCount", handle)):
        try:
            device = nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        except Exception as error:
            if code_of(error) in (2, 6):  # invalid argument, not found: this place is empty
                continue
            raise
        found.append(_mig_instance(nvml, device))
    return (found,)


def _mig_instance(nvml, device):
    instance = {
        "gpu_instance": _attempt(_number, nvml, "nvmlDeviceGetGpuInstanceId", device),
        "compute_instance": _attempt(_number, nvml, "nvmlDeviceGetComputeInstanceId", device),
        "uuid": _attempt(_string, nvml, "nvmlDeviceGetUUID", device),
    }
    attributes = _attempt(
        nvml.first, ("nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"), device
    )
    known = not isinstance(attributes, dict)
    instance["multiprocessors"] = int(attributes.multiprocessorCount) if known else attributes
    instance["memory_mib"] = int(attributes.memorySizeMB) if known else attributes
    return instance


def nvlinks(nvml, handle):
    """Every link that the GPU has. Raises the first link's error where it has none."""
    found, failure = [], None
    for link in range(nvml.constant("NVML_NVLINK_MAX_LINKS", MAX_LINKS)):
        try:
            active = bool(nvml.call("nvmlDeviceGetNvLinkState", handle, link))
        except Exception as error:
            failure = failure or error
            if reason_fact(error)["unavailable"] not in _NO_LINK:
                found.append({"link": link, "active": reason_fact(error)})
            if not found and link >= 3:
                break  # no GPU with NVLink lacks its first four
            continue
        found.append(_nvlink(nvml, handle, link, active))
    if not found or not any(isinstance(item["active"], bool) for item in found):
        raise failure or NotThere("not-supported")
    return (found,)


def _nvlink(nvml, handle, link, active):
    item = {"link": link, "active": active}
    if active:
        # NVML_NVLINK_ERROR_DL_*: replay, recovery, CRC of flits
        for name, counter in (("replay_errors", 0), ("recovery_errors", 1), ("crc_errors", 2)):
            item[name] = _attempt(
                _number, nvml, "nvmlDeviceGetNvLinkErrorCounter", handle, link, counter
            )
    return item


def fabric(nvml, handle):
    """State, status, health, faults, clique and cluster of the registration with the NVSwitch fabric."""
    info = _fabric_info(nvml, handle)
    if info.state not in w.FABRIC_STATES:
        raise NotThere("not-supported")
    if info.state == 3:
        status = "Success" if info.status == 0 else _error_words(nvml, info.status)
    else:
        status = unavailable("absent", "valid once the registration is completed")
    place = _fabric_place(info) if info.state == 3 else (status, status)
    faults = _fabric_faults(info)
    return (
        w.FABRIC_STATES[info.state],
        status,
        _fabric_health(info, faults),
        unavailable("not-supported") if faults is None else faults,
    ) + place


def _fabric_place(info):
    """The clique, and the cluster's UUID, where the structure has them."""
    missing = unavailable("not-supported")
    try:
        return int(info.cliqueId), str(uuid.UUID(bytes=bytes(bytearray(info.clusterUuid))))
    except (AttributeError, TypeError, ValueError):
        return missing, missing


def _fabric_info(nvml, handle):
    """The newest structure that both the binding and the library know."""
    failure = None
    for function, structure in (
        ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v3_t"),
        ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
        ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
    ):
        try:
            info = nvml.structure(structure)
            nvml.call(function, handle, ctypes.byref(info))
            return info
        except Exception as error:
            if not isinstance(error, NotThere) and code_of(error) not in (2, 13, 25):
                raise
            failure = failure or error
    raise failure or NotThere("not-supported")


def _fabric_faults(info):
    """The faults that the health mask tells; None where it tells nothing."""
    mask = getattr(info, "healthMask", 0)
    parts = [
        (mask >> shift & width, healthy, names)
        for shift, width, healthy, names in w.FABRIC_HEALTH_MASK
    ]
    known = [part for part in parts if part[0]]
    if not known:
        return None
    return [
        names.get(value, "unknown_%d" % value)
        for value, healthy, names in known
        if value != healthy
    ]


def _fabric_health(info, faults):
    summary = getattr(info, "healthSummary", 0)
    if summary in w.FABRIC_HEALTH:
        return w.FABRIC_HEALTH[summary]
    return unavailable("not-supported") if faults is None else smi_lists.health_summary(faults)


def processes(nvml, handle):
    """The GPU's processes, with nvidia-smi's types: "C", "G", "C+G", "M+C" under MPS."""
    memory, of_kind = {}, {}
    of_kind["C"] = _running(nvml, "Compute", handle)
    for kind, name in (("M+C", "MPSCompute"), ("G", "Graphics")):
        found = _attempt(_running, nvml, name, handle)
        of_kind[kind] = [] if isinstance(found, dict) else found
    for found in of_kind.values():
        for process in found:
            memory.setdefault(int(process.pid), process.usedGpuMemory)
    pids = {kind: {int(process.pid) for process in found} for kind, found in of_kind.items()}
    pids["C"] -= pids["M+C"]
    return (
        [
            _process(
                nvml,
                pid,
                "+".join(kind for kind in ("M+C", "C", "G") if pid in pids[kind]),
                memory[pid],
            )
            for pid in sorted(memory)
        ],
    )


def _running(nvml, kind, handle):
    name = "nvmlDeviceGet%sRunningProcesses" % kind
    return nvml.first((name + "_v3", name + "_v2", name), handle)


def _process(nvml, pid, kind, used):
    name = _attempt(_string, nvml, "nvmlSystemGetProcessName", pid)
    if not isinstance(name, dict):
        name = smi_values.convert(name, smi_values.program)
    memory = unavailable("not-supported") if used in _NO_MEMORY else int(used) >> 20
    return {"pid": pid, "kind": kind, "name": name, "memory_mib": memory}


def vgpu_licence(nvml, handle):
    """nvidia-smi's "License Status", of a GPU whose software needs a licence."""
    features = nvml.first(
        ("nvmlDeviceGetGridLicensableFeatures_v4", "nvmlDeviceGetGridLicensableFeatures"), handle
    )
    if not features.isGridLicenseSupported:
        raise NotThere("not-supported")
    virtual = _attempt(nvml.call, "nvmlDeviceGetVirtualizationMode", handle) == 2
    listed = list(features.gridLicensableFeatures)[: features.licensableFeaturesCount]
    # A physical GPU lists what it could be licensed for, and needs none of it.
    needed = [feature for feature in listed if virtual or getattr(feature, "featureEnabled", 0)]
    if not needed:
        raise NotThere("absent", "no licensed feature is in use")
    licensed = [feature for feature in needed if feature.featureState]
    return (_licence_words(licensed[0]) if licensed else "Unlicensed",)


def _licence_words(feature):
    expiry = getattr(feature, "licenseExpiry", None)
    status = getattr(expiry, "status", 0)
    if status == 2:
        return "Licensed (Expiry: %d-%d-%d %d:%d:%d GMT)" % (
            expiry.year,
            expiry.month,
            expiry.day,
            expiry.hour,
            expiry.min,
            expiry.sec,
        )
    return {3: "Licensed (Expiry: N/A)", 4: "Licensed (Expiry: Permanent)"}.get(status, "Licensed")


def _attempt(function, *arguments):
    """What the function returns, or the reason why it raised."""
    try:
        return function(*arguments)
    except Exception as error:
        return reason_fact(error)


def _number(nvml, function, *arguments):
    return int(nvml.call(function, *arguments))


def _string(nvml, function, *arguments):
    return text(nvml.call(function, *arguments))


def _error_words(nvml, code):
    words = _attempt(_string, nvml, "nvmlErrorString", code)
    return "NVML error %d" % code if isinstance(words, dict) else words

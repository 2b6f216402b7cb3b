"""The facts of a GPU that are lists or groups: MIG instances, processes, clock-event reasons, fabric."""

import re

from ..facts import unavailable
from . import fields
from . import values as v

_REASON_GROUPS = (
    "clocks_event_reasons",
    "clocks_throttle_reasons",
    "Clocks Event Reasons",
    "Clocks Throttle Reasons",
)
_REASON_PREFIX = re.compile(r"clocks_(?:event|throttle)_reason_")

# Reasons that have another name in text, or had one in older drivers.
_REASONS = {
    "idle": "gpu_idle",
    "user_defined_clocks": "applications_clocks_setting",
    "display_clock_setting": "display_clocks_setting",
}

# Fabric health, part by part (XML's name; text's is the same in other letters): what it says on a healthy
# fabric, and the fault that anything else stands for.
_FABRIC_HEALTH = {
    "route_recovery_in_progress": ("false", "route_recovery_in_progress"),
    "route_unhealthy": ("false", "route_unhealthy"),
    "access_timeout_recovery": ("false", "access_timeout_recovery"),
    "incorrect_configuration": ("none", ""),
    "bandwidth": ("full", "degraded_bandwidth"),
    "partition_assigned": ("true", "partition_not_assigned"),
}
# Which incorrect configuration it is, by a word of nvidia-smi's (nvidia-smi(1), Fabric).
_MISCONFIGURED = (
    ("guid", "incorrect_system_guid"),
    ("chassis", "incorrect_chassis_serial_number"),
    ("partition", "no_partition"),
    ("nvlink", "insufficient_nvlinks"),
    ("firmware", "incompatible_gpu_firmware"),
    ("fw", "incompatible_gpu_firmware"),
    ("location", "invalid_location"),
    ("state", "gpu_state_invalid"),
)


def mig_instances(node, form, gpu):
    """A list; where the GPU has no MIG mode, the reason."""
    path = "mig_devices/mig_device" if form == "xml" else "MIG Device"
    instances = [fields.read(one, fields.MIG, form) for one in node.all(path)]
    enabled = gpu.get("mig_enabled")
    return instances if instances or isinstance(enabled, bool) else enabled


def clock_event_reasons(gpu, _form, _facts):
    """The names of the active reasons, the reason why they are not known, or None."""
    group = next((found for found in map(gpu.first, _REASON_GROUPS) if found is not None), None)
    if group is None:
        return None
    known, active = 0, []
    for node in _leaves(group):
        flag = v.convert(node.value, v.flag)
        if isinstance(flag, bool):
            known += 1
            if flag:
                active.append(_reason_name(node.name))
    if known:
        return active
    words = group.value or next((node.value for node in _leaves(group)), "")
    return v.missing(words) or v.not_understood(words)


def _leaves(group):
    for node in group.children:
        yield node
        for below in node.children:
            yield below


def _reason_name(name):
    reason = _REASON_PREFIX.sub("", name).strip().lower().replace(" ", "_")
    return _REASONS.get(reason, reason)


def processes(gpu, form, _facts):
    """A list, the reason why there is none, or None where the document has no place for it."""
    group = gpu.first("processes" if form == "xml" else "Processes")
    if group is None:
        return None
    if not group.children:
        if group.value in ("", "None"):
            return []
        return v.missing(group.value) or v.not_understood(group.value)
    if form == "xml":
        names = ("pid", "type", "process_name", "used_memory")
        found = [[node.text(name) for name in names] for node in group.all("process_info")]
    else:
        found = [
            [node.value] + [node.text(name) for name in ("Type", "Name", "Used GPU Memory")]
            for node in group.all("Process ID")
        ]
    return [process for process in (_process(*one) for one in found) if process is not None]


def _process(pid, kind, name, memory):
    pid = v.convert(pid or "", v.count)
    if isinstance(pid, dict):
        return None  # nothing to call it by
    process = {"pid": pid, "kind": kind or "?"}
    if name is not None:
        process["name"] = v.convert(name, v.program)
    if memory is not None:
        process["memory_mib"] = v.convert(memory, v.mebibytes)
    return process


def fabric_status(gpu, form, _facts):
    """The registration's status. Where it is an error's name, that name is the value."""
    status = gpu.text("fabric/status" if form == "xml" else "Fabric/Status")
    if status is None:
        return None
    fact = v.missing(status)
    return fact if fact and fact["unavailable"] in ("not-supported", "not-collected") else status


def fabric_health(gpu, form, facts):
    """The summary; drivers before it was added say only the parts, which are summed up the same way."""
    summary = gpu.text("fabric/health/summary" if form == "xml" else "Fabric/Health/Summary")
    if summary is not None:
        return v.convert(summary, str)
    faults = fabric_faults(gpu, form, facts)
    return health_summary(faults) if isinstance(faults, list) else faults


def fabric_faults(gpu, form, _facts):
    """What is wrong with the fabric, in the words of nvml/labels.py."""
    group = gpu.first("fabric/health" if form == "xml" else "Fabric/Health")
    if group is None:
        return None
    states = [
        (_FABRIC_HEALTH[name], node.value.strip().lower())
        for name, node in ((node.name.lower().replace(" ", "_"), node) for node in group.children)
        if name in _FABRIC_HEALTH and v.missing(node.value) is None
    ]
    if not states:
        return unavailable("not-supported")
    return [fault or _misconfigured(word) for (healthy, fault), word in states if word != healthy]


def _misconfigured(word):
    found = [fault for part, fault in _MISCONFIGURED if part in word]
    return found[0] if found else "incorrect_configuration"


def health_summary(faults):
    """NVML's words for a fabric with these faults."""
    if not faults:
        return "Healthy"
    return "Limited Capacity" if faults == ["degraded_bandwidth"] else "Unhealthy"


# field: function(node, form, the facts so far), None where the document has no place for it.
FACTS = {
    "mig_instances": mig_instances,
    "clock_event_reasons": clock_event_reasons,
    "processes": processes,
    "fabric_status": fabric_status,
    "fabric_health": fabric_health,
    "fabric_faults": fabric_faults,
}

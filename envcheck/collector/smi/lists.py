"""The facts of a GPU that are lists or groups: MIG instances, processes, clock-event reasons, fabric."""

import re

from ..facts import unavailable
from . import fields
from . import values as v

LOST = "the document ends there, or has lost its indentation"
_REASON_GROUPS = (
    "clocks_event_reasons",
    "clocks_throttle_reasons",
    "Clocks Event Reasons",
    "Clocks Throttle Reasons",
)
_REASON_PREFIX = re.compile(r"clocks_(?:event|throttle)_reason_")

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


def mig_instances(gpu, form, enabled):
    """A list; where the GPU has no MIG mode, the reason (``enabled`` is the fact "mig_enabled")."""
    path = "mig_devices/mig_device" if form == "xml" else "MIG Device"
    if gpu.lost and path.partition("/")[0] in gpu.lost:
        return unavailable("not-collected", LOST)
    instances = []
    for node in gpu.all(path):
        facts = ((row[0], fields.read(node, row, form)) for row in fields.MIG_FIELDS)
        instances.append({name: fact for name, fact in facts if fact is not None})
    if instances or isinstance(enabled, bool):
        return instances
    return enabled


def clock_event_reasons(gpu):
    """The names of the active reasons, the reason why they are not known, or None."""
    group = next((found for found in map(gpu.first, _REASON_GROUPS) if found is not None), None)
    if group is None:
        return None
    if group.name in gpu.lost:
        return unavailable("not-collected", LOST)
    known, active = 0, []
    for node in _leaves(group):
        said = v.convert(node.value, v.flag)
        if isinstance(said, bool):
            known += 1
            if said:
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
    if name in fields.CLOCK_REASONS:
        return fields.CLOCK_REASONS[name]
    reason = _REASON_PREFIX.sub("", name).strip().lower().replace(" ", "_")
    return {
        "user_defined_clocks": "applications_clocks_setting",
        "display_clock_setting": "display_clocks_setting",
    }.get(reason, reason)


def processes(gpu, form):
    """A list, the reason why there is none, or None where the document has no place for it."""
    group = gpu.first("processes" if form == "xml" else "Processes")
    if group is None:
        return None
    if group.name in gpu.lost:
        return unavailable("not-collected", LOST)
    if not group.children:
        if group.value in ("", "None"):
            return []
        return v.missing(group.value) or v.not_understood(group.value)
    found = []
    for node in group.all("process_info" if form == "xml" else "Process ID"):
        process = _xml_process(node) if form == "xml" else _text_process(node)
        if process is not None:
            found.append(process)
    return found


def _xml_process(node):
    return _process(
        node.text("pid"), node.text("type"), node.text("process_name"), node.text("used_memory")
    )


def _text_process(node):
    return _process(node.value, node.text("Type"), node.text("Name"), node.text("Used GPU Memory"))


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


def fabric_status(gpu, form):
    """The registration's status. Where it is an error's name, that name is the value."""
    said = gpu.text("fabric/status" if form == "xml" else "Fabric/Status")
    if said is None:
        return None
    fact = v.missing(said)
    return fact if fact and fact["unavailable"] in ("not-supported", "not-collected") else said


def fabric_health(gpu, form):
    """The summary; drivers before it was added say only the parts, which are summed up the same way."""
    summary = gpu.text("fabric/health/summary" if form == "xml" else "Fabric/Health/Summary")
    if summary is not None:
        return v.convert(summary, v.words)
    faults = fabric_faults(gpu, form)
    return health_summary(faults) if isinstance(faults, list) else faults


def fabric_faults(gpu, form):
    """What is wrong with the fabric, in the words of nvml/labels.py."""
    group = gpu.first("fabric/health" if form == "xml" else "Fabric/Health")
    if group is None:
        return None
    if ("fabric" if form == "xml" else "Fabric") in gpu.lost:
        return unavailable("not-collected", LOST)
    said = [
        (_FABRIC_HEALTH[name], node.value.strip().lower())
        for name, node in ((node.name.lower().replace(" ", "_"), node) for node in group.children)
        if name in _FABRIC_HEALTH and v.missing(node.value) is None
    ]
    if not said:
        return unavailable("not-supported")
    return [fault or _misconfigured(word) for (healthy, fault), word in said if word != healthy]


def _misconfigured(word):
    found = [fault for part, fault in _MISCONFIGURED if part in word]
    return found[0] if found else "incorrect_configuration"


def health_summary(faults):
    """NVML's words for a fabric with these faults."""
    if not faults:
        return "Healthy"
    return "Limited Capacity" if faults == ["degraded_bandwidth"] else "Unhealthy"

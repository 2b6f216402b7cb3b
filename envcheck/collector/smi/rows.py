"""What nvidia-smi prints in rows: `-L`, and `--query-gpu=… --format=csv` with its header."""

import re

from ..facts import unavailable
from . import values as v

_GPU = re.compile(
    r"^[ \t]{0,8}GPU (?P<index>\d{1,3}): (?P<name>[^\n(]{1,100}?) ?"
    r"\(UUID: (?P<uuid>GPU-[0-9A-Fa-f-]{8,40})\)",
    re.M,
)
_MIG = re.compile(
    r"[ \t]{1,8}MIG \S{1,20} {1,9}Device {1,9}\d{1,3}: \(UUID: (?P<uuid>MIG-[^)\n]{8,80})\)"
)
GPUS = 256

_GPU_FIELDS = {
    "index": ("index", v.count),
    "name": ("name", v.words),
    "gpu_name": ("name", v.words),
    "uuid": ("uuid", v.words),
    "gpu_uuid": ("uuid", v.words),
    "serial": ("serial", v.words),
    "gpu_serial": ("serial", v.words),
    "pci.bus_id": ("pci_address", v.address),
    "gpu_bus_id": ("pci_address", v.address),
    "compute_cap": ("compute_capability", v.words),
    "vbios_version": ("vbios", v.words),
    "driver_model.current": ("driver_model", v.words),
    "persistence_mode": ("persistence", v.flag),
    "compute_mode": ("compute_mode", v.words),
    "pstate": ("performance_state", v.words),
    "memory.total": ("memory_total_mib", v.mebibytes),
    "memory.used": ("memory_used_mib", v.mebibytes),
    "memory.free": ("memory_free_mib", v.mebibytes),
    "mig.mode.current": ("mig_enabled", v.flag),
    "mig.mode.pending": ("mig_pending", v.flag),
    "ecc.mode.current": ("ecc_enabled", v.flag),
    "ecc.mode.pending": ("ecc_pending", v.flag),
    "ecc.errors.corrected.volatile.total": ("ecc_corrected_volatile", v.count),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrected_volatile", v.count),
    "ecc.errors.corrected.aggregate.total": ("ecc_corrected_aggregate", v.count),
    "ecc.errors.uncorrected.aggregate.total": ("ecc_uncorrected_aggregate", v.count),
    "retired_pages.single_bit_ecc.count": ("retired_single_bit", v.count),
    "retired_pages.double_bit.count": ("retired_double_bit", v.count),
    "retired_pages.pending": ("retired_pending", v.flag),
    "remapped_rows.correctable": ("remap_correctable", v.count),
    "remapped_rows.uncorrectable": ("remap_uncorrectable", v.count),
    "remapped_rows.pending": ("remap_pending", v.flag),
    "remapped_rows.failure": ("remap_failed", v.flag),
    "gpu_recovery_action": ("recovery_action", v.words),
    "reset_status.reset_required": ("reset_required", v.flag),
    "temperature.gpu": ("temperature_c", v.integer),
    "temperature.memory": ("memory_temperature_c", v.integer),
    "fan.speed": ("fan_percent", v.count),
    "power.draw": ("power_draw_w", v.watts),
    "power.limit": ("power_limit_w", v.watts),
    "power.default_limit": ("power_default_limit_w", v.watts),
    "power.min_limit": ("power_min_limit_w", v.watts),
    "power.max_limit": ("power_max_limit_w", v.watts),
    "clocks.sm": ("clock_sm_mhz", v.count),
    "clocks.current.sm": ("clock_sm_mhz", v.count),
    "clocks.mem": ("clock_memory_mhz", v.count),
    "clocks.current.memory": ("clock_memory_mhz", v.count),
    "clocks.max.sm": ("clock_sm_max_mhz", v.count),
    "clocks.max.memory": ("clock_memory_max_mhz", v.count),
    "utilization.gpu": ("utilization_percent", v.count),
    "pcie.link.gen.current": ("pcie_gen", v.count),
    "pcie.link.gen.gpucurrent": ("pcie_gen", v.count),
    "pcie.link.gen.max": ("pcie_gen_max", v.count),
    "pcie.link.width.current": ("pcie_width", v.count),
    "pcie.link.width.max": ("pcie_width_max", v.count),
    "fabric.state": ("fabric_state", v.words),
    "fabric.status": ("fabric_status", v.words),
}
# Of every row alike: the newest name first.
_TOP = {"kmd_version": "driver_version", "driver_version": "driver_version", "count": "gpu_count"}
_TITLE = re.compile(r"[A-Za-z][\w.]{1,80}(?: \[[\w%]{1,5}\])?\Z")
_NAMED = ("name", "uuid", "index", "bus_id")  # one of them is in every header that is of use


def read_list(text):
    """The facts of `nvidia-smi -L`, or None. Whether MIG is on is seen where there are instances alone."""
    gpus = []
    for found in _GPU.finditer(text):
        index = int(found.group("index"))
        if any(gpu["index"] == index for gpu in gpus):
            break  # a second list
        gpu = {"index": index, "name": found.group("name").strip(), "uuid": found.group("uuid")}
        instances = _instances(text, found.end())
        if instances:
            gpu["mig_enabled"], gpu["mig_instances"] = True, instances
        gpus.append(gpu)
    return {"form": "list", "gpus": gpus} if gpus else None


def _instances(text, start):
    instances = []
    while True:
        start = text.find("\n", start) + 1
        found = _MIG.match(text, start) if start else None
        if found is None:
            return instances
        instances.append({"uuid": found.group("uuid")})


def read_csv(text):
    """The facts of a table of comma-separated values with its header, or None."""
    lines = text.split("\n")
    for place, line in enumerate(lines):
        titles = _titles(line)
        if titles:
            facts = _csv(titles, lines[place + 1 : place + 1 + GPUS])
            if facts["gpus"]:
                return facts
    return None


def _titles(line):
    """[(name, unit)] of a line that is a header of GPUs' facts, else []."""
    if "," not in line or not any(name in line for name in _NAMED):
        return []
    words = [word.strip() for word in line.split(",")]
    if not all(_TITLE.match(word) for word in words):
        return []
    titles = [_title(word) for word in words]
    names = [name for name, _unit in titles]
    known = {_GPU_FIELDS[name][0] for name in names if name in _GPU_FIELDS}
    return titles if len(known) > 1 and "pid" not in names else []


def _title(word):
    """ "memory.total [MiB]" as its name and unit."""
    name, _blank, unit = word.strip().partition(" ")
    return name.lower(), unit.strip("[]")


def _csv(titles, rows):
    facts = {"form": "csv", "gpus": []}
    for row in rows:
        cells = [cell.strip() for cell in row.split(",")]
        if len(cells) != len(titles):
            break
        gpu = {}
        for (name, unit), cell in zip(titles, cells):
            if unit and re.match(r"-?\d[\d.]{0,20}\Z", cell):
                cell += " " + unit
            if name in _TOP:
                facts.setdefault(
                    _TOP[name], v.convert(cell, v.count if name == "count" else v.words)
                )
            elif name in _GPU_FIELDS:
                field, converter = _GPU_FIELDS[name]
                gpu[field] = v.convert(cell, converter)
        if isinstance(gpu.get("ecc_uncorrected_volatile"), int):
            gpu.setdefault("ecc_enabled", True)  # it is counted nowhere else
        if isinstance(gpu.get("mig_enabled"), bool):
            gpu["mig_instances"] = unavailable("not-collected", "not among what was queried")
        facts["gpus"].append(gpu)
    return facts

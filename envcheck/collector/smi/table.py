"""What nvidia-smi prints without options: a box with three lines for each GPU."""

import re

from ..addresses import pci_address
from ..facts import unavailable
from . import values as v

HEAD = re.compile(
    r"\| NVIDIA-SMI (?P<smi>\d[\d.]{0,20}) {1,40}(?:Driver|KMD) Version: {0,9}(?P<driver>\d[\d.]{0,20})"
    r"(?: {1,40}CUDA (?:UMD )?Version: {0,9}(?P<cuda>\d[\d.]{0,9}|N/A|ERR!))?"
)
LINES = 5000
_MIG = "| MIG devices:"
_PROCESSES = "| Processes:"
_MODES = {"On": True, "Off": False}


def read(text, start):
    """The facts of the box whose head is at ``start``: a dict. Raises ValueError where no GPU is in it."""
    head = HEAD.match(text, start)
    lines = text[start : start + LINES * 200].split("\n")[1:LINES]
    gpus, instances, processes = [], {}, {}
    part, whole = "gpus", False
    for line in lines:
        line = line.strip()
        if line.startswith(_MIG):
            part = "mig"
        elif line.startswith(_PROCESSES):
            part, whole = "processes", True
        elif line[:1] not in ("|", "+", ""):
            break
        elif line.startswith("|") and not line.startswith(("|=", "|-", "| GPU ")):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            _READERS[part](cells, gpus, instances, processes)
    if not gpus:
        raise ValueError("it breaks off before the first GPU")
    for gpu in gpus:
        gpu.update(_lists(gpu, whole, instances, processes))
        gpu.pop("_row")
    facts = {"form": "table", "driver_version": head.group("driver"), "gpus": gpus}
    if head.group("cuda"):
        facts["cuda_version"] = v.convert(head.group("cuda"), v.words)
    return facts


def _gpu_row(cells, gpus, _instances, _processes):
    if len(cells) != 3:
        return
    first = cells[0].split()
    if len(first) > 2 and first[0].isdecimal() and ":" in cells[1]:
        gpus.append(_begin(first, cells))
    elif gpus and gpus[-1]["_row"] == 1:
        gpus[-1].update(_readings(cells), _row=2)
    elif gpus and gpus[-1]["_row"] == 2 and not cells[0]:
        gpus[-1].update(_mig(cells[2]), _row=3)


def _begin(first, cells):
    gpu = {"_row": 1, "index": int(first[0])}
    name = " ".join(first[1:-1])
    if not name.endswith("..."):
        gpu["name"] = v.convert(name, v.words)
    if first[-1] in _MODES:
        gpu["persistence"] = _MODES[first[-1]]
    elif first[-1] in ("WDDM", "TCC", "MCDM"):
        gpu["driver_model"] = first[-1]
    try:
        gpu["pci_address"] = pci_address(cells[1].split()[0])
    except (ValueError, IndexError):
        gpu["pci_address"] = v.not_understood(cells[1])
    gpu.update(_ecc(cells[2]))
    return gpu


def _ecc(cell):
    if cell in _MODES:
        return {"ecc_enabled": _MODES[cell]}  # of a GPU with MIG its instances have the numbers
    count = v.convert(cell, v.count)
    enabled = count if isinstance(count, dict) else True
    return {"ecc_enabled": enabled, "ecc_uncorrected_volatile": count}


def _readings(cells):
    """ "30%   35C    P8    20W / 250W", "596MiB / 16376MiB", "0%   E. Process" """
    words = cells[0].split()
    power = "".join(words[3:]).partition("/")
    memory = cells[1].replace(" ", "").partition("/")
    use = cells[2].split(None, 1)
    facts = {
        "fan_percent": (words[0:1], v.count),
        "temperature_c": (words[1:2], v.integer),
        "performance_state": (words[2:3], v.words),
        "power_draw_w": ([power[0]], v.watts),
        "power_limit_w": ([power[2]], v.watts),
        "memory_used_mib": ([memory[0]], v.mebibytes),
        "memory_total_mib": ([memory[2]], v.mebibytes),
        "utilization_percent": (use[0:1], v.count),
        "compute_mode": (use[1:2], _compute_mode),
    }
    return {
        name: v.convert(said[0], converter)
        for name, (said, converter) in facts.items()
        if said and said[0]
    }


def _compute_mode(text):
    return {"E. Process": "Exclusive_Process", "E. Thread": "Exclusive_Thread"}.get(text, text)


def _mig(cell):
    """ "Disabled", "Enabled*" (it becomes another one at the next reset)"""
    enabled = v.convert(cell.rstrip("*"), v.flag)
    pending = not enabled if cell.endswith("*") and isinstance(enabled, bool) else enabled
    return {"mig_enabled": enabled, "mig_pending": pending}


def _instance_row(cells, _gpus, instances, _processes):
    numbers = cells[0].split()
    if len(numbers) != 4 or not all(number.isdecimal() for number in numbers):
        return
    instance = {"gpu_instance": int(numbers[1]), "compute_instance": int(numbers[2])}
    memory = cells[1].replace(" ", "").partition("/")[2] if len(cells) > 1 else ""
    units = cells[2].split()[:1] if len(cells) > 2 else []
    if memory:
        instance["memory_mib"] = v.convert(memory, v.mebibytes)
    if units:
        instance["multiprocessors"] = v.convert(units[0], v.count)
    instances.setdefault(int(numbers[0]), []).append(instance)


def _process_row(cells, _gpus, _instances, processes):
    """ "0   N/A  N/A    2165    C+G   /usr/bin/kwin_wayland    25MiB", before MIG without its two columns"""
    words = cells[0].split()
    number = next((n for n, word in enumerate(words[1:4], 1) if word.isdecimal()), None)
    if len(words) < 4 or not words[0].isdecimal() or number is None:
        return
    if number != 3 and words[1:3] != ["N/A", "N/A"] and len(words) > 6 and words[3].isdecimal():
        number = 3  # of a MIG instance, whose ids are numbers
    process = {"pid": int(words[number]), "kind": words[number + 1]}
    if len(words) > number + 3:
        process["memory_mib"] = v.convert(words[-1], v.mebibytes)
        process["name"] = words[number + 2][:1000]
    processes.setdefault(int(words[0]), []).append(process)


_READERS = {"gpus": _gpu_row, "mig": _instance_row, "processes": _process_row}


def _lists(gpu, whole, instances, processes):
    """The lists; where the box was cut before its last part, they may lack something."""
    if not whole:
        missing = unavailable("not-collected", "the document ends before its processes")
        return {"mig_instances": missing, "processes": missing}
    enabled = gpu.get("mig_enabled", unavailable("not-collected"))
    found = instances.get(gpu["index"], [])
    return {
        "mig_instances": found if found or isinstance(enabled, bool) else enabled,
        "processes": processes.get(gpu["index"], []),
    }

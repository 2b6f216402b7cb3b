"""What comes in the middle of a run: between two questions, something breaks."""

from __future__ import annotations

from world.contents import Library
from world.environments import SITE
from world.machine import LIB, Machine, module_on_disk

from ..changes import Change, answer, both, deadline, files, machine
from ..model import Collection
from .libraries import _tf

FAULTS = Collection("in the middle of a run")
add = FAULTS.add


def _lost_after(m: Machine, index: int, calls: int) -> None:
    """From that call on NVML has lost a GPU."""
    answer(index, f"* * 15 after={calls}")(m)
    m.nvml_first.append(f"0 nvmlDeviceGetHandleByIndex_v2 {index} 15 after={calls}")


add(
    "GPU 3 is lost after 420 calls",
    lambda m: _lost_after(m, 3, 420),
    ("GPU-001", "GPU 3\\b", "lost", "reboot|reset|power"),
    also="GPU-001|GPU-0\\d\\d|DRV-00[1367]|PCI-004",
)
add(
    "NVML hangs at GPU 2",
    both(answer(2, "nvmlDeviceGetPowerUsage - 0 hang"), deadline(4)),
    ("GPU-001", r"GPU 2\b", r"hang|answer|time|deadline", r"reboot|reset|dmesg|gdb|stack|log"),
    also="DRV-00[1367]",
)
add(
    "NVML crashes at GPU 6",
    answer(6, "nvmlDeviceGetTemperature * 0 crash"),
    (
        "GPU-001",
        r"GPU 6\b",
        r"signal|crash|died|SIGSEGV",
        r"install|reboot|log|report|version|dmesg",
    ),
    also="DRV-00[136]",
)
HANG, DIES = r"hang|answer|time|within", r"signal|crash|died|SIGSEGV"
add(
    "nvidia-smi hangs",
    both(machine(smi_script="sleep 6000"), deadline(4)),
    ("DRV-003|DRV-010", r"nvidia-smi|", HANG, r"reboot|dmesg|log|stack|kill|report"),
    also="DRV-00[36]",
)
add(
    "nvidia-smi dies in the middle of its document",
    machine(
        smi_script='while read -r line; do echo "$line"; case $line in *fb_memory*) kill -SEGV $$;; esac; '
        "done </.made/smi"
    ),
    (
        "DRV-003",
        r"nvidia-smi|",
        r"signal|SIGSEGV|died|half|kill",
        r"install|reboot|log|report|version|dmesg|nvidia-smi",
    ),
)
add(
    "nvidia-smi's document ends in the middle",
    machine(
        smi_script='n=0\nwhile read -r line && [ $n -lt 90 ]; do echo "$line"; n=$((n+1)); done </.made/smi'
    ),
    ("DRV-011", r"nvidia-smi", r"half|cut|ends", r"nvidia-smi"),
    base="rtx4090",
)
add(
    "cuInit hangs",
    both(machine(cuda_init="0 hang"), deadline(4)),
    ("DRV-004|DRV-010", r"", rf"cuInit|{HANG}", r"reboot|dmesg|log|reset|stack|report|uvm"),
    also="DRV-007",
)
add(
    "cuInit crashes",
    machine(cuda_init="0 crash"),
    ("DRV-004|DRV-005", r"", DIES, r"install|reboot|log|report|version|dmesg|LD_LIBRARY_PATH"),
    base="rtx4090",
    also="DRV-007",
)


def _updated_meanwhile(m: Machine) -> None:
    """An update is under way while the module goes on: NVML has answered, and nvidia-smi does so no more."""
    new = "570.124.06"
    for name, source in (("libcuda", "cuda"), ("libnvidia-ml", "nvml")):
        m.write(f"{LIB}/{name}.so.{new}", Library(source))
    m.files |= dict.fromkeys(module_on_disk(m.kernel, m.driver, m.flavour))
    m.files |= module_on_disk(m.kernel, new, m.flavour)
    m.smi_out = f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {new[:7]}\n"
    m.smi_code = 18
    m.packages = {name: version.replace("570.86.15", new) for name, version in m.packages.items()}


add(
    "the driver is updated while it is looked at",
    _updated_meanwhile,
    (
        "DRV-00[23]|KRN-00[45]|KRN-012",
        r"",
        r"570\.124|mismatch",
        r"reboot|modprobe -r|rmmod|reload",
    ),
    also="DRV-00[236]|KRN-00[45]|KRN-01[12]",
)
# A file of a wheel goes away as soon as the target is looked at: something else uninstalls it. With the
# target's first Python, so that it is gone for all probes, whatever their order.
CUFFT = f"{SITE}/nvidia/cufft/lib/libcufft.so.11"
UNINSTALL = f"import os; os.path.exists({CUFFT!r}) and os.rename({CUFFT!r}, {CUFFT!r} + '.gone')\n"
add(
    "a library vanishes while TensorFlow is imported",
    both(_tf(), files({f"{SITE}/uninstalling.pth": UNINSTALL})),
    (
        "PKG-001|LIB-00[68]|FRM-002|FRM-00[17]",
        r"",
        r"libcufft\.so\.11|cufft",
        r"reinstall|nvidia-cufft-cu12|and-cuda",
    ),
    also="PKG-001|LIB-00[68]|FRM-002",
)


def _importing(does: str) -> Change:
    """TensorFlow does this before it imports anything."""
    file = f"{SITE}/tensorflow/__init__.py"

    def apply(m: Machine) -> None:
        _tf()(m)
        m.write(file, str(m.files[file]).replace("\nimport ctypes", f"{does}\nimport ctypes", 1))

    return apply


add(
    "importing TensorFlow never ends",
    both(_importing("\nimport time\ntime.sleep(600)"), deadline(5)),
    (
        "FRM-00[17]",
        r"",
        r"import|5 s|time|within|end",
        r"python|import|py-spy|network|deadline|look",
    ),
    base="t4",
)
add(
    "importing TensorFlow dies of an illegal instruction",
    _importing("\nimport os, signal\nos.kill(os.getpid(), signal.SIGILL)"),
    ("FRM-00[17]|HOST-002", r"", r"SIGILL|illegal|signal", r"AVX|CPU|build|install|conda"),
    base="rtx4090",
)

"""What comes in the middle of a run: between two questions, something breaks."""

from __future__ import annotations

from processes import stretched
from world import environments as env
from world.contents import Library
from world.machine import LIB, Machine, module_on_disk

from ..model import Collection
from .libraries import _tf

FAULTS = Collection("in the middle of a run")
add = FAULTS.add
LOST = "GPU-001|GPU-0\\d\\d|DRV-00[1367]|PCI-004"


def _lost_after(m: Machine, index: int, calls: int) -> None:
    """From that call on NVML has lost a GPU."""
    handle = m.gpu(index).handle
    m.nvml_first += [
        f"{handle} * * 15 after={calls}",
        f"0 nvmlDeviceGetHandleByIndex_v2 {index} 15 after={calls}",
    ]


add(
    "GPU 3 is lost after 420 calls",
    lambda m: _lost_after(m, 3, 420),
    ("GPU-001", "GPU 3\\b", "lost", "reboot|reset|power"),
    also=LOST,
)


def _nvml_hangs(m: Machine) -> None:
    m.nvml_first.append(f"{m.gpu(2).handle} nvmlDeviceGetPowerUsage - 0 hang")
    m.arguments += ["--deadline", f"{stretched(4):.0f}"]


add(
    "NVML hangs at GPU 2",
    _nvml_hangs,
    (
        "GPU-001",
        r"GPU 2\b",
        r"hang|answer|time|deadline",
        r"reboot|reset|dmesg|gdb|stack|log",
    ),
    also="DRV-00[1367]",
)


def _nvml_crashes(m: Machine) -> None:
    m.nvml_first.append(f"{m.gpu(6).handle} nvmlDeviceGetTemperature * 0 crash")


add(
    "NVML crashes at GPU 6",
    _nvml_crashes,
    (
        "GPU-001",
        r"GPU 6\b",
        r"signal|crash|died|SIGSEGV",
        r"install|reboot|log|report|version|dmesg",
    ),
    also="DRV-00[136]",
)


def _smi_hangs(m: Machine) -> None:
    m.smi_script = "sleep 6000"
    m.arguments += ["--deadline", f"{stretched(4):.0f}"]


add(
    "nvidia-smi hangs",
    _smi_hangs,
    (
        "DRV-003|DRV-010",
        r"nvidia-smi|",
        r"hang|answer|time|within",
        r"reboot|dmesg|log|stack|kill|report",
    ),
    also="DRV-00[36]",
)
add(
    "nvidia-smi dies in the middle of its document",
    lambda m: setattr(
        m,
        "smi_script",
        'while read -r line; do echo "$line"; case $line in *fb_memory*) kill -SEGV $$;; esac; '
        "done </.made/smi",
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
    lambda m: setattr(
        m,
        "smi_script",
        'n=0\nwhile read -r line && [ $n -lt 90 ]; do echo "$line"; n=$((n+1)); done </.made/smi',
    ),
    ("DRV-011", r"nvidia-smi", r"half|cut|ends", r"nvidia-smi"),
    base="rtx4090",
)


def _cuda_hangs(m: Machine) -> None:
    m.cuda_init = "0 hang"
    m.arguments += ["--deadline", f"{stretched(4):.0f}"]


add(
    "cuInit hangs",
    _cuda_hangs,
    (
        "DRV-004|DRV-010",
        r"",
        r"cuInit|hang|answer|time|within",
        r"reboot|dmesg|log|reset|stack|report|uvm",
    ),
    also="DRV-007",
)
add(
    "cuInit crashes",
    lambda m: setattr(m, "cuda_init", "0 crash"),
    (
        "DRV-004|DRV-005",
        r"",
        r"signal|crash|died|SIGSEGV",
        r"install|reboot|log|report|version|dmesg|LD_LIBRARY_PATH",
    ),
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


def _vanishing(m: Machine) -> None:
    """A file of a wheel goes away as soon as the target is looked at: something else uninstalls it.

    With the target's first Python, so that it is gone for all probes, whatever their order.
    """
    _tf()(m)
    library = f"{env.SITE}/nvidia/cufft/lib/libcufft.so.11"
    m.write(
        f"{env.SITE}/uninstalling.pth",
        f"import os; os.path.exists({library!r}) and os.rename({library!r}, {library!r} + '.gone')\n",
    )


add(
    "a library vanishes while TensorFlow is imported",
    _vanishing,
    (
        "PKG-001|LIB-00[68]|FRM-002|FRM-00[17]",
        r"",
        r"libcufft\.so\.11|cufft",
        r"reinstall|nvidia-cufft-cu12|and-cuda",
    ),
    also="PKG-001|LIB-00[68]|FRM-002",
)


def _import_hangs(m: Machine) -> None:
    _tf()(m)
    site = env.SITE
    text = str(m.files[f"{site}/tensorflow/__init__.py"])
    m.write(
        f"{site}/tensorflow/__init__.py",
        text.replace("\nimport ctypes", "\nimport time\ntime.sleep(600)\nimport ctypes", 1),
    )
    m.arguments += ["--deadline", f"{stretched(5):.0f}"]


add(
    "importing TensorFlow never ends",
    _import_hangs,
    (
        "FRM-00[17]",
        r"",
        r"import|5 s|time|within|end",
        r"python|import|py-spy|network|deadline|look",
    ),
    base="t4",
)


def _import_dies(m: Machine) -> None:
    _tf()(m)
    site = env.SITE
    text = str(m.files[f"{site}/tensorflow/__init__.py"])
    m.write(
        f"{site}/tensorflow/__init__.py",
        text.replace(
            "\nimport ctypes",
            "\nimport os, signal\nos.kill(os.getpid(), signal.SIGILL)\nimport ctypes",
            1,
        ),
    )


add(
    "importing TensorFlow dies of an illegal instruction",
    _import_dies,
    ("FRM-00[17]|HOST-002", r"", r"SIGILL|illegal|signal", r"AVX|CPU|build|install|conda"),
    base="rtx4090",
)

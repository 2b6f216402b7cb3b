"""Two faults at once: both must be named, or the cause before what it hides."""

from __future__ import annotations

from world.gpus import busy
from world.machine import Machine

from ..changes import both, gpu, machine
from ..model import Collection
from .containers import docker
from .driver import mismatch, without_module, without_uvm
from .fabric import down, no_manager
from .kernel_log import RESET, RMA
from .libraries import _tf, _without
from .pcie import lost

FAULTS = Collection("pairs")
add = FAULTS.add


def _hot(m: Machine, index: int) -> None:
    hot = {"reasons": ["hw_slowdown", "hw_thermal_slowdown"], "temperature": 88, "margin": -1}
    busy(m.gpu(index), clock_sm=345, pcie=m.gpu(index).pcie_max, **hot)


ALSO = "GPU-00[1-9]|GPU-01\\d|GPU-02\\d|GPU-03\\d|KRN-008|DRV-00[67]|PCI-00[58]"
add(
    "GPU 1 is lost, and GPU 6 has an uncorrectable error",
    both(lambda m: lost(m, 1), gpu(6, dram_uncorrected=(3, 3))),
    ("GPU-001|PCI-004", r"GPU 1\b", r"lost|answer|off the", r"reboot|power|reset"),
    ("GPU-002", r"GPU 6\b", r"\b3\b", rf"{RESET}|{RMA}"),
    also=ALSO,
)
add(
    "heat on GPU 2, two NVLinks down on GPU 7",
    both(lambda m: _hot(m, 2), lambda m: down(m, 7, 0, 9)),
    ("GPU-00[78]", r"GPU 2\b", r"therm|heat|hot", r"cool|fan|air|heat"),
    ("GPU-013|GPU-02[1-6]", r"GPU 7\b", r"\b2\b|16", rf"{RESET}|{RMA}"),
    also=ALSO,
)
add(
    "no uvm, and docker without the toolkit",
    both(without_uvm, lambda m: docker(m, toolkit=None, Runtimes={"runc": {}})),
    ("KRN-007", r"", r"nvidia.uvm", r"modprobe"),
    ("CTR-002", r"", r"toolkit|nvidia", r"nvidia-container-toolkit"),
    base="rtx4090",
)
add(
    "a wheel is missing, and TF32 is switched off",
    _tf(wheels=_without("cusparse"), NVIDIA_TF32_OVERRIDE="0"),
    ("FRM-002|LIB-008|PKG-0(13|15|09)", r"", r"cusparse", r"nvidia-cusparse-cu12|and-cuda"),
    ("ENV-004", r"", r"NVIDIA_TF32_OVERRIDE", r"unset"),
    also="FRM-002|LIB-008|PKG-0(13|15|09)",
)
# ---- one hides the other
add(
    "no module, which hides that the fabric manager is missing",
    both(no_manager, without_module),
    ("KRN-001", r"", r"not loaded", r"modprobe"),
    ("KRN-011", r"", r"fabric", r"fabric"),
    order=True,
    also="PCI-003",
)
add(
    "libraries of another version, which hides a hot GPU",
    both(lambda m: _hot(m, 3), lambda m: mismatch(m, "570.124.06", "570.124.06")),
    ("DRV-002", r"", r"570\.124\.06", r"reboot|modprobe -r"),
    ("GPU-00[78]", r"", r"", r""),
    order=True,
    also="KRN-012",
)
add(
    "no fabric manager, which hides that TensorFlow lacks cuDNN",
    both(no_manager, _tf(wheels=_without("cudnn"))),
    ("KRN-011", r"", r"fabric.?manager", r"systemctl.*nvidia-fabricmanager"),
    ("LIB-0\\d\\d|PKG-0\\d\\d|FRM-002", r"", r"", r""),
    order=True,
)
add(
    "Secure Boot refuses the module, and nouveau holds the GPUs",
    both(
        without_module,
        lambda m: m.say("Loading of module with unavailable key is rejected"),
        machine(secure_boot=True, modules=["nouveau"]),
        lambda m: [m.of(n).files.update(driver="nouveau") for n in range(2)],
    ),
    ("KRN-002|PCI-002", r"", r"reject|nouveau", r"mokutil|blacklist"),
    ("KRN-002|PCI-002|KRN-001", r"", r"", r""),
    base="rtx4090",
    order=True,
)

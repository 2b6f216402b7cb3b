"""What the driver's own error codes mean: NVML's, nvidia-smi's and the CUDA driver API's."""

from __future__ import annotations

from typing import NamedTuple


class ErrorCode(NamedTuple):
    """One error code: its name, what it does to the user, and what to do where nothing else is known."""

    name: str
    meaning: str  # completes "NVML does not start: ...", "cuInit fails: ..."
    remedy: str
    commands: tuple[str, ...] = ()


_HOLDERS = "sudo fuser -v /dev/nvidia*"
_REPORT = "sudo nvidia-bug-report.sh"
_LOG = "sudo dmesg | grep -iE 'nvrm|xid|nvidia'"
_RELOAD = "sudo modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia"

# nvmlReturn_t, nvml.h.
NVML = {
    4: ErrorCode(
        "NVML_ERROR_NO_PERMISSION",
        "this user may not open the driver's device nodes",
        "Give the user the nodes' group, or make them accessible by a udev rule.",
        ("ls -l /dev/nvidia*", "sudo usermod -aG video $USER"),
    ),
    8: ErrorCode(
        "NVML_ERROR_INSUFFICIENT_POWER",
        "a GPU's external power cables are not properly attached",
        "Shut the machine down and attach the GPU's power cables.",
    ),
    9: ErrorCode(
        "NVML_ERROR_DRIVER_NOT_LOADED",
        "the nvidia kernel module is not loaded, or its device nodes are missing",
        "Load the module and look for the reason in the kernel's log.",
        ("sudo modprobe nvidia", _LOG),
    ),
    11: ErrorCode(
        "NVML_ERROR_IRQ_ISSUE",
        "the kernel has trouble with a GPU's interrupts",
        "Look at the kernel's log; a reboot, or another slot or firmware setting, may be needed.",
        (_LOG, "grep -i nvidia /proc/interrupts"),
    ),
    12: ErrorCode(
        "NVML_ERROR_LIBRARY_NOT_FOUND",
        "the loader finds no libnvidia-ml.so.1: the driver's user-space part is missing",
        "Install the driver's user-space packages of the loaded module's version.",
        ("ldconfig -p | grep libnvidia-ml",),
    ),
    14: ErrorCode(
        "NVML_ERROR_CORRUPTED_INFOROM",
        "a GPU's infoROM is corrupted",
        "Ask the vendor: the infoROM holds the board's configuration and its error records.",
        ("nvidia-smi",),
    ),
    15: ErrorCode(
        "NVML_ERROR_GPU_IS_LOST",
        "a GPU has fallen off the bus or does not answer any more",
        "Reboot; where it happens again, reseat or replace the GPU.",
        (_LOG, _REPORT, "sudo reboot"),
    ),
    16: ErrorCode(
        "NVML_ERROR_RESET_REQUIRED",
        "a GPU must be reset before it can be used again",
        "Stop what uses the GPU and reset it.",
        (_LOG, _REPORT, "sudo nvidia-smi --gpu-reset"),
    ),
    17: ErrorCode(
        "NVML_ERROR_OPERATING_SYSTEM",
        "the operating system or a cgroup blocks the GPU's device nodes",
        "Look at the cgroup's device rules and SELinux; recreate the container where this is one.",
        ("ls -l /dev/nvidia*",),
    ),
    18: ErrorCode(
        "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        "the loaded kernel module and the driver's libraries are of different versions",
        "Reload the kernel modules, or reboot.",
        (_HOLDERS, _RELOAD, "sudo reboot"),
    ),
    999: ErrorCode(
        "NVML_ERROR_UNKNOWN",
        "the driver gives an internal error",
        "Look at the kernel's log, then reload the driver or reboot.",
        (_LOG, "sudo reboot"),
    ),
}

# nvidia-smi(1), "RETURN VALUE"; 18 is NVML's code, which nvidia-smi passes on.
NVIDIA_SMI = {
    2: "an argument or flag is invalid",
    3: "the operation is not available on the device",
    4: "no permission to access the device",
    6: "a query found no object",
    8: "a device's external power cables are not properly attached",
    9: "the NVIDIA driver is not loaded",
    10: "the kernel detected an interrupt issue with a GPU",
    12: "the NVML library was not found",
    13: "the local NVML does not have this function",
    14: "a GPU's infoROM is corrupted",
    15: "a GPU has fallen off the bus or does not answer any more",
    18: "the module and the libraries are of different versions",
    255: "an internal driver error",
}
# Of those, the ones that tell of the machine, even where NVML itself answers.
NVIDIA_SMI_FAULTS = frozenset({8, 10, 15, 18})

# CUresult, cuda.h; 35 is the runtime's, which some tools pass on for the driver's.
CUDA = {
    2: ErrorCode(
        "CUDA_ERROR_OUT_OF_MEMORY",
        "there is no memory left for CUDA's own structures",
        "Free memory on the host and on the GPUs.",
        ("nvidia-smi", "free -h"),
    ),
    3: ErrorCode(
        "CUDA_ERROR_NOT_INITIALIZED",
        "the driver could not be initialised",
        "Look at the kernel's log, then reload the driver or reboot.",
        (_LOG, "sudo reboot"),
    ),
    34: ErrorCode(
        "CUDA_ERROR_STUB_LIBRARY",
        "the loader found the stub that is meant for linking, not the driver's libcuda",
        "Take the stubs directory out of the loader's path.",
        ("ldconfig -p | grep libcuda", "echo $LD_LIBRARY_PATH"),
    ),
    35: ErrorCode(
        "cudaErrorInsufficientDriver",
        "the driver is older than the CUDA that asks for it",
        "Install a newer driver, or a framework built for an older CUDA.",
    ),
    36: ErrorCode(
        "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
        "the driver is older than the CUDA that asks for it",
        "Install a newer driver, or a framework built for an older CUDA.",
    ),
    46: ErrorCode(
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "the GPU is busy in exclusive mode, or prohibits computing",
        "Look at the compute mode, and set it back where nobody needs it.",
        ("nvidia-smi --query-gpu=index,compute_mode --format=csv", "sudo nvidia-smi -c DEFAULT"),
    ),
    100: ErrorCode(
        "CUDA_ERROR_NO_DEVICE",
        "CUDA finds no device, even without CUDA_VISIBLE_DEVICES",
        "See whether this user may open the GPUs' device nodes, and look at the kernel's log.",
        ("ls -l /dev/nvidia*", "nvidia-smi -L", _LOG),
    ),
    101: ErrorCode(
        "CUDA_ERROR_INVALID_DEVICE",
        "the driver lists a device that CUDA cannot use",
        "Look at the MIG configuration and at the kernel's log.",
        ("nvidia-smi -L", _LOG),
    ),
    214: ErrorCode(
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "a GPU met an uncorrectable memory error",
        "Stop what uses the GPU and reset it.",
        (_LOG, _REPORT, "sudo nvidia-smi --gpu-reset"),
    ),
    304: ErrorCode(
        "CUDA_ERROR_OPERATING_SYSTEM",
        "the operating system refused what CUDA asked of it",
        "Look at the limits on virtual memory, at the device nodes, and at the kernel's log.",
        ("ulimit -v", "ls -l /dev/nvidia*", _LOG),
    ),
    802: ErrorCode(
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the machine's GPU fabric is not set up, so no CUDA program starts",
        "Start the fabric manager of exactly the driver's version.",
        (
            "sudo systemctl enable --now nvidia-fabricmanager",
            "systemctl status nvidia-fabricmanager",
        ),
    ),
    803: ErrorCode(
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "this libcuda and the loaded kernel module do not go together",
        "Take the other libcuda off the loader's path, or reboot after a driver upgrade.",
        ("ldconfig -p | grep libcuda.so.1", "cat /proc/driver/nvidia/version"),
    ),
    804: ErrorCode(
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "a forward-compatibility libcuda is in use, which these GPUs do not support",
        "Take the compat directory off the loader's path and upgrade the driver instead: forward"
        " compatibility is for data-centre GPUs.",
        ("ldconfig -p | grep libcuda.so.1", "echo $LD_LIBRARY_PATH"),
    ),
    805: ErrorCode(
        "CUDA_ERROR_MPS_CONNECTION_FAILED",
        "the MPS server that CUDA programs go through cannot be reached",
        "Stop MPS, or start its control daemon again.",
        ("echo quit | sudo nvidia-cuda-mps-control",),
    ),
    806: ErrorCode(
        "CUDA_ERROR_MPS_RPC_FAILURE",
        "the MPS server that CUDA programs go through broke off",
        "Stop MPS, or start its control daemon again.",
        ("echo quit | sudo nvidia-cuda-mps-control",),
    ),
    807: ErrorCode(
        "CUDA_ERROR_MPS_SERVER_NOT_READY",
        "the MPS server that CUDA programs go through is not ready",
        "Stop MPS, or start its control daemon again.",
        ("echo quit | sudo nvidia-cuda-mps-control",),
    ),
    999: ErrorCode(
        "CUDA_ERROR_UNKNOWN",
        "the driver gives an internal error, most often for want of the nvidia-uvm module",
        "Load nvidia-uvm afresh, or reboot: it is often lost after a suspend.",
        (_HOLDERS, "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm", "sudo reboot"),
    ),
}

"""Checks on the board itself: its InfoROM and its firmware."""

from __future__ import annotations

from ...data.versions import parse_version
from ..driver_state import DATA_CENTRE_BRANDS, REBOOT, REPORT, driver_version, on_windows, on_wsl
from ..gpus import errors_of, found, gpu_check
from ..nvidia_devices import known_kernel
from ..peer_groups import is_vgpu
from ..reading import Gpu, Maybe, Skip, SnapshotView, Unavailable, known, need
from ..system_commands import on_system
from ..verdicts import Passed, Remedy, Verdicts, fail, warn, word

CORRUPT = fail(
    "inforom-corrupt",
    "has a corrupt InfoROM",
    "The InfoROM is corrupt: the board's configuration and its records of memory errors and repairs cannot"
    " be relied on.",
    "Switch the machine off and on again; if it stays corrupt, the vendor has to rewrite the InfoROM or"
    " replace the board.",
    "nvidia-smi -q -i {gpu}",
    REPORT,
)
UNREADABLE = warn(
    "inforom-unreadable",
    "has an InfoROM that cannot be read",
    "The InfoROM cannot be read: the board's records of memory errors and repairs are missing.",
    "Look in the kernel's log; switch the machine off and on again, and ask the vendor if that does not"
    " help.",
    "sudo dmesg | grep -iE 'nvrm|xid|inforom'",
    "nvidia-smi -q -i {gpu}",
)


@gpu_check(
    "GPU-032",
    title="The InfoROM is readable and whole",
    causes=(CORRUPT, UNREADABLE),
    about="The InfoROM is the board's own small memory: its configuration, and the ECC errors, retired"
    " pages and remapped rows of its life. If its checksums are wrong (nvidia-smi warns 'infoROM is"
    " corrupted'), those records and the repairs that rest on them are lost.",
    sources=["nvml.h, nvmlDeviceValidateInforom, NVML_ERROR_CORRUPTED_INFOROM"],
)
def inforom_is_whole(view: SnapshotView, gpu: Gpu) -> Verdicts:
    corrupt = errors_of(gpu, ("corrupted inforom",))
    unreadable = [
        name
        for name in ("inforom_valid", "inforom")
        if isinstance(fact := getattr(gpu, name), Unavailable) and fact.unavailable == "error"
    ]
    if known(gpu.inforom_valid) is False or corrupt:
        yield found(view, CORRUPT, gpu, " ".join(corrupt[:3]) or "inforom_valid")
    elif (unreadable and known(gpu.name) is not None) or _lacks_inforom(view, gpu):
        yield found(view, UNREADABLE, gpu, " ".join(unreadable) or "inforom")
    else:
        if not known(gpu.inforom_valid):
            need(gpu.inforom, "the InfoROM")
        yield Passed("the InfoROM is readable")


def _lacks_inforom(view: SnapshotView, gpu: Gpu) -> bool:
    """Whether the driver shows none (nvidia-smi: N/A) of a data-centre board, which has one."""
    return (
        known(gpu.brand) in DATA_CENTRE_BRANDS
        and _is_na(gpu.inforom)
        and known(gpu.inforom_valid) is None
        and known(gpu.virtualization) in ("None", "Pass-Through")
        and bool(known(gpu.memory_total_mib))
        and not (on_windows(view) or on_wsl(view))
    )


def _is_na(fact: Maybe[str]) -> bool:
    """Whether the driver was asked and has none (nvidia-smi: N/A)."""
    return isinstance(fact, Unavailable) and (fact.unavailable, fact.detail) == (
        "not-supported",
        "",
    )


# Whose driver needs it, and which have it by default from that driver on.
_GSP_ALWAYS = ("Hopper", "Blackwell", "Rubin")
_GSP_SINCE_TURING = ("Turing", "Ampere", "Ada Lovelace")
_GSP_DEFAULT_DRIVER = "580"
NO_GSP = warn(
    "gsp-firmware-off",
    "runs without GSP firmware",
    "The GPU runs without its GSP firmware, which is the default for it: the driver is in a mode that NVIDIA"
    " does not test for this GPU.",
)


@gpu_check(
    "GPU-033",
    title="GSP firmware runs where it is the default",
    causes=(NO_GSP,),
    about="Since Turing a processor on the GPU (GSP) does initialisation and management, and the driver"
    " runs its firmware by default on the GPUs that are made for it; NVIDIA does not test the other mode"
    " for them. It is off if somebody switched it off (NVreg_EnableGpuFirmware=0), or the firmware's files"
    " are missing.",
    sources=["NVIDIA Linux driver README, GSP Firmware; nvml.h, nvmlDeviceGetGspFirmwareMode"],
    follows=("GPU-001",),
)
def gsp_runs(view: SnapshotView, gpu: Gpu) -> Verdicts:
    if on_windows(view) or on_wsl(view):
        raise Skip("the driver is Windows' own")
    if is_vgpu(gpu):
        raise Skip("the host of a virtual GPU runs the firmware")
    version, enabled = known(gpu.gsp_firmware), known(gpu.gsp_enabled)
    if version is not None or enabled:
        yield Passed(f"GSP firmware {version or 'runs'}")
        return
    if enabled is None and not _is_na(gpu.gsp_firmware):
        need(gpu.gsp_firmware, "the GSP firmware")
    default = known(gpu.gsp_default)
    if not (_is_default(view, gpu) if default is None else default):
        raise Skip("this GPU and driver do without GSP firmware")
    kernel = known_kernel(view)
    parameter = None if kernel is None else kernel.driver_parameters.get("EnableGpuFirmware")
    shown = [] if parameter is None else [f"EnableGpuFirmware: {parameter}"]
    yield found(
        view,
        NO_GSP,
        gpu,
        "gsp_enabled gsp_default architecture",
        evidence=[view.evidence("machine.kernel.driver_parameters", one) for one in shown],
        advice=Remedy(
            "Find where it is switched off, remove that, rebuild the initramfs and reboot; otherwise check"
            " whether the firmware's files are installed.",
            [
                "grep -rn NVreg_EnableGpuFirmware /etc/modprobe.d /usr/lib/modprobe.d /proc/cmdline",
                f"ls /lib/firmware/nvidia/{word(known(driver_version(view)[0]) or '*')}",
                *on_system(view, "initramfs"),
                REBOOT,
            ],
        ),
    )


def _is_default(view: SnapshotView, gpu: Gpu) -> bool:
    """Whether a GPU that shows no more than the version (N/A) should run it."""
    made = known(gpu.architecture) or ""
    if known(gpu.gsp_enabled) is not None or not known(gpu.memory_total_mib):
        return False  # chips that share the machine's memory (Jetson) are unknown
    driver = parse_version(known(driver_version(view)[0]) or "")
    since = parse_version(_GSP_DEFAULT_DRIVER)
    newer = driver is not None and since is not None and driver >= since
    return made in _GSP_ALWAYS or (newer and made in _GSP_SINCE_TURING)

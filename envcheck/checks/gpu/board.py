"""Checks on the board itself: its InfoROM and its firmware."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...data.versions import parse_version
from ...facts.base import Maybe, Unavailable, known
from ...facts.gpu import Gpu
from ...facts.missing import Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Passed, Remedy, Verdict
from ...findings.shell import word
from ..driver_state import DATA_CENTRE_BRANDS, NO_GPUS, REBOOT, driver_version, on_windows, on_wsl
from ..gpus import about_errors, address_of, errors_of, finding, judge_gpus
from ..nvidia_devices import known_kernel
from ..registry import check
from ..system_commands import on_system

_CORRUPT = "corrupted inforom"


@check(
    "GPU-032",
    title="The InfoROM is readable and whole",
    problem="has a corrupt InfoROM",
    about="The InfoROM is the board's own small memory: its configuration, and the ECC errors, retired pages"
    " and remapped rows of its life. Where its checksums are wrong (nvidia-smi warns 'infoROM is"
    " corrupted'), those records and the repairs that rest on them are lost: a failure. One that cannot be"
    " read is a warning, and so is a data-centre board that tells of none.",
    sources=(
        "nvml.h, nvmlDeviceValidateInforom, NVML_ERROR_CORRUPTED_INFOROM",
        "nvidia-smi(1), RETURN VALUE",
    ),
    follows=NO_GPUS,
)
def inforom_is_whole(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _inforom(view, gpu))


def _inforom(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    said = errors_of(gpu, (_CORRUPT,))
    unreadable = [
        name
        for name in ("inforom_valid", "inforom")
        if isinstance(fact := getattr(gpu, name), Unavailable) and fact.unavailable == "error"
    ]
    if known(gpu.inforom_valid) is False or said:
        yield about_errors(
            view,
            gpu,
            "fail",
            "The InfoROM is corrupt: the board's configuration and its records of memory errors and"
            " repairs are"
            " not to be relied on.",
            said or ["inforom_valid"],
            Remedy(
                "Switch the machine off and on again; where it stays corrupt, the vendor has to write the"
                " InfoROM anew, or to replace the board.",
                [f"nvidia-smi -q -i {address_of(gpu)}", "sudo nvidia-bug-report.sh"],
            ),
        )
    elif (unreadable and known(gpu.name) is not None) or _lacks_inforom(view, gpu):
        found = about_errors(
            view,
            gpu,
            "warn",
            "The InfoROM cannot be read: what the board knows of its memory errors and repairs is missing.",
            unreadable or ["inforom"],
            Remedy(
                "Look in the kernel's log; switch the machine off and on again, and ask the vendor where it"
                " stays.",
                ["sudo dmesg | grep -iE 'nvrm|xid|inforom'", f"nvidia-smi -q -i {address_of(gpu)}"],
            ),
        )
        yield msgspec.structs.replace(found, headline="has an InfoROM that cannot be read")
    else:
        if not known(gpu.inforom_valid):
            need(gpu.inforom, "the InfoROM")
        yield Passed("the InfoROM is readable")


def _lacks_inforom(view: SnapshotView, gpu: Gpu) -> bool:
    """Whether a data-centre board, which has one, is told to have none (nvidia-smi: N/A)."""
    return (
        known(gpu.brand) in DATA_CENTRE_BRANDS
        and says_none(gpu.inforom)
        and known(gpu.inforom_valid) is None
        and known(gpu.virtualization) in ("None", "Pass-Through")
        and bool(known(gpu.memory_total_mib))
        and not (on_windows(view) or on_wsl(view))
    )


def says_none(fact: Maybe[str]) -> bool:
    """Whether the driver was asked and has none (nvidia-smi: N/A)."""
    return isinstance(fact, Unavailable) and (fact.unavailable, fact.detail) == (
        "not-supported",
        "",
    )


# Whose driver cannot do without it, and from which driver on all since Turing have it by default.
_GSP_ALWAYS = ("Hopper", "Blackwell", "Rubin")
_GSP_SINCE_TURING = ("Turing", "Ampere", "Ada Lovelace")
_GSP_DEFAULT_DRIVER = "580"


@check(
    "GPU-033",
    title="GSP firmware runs where it is the default",
    problem="runs without GSP firmware",
    about="Since Turing a processor on the GPU (GSP) takes over initialisation and management, and the driver"
    " runs its firmware by default on the GPUs that are made for it. Off where it is the default is a"
    " warning: somebody switched it off (NVreg_EnableGpuFirmware=0), or the firmware's files are missing;"
    " NVIDIA tests and supports the other way. nvidia-smi shows N/A then. Virtual GPUs, Windows and WSL"
    " have none to show.",
    sources=("NVIDIA Linux driver README, GSP Firmware", "nvml.h, nvmlDeviceGetGspFirmwareMode"),
    follows=(*NO_GPUS, "GPU-001"),
)
def gsp_runs(view: SnapshotView) -> Iterator[Verdict]:
    if on_windows(view) or on_wsl(view):
        raise Skip("the driver is Windows' own")
    yield from judge_gpus(view, lambda gpu: _gsp(view, gpu))


def _gsp(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    if (known(gpu.virtualization) or "").lower() == "vgpu":
        raise Skip("the host of a virtual GPU runs the firmware")
    version, enabled = known(gpu.gsp_firmware), known(gpu.gsp_enabled)
    if version is not None or enabled:
        yield Passed(f"GSP firmware {version or 'runs'}")
        return
    if enabled is None and not says_none(gpu.gsp_firmware):
        need(gpu.gsp_firmware, "the GSP firmware")
    default = known(gpu.gsp_default)
    if default is None:
        default = _is_default(view, gpu)
    if not default:
        raise Skip("this GPU and driver do without GSP firmware")
    found = finding(
        view,
        "warn",
        gpu,
        "The GPU runs without its GSP firmware, which is the default for it: the driver is in a mode that"
        " NVIDIA does not test for this GPU.",
        "gsp_enabled gsp_default architecture",
        Remedy(
            "Find where it is switched off, take that out, rebuild the initramfs and reboot; where it is"
            " nowhere, see whether the firmware's files are installed.",
            [
                "grep -rn NVreg_EnableGpuFirmware /etc/modprobe.d /usr/lib/modprobe.d /proc/cmdline",
                f"ls /lib/firmware/nvidia/{word(known(driver_version(view)[0]) or '*')}",
                *on_system(view, "initramfs"),
                REBOOT,
            ],
        ),
    )
    kernel = known_kernel(view)
    parameter = None if kernel is None else kernel.driver_parameters.get("EnableGpuFirmware")
    if parameter is not None:
        found.evidence.append(
            view.evidence("machine.kernel.driver_parameters", f"EnableGpuFirmware: {parameter}")
        )
    yield found


def _is_default(view: SnapshotView, gpu: Gpu) -> bool:
    """Whether a GPU of which only the version is told (N/A) should have one."""
    made = known(gpu.architecture) or ""
    if known(gpu.gsp_enabled) is not None or not known(gpu.memory_total_mib):
        return False  # of chips that share the machine's memory (Jetson) nothing is said
    driver, since = (
        parse_version(known(driver_version(view)[0]) or ""),
        parse_version(_GSP_DEFAULT_DRIVER),
    )
    newer = driver is not None and since is not None and driver >= since
    return made in _GSP_ALWAYS or (newer and made in _GSP_SINCE_TURING)

"""The check on cuInit: the door that every CUDA program goes through."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.base import Unavailable, known
from ...facts.evidence import Evidence
from ...facts.gpu import CudaDriver
from ...facts.kernel import DeviceNode
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ..container_start import lost_gpus
from ..driver_on_disk import driver_files
from ..driver_state import (
    NO_GPUS,
    REBOOT,
    container,
    device_node,
    driver_libraries,
    install_fabric_manager,
    on_wsl,
    service,
)
from ..registry import check
from ..system_commands import in_engine
from .error_codes import CUDA, ErrorCode
from .hang import silent

UVM = "/dev/nvidia-uvm"
WSL_1 = re.compile(r"4\.4\.0-\d+-Microsoft\Z")
USUAL = re.compile(r"/usr/lib(64|/x86_64-linux-gnu|/aarch64-linux-gnu)?\Z")


@check(
    "DRV-004",
    title="CUDA starts (cuInit)",
    problem="CUDA does not start",
    about="Every CUDA program, and so every framework, begins with cuInit in libcuda. nvidia-smi and"
    " NVML do not go through it, so they may be fine where CUDA is not: without the nvidia-uvm module it"
    " returns 999, without a running fabric manager 802, with a libcuda that does not belong to the"
    " loaded module 803 or 804, and where it finds no GPU 100. Judged by what cuInit returned in a"
    " process of its own, without CUDA_VISIBLE_DEVICES; the likely cause is taken from the device nodes,"
    " services and modules.",
    sources=(
        "cuda.h, CUresult",
        "gpu-burn#60; gorgonia/cu#2 (999 without nvidia-uvm)",
        "pytorch#35710 (802 without the fabric manager)",
        "numba#9732; mistral-inference#144 (803, 804)",
    ),
    follows=(
        *(*NO_GPUS, "KRN-006", "KRN-007", "DRV-005", "DRV-009", "DRV-010", "GPU-001", "GPU-011"),
        *("GPU-012", "KRN-009", "KRN-013", "ENV-002", "ENV-009"),
    ),
)
def cuda_starts(view: SnapshotView) -> Iterator[Verdict]:
    probe = view.machine.cuda
    if probe is not None and probe.outcome == "crashed" and "signal" in probe.reason:
        yield _crashed(view, probe.reason, probe.evidence)
        return
    if probe is not None and silent(probe):
        yield _silent(view, probe.reason)
        return
    cuda = facts_of(probe, "libcuda")
    path = cuda.library_path
    if isinstance(path, Unavailable) and path.unavailable == "absent":
        yield _no_libcuda(view, cuda)
        return
    code = need(cuda.init_code, "cuInit's answer")
    if code == 0:
        yield Passed(_told(cuda))
        return
    if code == 100 and _all_prohibited(view):
        raise Skip("the compute mode of every GPU keeps CUDA out (GPU-014)")
    told = CUDA.get(code) or ErrorCode(
        known(cuda.init_name) or f"CUDA error {code}",
        "an error that envcheck's table does not have",
        CUDA[999].remedy,
        CUDA[999].commands,
    )
    meaning, remedy, evidence = _cause(view, code, told)
    yield Finding(
        "fail",
        f"cuInit fails with {code} ({told.name}): {meaning}; no framework can use a GPU.",
        evidence=[view.evidence("machine.cuda.init_code"), *evidence],
        remedy=remedy,
    )


def _all_prohibited(view: SnapshotView) -> bool:
    probe = view.machine.nvml
    gpus = None if probe is None or probe.facts is None else known(probe.facts.gpus)
    return bool(gpus) and all(known(gpu.compute_mode) == "Prohibited" for gpu in gpus or [])


def _told(cuda: CudaDriver) -> str:
    version, count = known(cuda.driver_api_version), known(cuda.device_count)
    words = [f"driver API {version}"] if version else []
    if count is not None:
        words.append(f"{count} device{'' if count == 1 else 's'}")
    return ", ".join(words) or "cuInit succeeds"


def _crashed(view: SnapshotView, reason: str, evidence: str) -> Finding:
    return Finding(
        "fail",
        f"Loading libcuda and calling cuInit crashes ({reason}): every CUDA program will crash alike.",
        evidence=[view.evidence("machine.cuda", evidence or reason)],
        remedy=Remedy(
            "See which libcuda the loader finds, and reinstall the driver's libraries.",
            ["ldconfig -p | grep libcuda", *driver_libraries(view)],
        ),
    )


def _silent(view: SnapshotView, reason: str) -> Finding:
    return Finding(
        "fail",
        f"cuInit does not come back ({reason}): every CUDA program will hang alike.",
        evidence=[view.evidence("machine.cuda", reason)],
        remedy=Remedy(
            "See what the kernel's log says of a GPU or of the NVSwitch fabric; reset the GPUs, or reboot.",
            ["sudo dmesg | grep -iE 'nvrm|xid'", "nvidia-smi -L", REBOOT],
        ),
        headline="cuInit hangs",
    )


def _no_libcuda(view: SnapshotView, cuda: CudaDriver) -> Finding:
    evidence = [view.evidence("machine.cuda.library_path")]
    if known(cuda.load_error):
        evidence.append(view.evidence("machine.cuda.load_error"))
    where = ""
    if on_wsl(view):
        remedy = _on_wsl(view)
    elif container(view):
        remedy = Remedy(
            "Start the container with the GPUs and the driver capability compute.",
            in_engine(view, "capabilities"),
        )
    elif folder := _installed_in(view):
        where = f", though it is in {folder}"
        evidence.append(view.evidence("machine.kernel.driver_files", f"{folder}/libcuda.so.*"))
        remedy = _show_the_loader(folder)
    else:
        remedy = Remedy(
            "Install the driver's compute libraries of the loaded module's version.",
            ["ldconfig -p | grep libcuda", *driver_libraries(view)],
        )
    return Finding(
        "fail",
        f"The loader finds no libcuda.so.1, the driver's CUDA library{where}: no framework can use a GPU.",
        evidence=evidence,
        remedy=remedy,
    )


def _on_wsl(view: SnapshotView) -> Remedy:
    release = (
        known(view.machine.host.facts.kernel)
        if view.machine.host and view.machine.host.facts
        else None
    )
    if WSL_1.match(release or ""):
        return Remedy(
            "This is WSL 1, which has no GPU: convert it to WSL 2, from Windows.",
            ["wsl.exe --list --verbose", "wsl.exe --set-version DISTRIBUTION 2"],
        )
    return Remedy(
        "Install NVIDIA's driver in Windows, none inside WSL, and restart WSL from Windows.",
        ["ls /usr/lib/wsl/lib/", "wsl.exe --update", "wsl.exe --shutdown"],
    )


def _installed_in(view: SnapshotView) -> str:
    """The directory of the driver's own libcuda on disk; "" where there is none, or it is not known."""
    kernel = view.machine.kernel
    if kernel is None or kernel.facts is None:
        return ""
    paths = [file.path for file in driver_files(kernel.facts) if file.library == "libcuda"]
    return paths[0].rpartition("/")[0] if paths else ""


def _show_the_loader(folder: str) -> Remedy:
    if folder.startswith("/run/opengl-driver"):
        return Remedy(
            "NixOS keeps the driver's libraries there, and only programs that were built for NixOS look into"
            " it: name it to the others, in the shell, or with nix-ld for all of them"
            " (programs.nix-ld.enable in configuration.nix).",
            [f"export LD_LIBRARY_PATH={word(folder)}:$LD_LIBRARY_PATH"],
        )
    name = f"echo {word(folder)} | sudo tee /etc/ld.so.conf.d/nvidia-driver.conf && sudo ldconfig"
    return Remedy(
        "Write the loader's cache anew, with the links that it makes.",
        ["sudo ldconfig && ldconfig -p | grep libcuda"] if USUAL.match(folder) else [name],
    )


def _cause(view: SnapshotView, code: int, told: ErrorCode) -> tuple[str, Remedy, list[Evidence]]:
    """What explains this code here: (meaning, remedy, evidence), the table's own where nothing does."""
    if code in (3, 100, 304, 999):
        found = _node_cause(view, code)
        if found is not None:
            return found
    if code == 802:
        return _fabric_cause(view, told)
    if code == 999 and container(view):
        return (
            "the container has lost, or never had, a device node that CUDA needs",
            lost_gpus(view),
            [view.evidence("machine.host.container")],
        )
    return told.meaning, Remedy(told.remedy, list(told.commands)), []


def _node_cause(view: SnapshotView, code: int) -> tuple[str, Remedy, list[Evidence]] | None:
    node = device_node(view, UVM)
    if node is None and code == 999:
        return (
            "there is no /dev/nvidia-uvm, since the nvidia-uvm module is not loaded or made no node",
            Remedy(
                "Load the module and make its nodes, and have it loaded at every boot.",
                [
                    "sudo nvidia-modprobe -c 0 -u",
                    "echo nvidia-uvm | sudo tee /etc/modules-load.d/nvidia-uvm.conf",
                ],
            ),
            [view.evidence("machine.kernel.device_nodes", f"no {UVM}"), *_module_evidence(view)],
        )
    if isinstance(node, DeviceNode) and not node.usable:
        return (
            f"this user may not open {UVM}",
            Remedy(
                "Give the user the node's group, or make the node accessible by a udev rule.",
                [f"ls -l {UVM}", f"sudo usermod -aG {word(node.group)} $USER  # then log in again"],
            ),
            [
                view.evidence(
                    "machine.kernel.device_nodes",
                    f"{UVM}: mode {node.mode}, {node.owner}:{node.group}, not usable by this user",
                )
            ],
        )
    return None


def _module_evidence(view: SnapshotView) -> list[Evidence]:
    kernel = view.machine.kernel
    modules = None if kernel is None or kernel.facts is None else known(kernel.facts.modules)
    if modules is None:
        return []
    return [view.evidence("machine.kernel.modules", ", ".join(module.name for module in modules))]


def _fabric_cause(view: SnapshotView, told: ErrorCode) -> tuple[str, Remedy, list[Evidence]]:
    remedy = fabric_remedy(view)
    manager = service(view, "nvidia-fabricmanager")
    if manager is None:
        return told.meaning, remedy, []
    state = (
        "is not installed"
        if known(manager.installed) is False
        else "is not running"
        if known(manager.running) is False
        else "has not set it up"
    )
    return (
        f"the machine's GPU fabric is not set up, and nvidia-fabricmanager {state}",
        remedy,
        [view.evidence("machine.kernel.services", f"nvidia-fabricmanager {state}")],
    )


def fabric_remedy(view: SnapshotView) -> Remedy:
    return Remedy(
        "Install and start the fabric manager of exactly the driver's version.",
        [
            *install_fabric_manager(view),
            "sudo systemctl enable --now nvidia-fabricmanager",
            "systemctl status nvidia-fabricmanager",
        ],
    )

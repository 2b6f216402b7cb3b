"""The check on cuInit: the door that every CUDA program goes through."""

from __future__ import annotations

import re

from ...facts.host import Host
from ...facts.kernel import DeviceNode
from ..container_start import lost_gpus
from ..driver_on_disk import driver_files
from ..driver_state import (
    NO_GPUS,
    NVRM_LOG,
    REBOOT,
    container,
    device_node,
    driver_libraries,
    install_fabric_manager,
    on_wsl,
    service,
)
from ..reading import (
    CudaDriver,
    Kernel,
    Nvml,
    Skip,
    SnapshotView,
    facts_of,
    facts_or,
    is_absent,
    known,
    need,
)
from ..system_commands import in_engine
from ..verdicts import (
    Cause,
    Evidence,
    Finding,
    Passed,
    Remedy,
    Verdicts,
    check,
    fail,
    word,
)
from .error_codes import CUDA, causes
from .hang import silent

_UVM = "/dev/nvidia-uvm"
_WSL_1 = re.compile(r"4\.4\.0-\d+-Microsoft\Z")
_USUAL = re.compile(r"/usr/lib(64|/x86_64-linux-gnu|/aarch64-linux-gnu)?\Z")

_HEADLINE = "CUDA does not start"
_SENTENCE = "cuInit fails with {code} ({name}): {meaning}; no framework can use a GPU."
_CODES = causes(CUDA, _HEADLINE, _SENTENCE)


def _fails(key: str, meaning: str, remedy: str = "", commands: tuple[str, ...] = ()) -> Cause:
    return fail(key, _HEADLINE, _SENTENCE.replace("{meaning}", meaning), remedy, *commands)


_OTHER = _fails(
    "other-error",
    "an error that envcheck's table does not have",
    CUDA[999].remedy,
    CUDA[999].commands,
)
_UVM_MISSING = _fails(
    "nvidia-uvm-missing",
    f"there is no {_UVM}, since the nvidia-uvm module is not loaded or made no node",
    "Load the module and make its nodes, and have it loaded at every boot.",
    (
        "sudo nvidia-modprobe -c 0 -u",
        "echo nvidia-uvm | sudo tee /etc/modules-load.d/nvidia-uvm.conf",
    ),
)
_UVM_CLOSED = _fails(
    "nvidia-uvm-closed",
    f"this user may not open {_UVM}",
    "Give the user the node's group, or make the node accessible by a udev rule.",
)
_FABRIC = _fails(
    "fabric-manager-down",
    "the machine's GPU fabric is not set up, and nvidia-fabricmanager {state}",
)
_NODE_LOST = _fails(
    "container-lost-device-node",
    "the container has lost, or never had, a device node that CUDA needs",
)
_NO_LIBCUDA = fail(
    "libcuda-not-found",
    "the loader finds no libcuda",
    "The loader finds no libcuda.so.1, the driver's CUDA library{where}: no framework can use a"
    " GPU.",
)
_CRASHES = fail(
    "cuinit-crashes",
    "cuInit crashes",
    "Loading libcuda and calling cuInit crashes ({reason}): so will every CUDA program.",
    "See which libcuda the loader finds, and reinstall the driver's libraries.",
)
_SILENT = fail(
    "cuinit-hangs",
    "cuInit hangs",
    "cuInit does not come back ({reason}): every CUDA program will hang.",
    "See what the kernel's log says about a GPU or the NVSwitch fabric; reset the GPUs, or reboot.",
    NVRM_LOG,
    "nvidia-smi -L",
    REBOOT,
)


@check(
    "DRV-004",
    title="CUDA starts (cuInit)",
    causes=[
        *(*_CODES.values(), _OTHER, _UVM_MISSING, _UVM_CLOSED, _FABRIC, _NODE_LOST),
        *(_NO_LIBCUDA, _CRASHES, _SILENT),
    ],
    about="Every CUDA program, and so every framework, begins with cuInit in libcuda. nvidia-smi and NVML"
    " do not go through it, so they may be fine where CUDA is not: without the nvidia-uvm module it returns"
    " 999, without a running fabric manager 802, with a libcuda that does not belong to the loaded module"
    " 803 or 804, and where it finds no GPU 100. Judged by what cuInit returned in a process of its own,"
    " without CUDA_VISIBLE_DEVICES; the likely cause is taken from the device nodes, services and modules.",
    sources=["cuda.h, CUresult; gpu-burn#60; gorgonia/cu#2 (999 without nvidia-uvm)"],
    follows=(
        *(*NO_GPUS, "KRN-006", "KRN-007", "DRV-005", "DRV-009", "DRV-010", "GPU-001", "GPU-011"),
        *("GPU-012", "KRN-009", "KRN-013", "ENV-002", "ENV-009"),
    ),
)
def cuda_starts(view: SnapshotView) -> Verdicts:
    probe = view.machine.cuda
    if probe is not None and probe.outcome == "crashed" and "signal" in probe.reason:
        yield _CRASHES.found(
            evidence=[view.evidence("machine.cuda", probe.evidence or probe.reason)],
            commands=["ldconfig -p | grep libcuda", *driver_libraries(view)],
            reason=probe.reason,
        )
        return
    if probe is not None and silent(probe):
        evidence = [view.evidence("machine.cuda", probe.reason)]
        yield _SILENT.found(evidence=evidence, reason=probe.reason)
        return
    cuda = facts_of(probe, "libcuda")
    if is_absent(cuda.library_path):
        yield _no_libcuda(view, cuda)
        return
    code = need(cuda.init_code, "cuInit's answer")
    if code == 0:
        yield Passed(_answer(cuda))
        return
    if code == 100 and _all_prohibited(view):
        raise Skip("the compute mode of every GPU keeps CUDA out (GPU-014)")
    yield _failed(view, code, known(cuda.init_name) or f"CUDA error {code}")


def _all_prohibited(view: SnapshotView) -> bool:
    gpus = known(facts_or(view.machine.nvml, Nvml).gpus) or []
    return bool(gpus) and all(known(gpu.compute_mode) == "Prohibited" for gpu in gpus)


def _answer(cuda: CudaDriver) -> str:
    version, count = known(cuda.driver_api_version), known(cuda.device_count)
    words = [f"driver API {version}"] if version else []
    if count is not None:
        words.append(f"{count} device{'' if count == 1 else 's'}")
    return ", ".join(words) or "cuInit succeeds"


def _no_libcuda(view: SnapshotView, cuda: CudaDriver) -> Finding:
    evidence = [view.evidence("machine.cuda.library_path")]
    if known(cuda.load_error):
        evidence.append(view.evidence("machine.cuda.load_error"))
    files = driver_files(facts_or(view.machine.kernel, Kernel))
    folder = next((f.path.rpartition("/")[0] for f in files if f.library == "libcuda"), "")
    where = ""
    if on_wsl(view):
        advice = _on_wsl(view)
    elif container(view):
        advice = Remedy(
            "Start the container with the GPUs and the driver capability compute.",
            in_engine(view, "capabilities"),
        )
    elif folder:
        where = f", though it is in {folder}"
        evidence.append(view.evidence("machine.kernel.driver_files", f"{folder}/libcuda.so.*"))
        advice = _show_the_loader(folder)
    else:
        advice = Remedy(
            "Install the driver's compute libraries of the loaded module's version.",
            ["ldconfig -p | grep libcuda", *driver_libraries(view)],
        )
    return _NO_LIBCUDA.found(evidence=evidence, advice=advice, where=where)


def _on_wsl(view: SnapshotView) -> Remedy:
    if _WSL_1.match(known(facts_or(view.machine.host, Host).kernel) or ""):
        return Remedy(
            "This is WSL 1, which has no GPU: convert it to WSL 2, from Windows.",
            ["wsl.exe --list --verbose", "wsl.exe --set-version DISTRIBUTION 2"],
        )
    return Remedy(
        "Install NVIDIA's driver in Windows, none inside WSL, and restart WSL from Windows.",
        ["ls /usr/lib/wsl/lib/", "wsl.exe --update", "wsl.exe --shutdown"],
    )


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
        "Write the loader's cache again, with its links.",
        ["sudo ldconfig && ldconfig -p | grep libcuda"] if _USUAL.match(folder) else [name],
    )


def _failed(view: SnapshotView, code: int, name: str) -> Finding:
    """The finding for cuInit's error: by device nodes and services where they explain it."""
    node = device_node(view, _UVM)
    name = CUDA[code].name if code in CUDA else name
    init = view.evidence("machine.cuda.init_code")
    if code == 999 and node is None:
        modules = known(facts_or(view.machine.kernel, Kernel).modules)
        evidence = [init, view.evidence("machine.kernel.device_nodes", f"no {_UVM}")]
        if modules is not None:
            names = ", ".join(module.name for module in modules)
            evidence.append(view.evidence("machine.kernel.modules", names))
        return _UVM_MISSING.found(evidence=evidence, code=code, name=name)
    if code in (3, 100, 304, 999) and isinstance(node, DeviceNode) and not node.usable:
        mode = f"{_UVM}: mode {node.mode}, {node.owner}:{node.group}, not usable by this user"
        group = f"sudo usermod -aG {word(node.group)} $USER  # then log in again"
        return _UVM_CLOSED.found(
            evidence=[init, view.evidence("machine.kernel.device_nodes", mode)],
            commands=[f"ls -l {_UVM}", group],
            code=code,
            name=name,
        )
    if code == 802:
        return _fabric(view, init, name)
    if code == 999 and container(view):
        evidence = [init, view.evidence("machine.host.container")]
        return _NODE_LOST.found(evidence=evidence, advice=lost_gpus(view), code=code, name=name)
    cause = _CODES[CUDA[code].key] if code in CUDA else _OTHER
    commands = CUDA[code].commands if code in CUDA else None
    return cause.found(evidence=[init], commands=commands, code=code, name=name)


def _fabric(view: SnapshotView, init: Evidence, name: str) -> Finding:
    advice = fabric_remedy(view)
    manager = service(view, "nvidia-fabricmanager")
    if manager is None:
        cause = _CODES[CUDA[802].key]
        return cause.found(evidence=[init], advice=advice, code=802, name=name)
    state = "has not set it up"
    if known(manager.installed) is False:
        state = "is not installed"
    elif known(manager.running) is False:
        state = "is not running"
    seen = view.evidence("machine.kernel.services", f"nvidia-fabricmanager {state}")
    return _FABRIC.found(evidence=[init, seen], advice=advice, code=802, name=name, state=state)


def fabric_remedy(view: SnapshotView) -> Remedy:
    return Remedy(
        "Install and start the fabric manager of exactly the driver's version.",
        [
            *install_fabric_manager(view),
            "sudo systemctl enable --now nvidia-fabricmanager",
            "systemctl status nvidia-fabricmanager",
        ],
    )

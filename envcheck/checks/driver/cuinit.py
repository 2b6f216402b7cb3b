"""The check on cuInit: the door that every CUDA program goes through."""

from __future__ import annotations

from ...facts.gpu import CudaDriver, Nvml
from ...facts.kernel import Kernel
from ..container_start import lost_gpus
from ..driver_on_disk import driver_files
from ..driver_state import HOLDERS, NO_GPUS, NVRM_LOG, REBOOT, container, driver_libraries, on_wsl
from ..gpus import plural
from ..nvidia_devices import event_evidence
from ..reading import Skip, SnapshotView, fact, facts_of, facts_or, is_absent, known, need
from ..system_commands import in_engine
from ..verdicts import Finding, Passed, Remedy, Verdicts, check, fail, word
from .error_codes import CUDA, causes
from .hang import silent

_SENTENCE = "cuInit fails with {code} ({name}): {meaning}; no framework can use a GPU."
# What no device node and no module that is missing can cause: these codes name their own reason.
_PATHS = ("DRV-005", "DRV-009", "ENV-002", "ENV-009")  # which libcuda is loaded
_CODES = causes(
    CUDA,
    "CUDA does not start",
    _SENTENCE,
    {
        "fabric-not-ready": (*NO_GPUS, "KRN-011", "GPU-001", "GPU-011", "GPU-012"),
        "driver-library-mismatch": (*NO_GPUS, *_PATHS),
        "compat-not-supported": (*NO_GPUS, *_PATHS),
        "driver-too-old": (*NO_GPUS, *_PATHS),
        "stub-library": (*NO_GPUS, *_PATHS),
        "mps-unavailable": NO_GPUS,
    },
)
_NODE_LOST = fail(
    "container-lost-device-node",
    "CUDA does not start",
    "cuInit fails with {code} ({name}): the container has lost, or never had, a device node that CUDA needs;"
    " no framework can use a GPU.",
)
_WSL_MEMORY = fail(
    "wsl-out-of-memory",
    "CUDA does not start on WSL",
    "cuInit fails with {code} ({name}) on WSL with {gpus}: Windows gives WSL no address space for that many"
    " GPUs, or too little memory; no framework can use a GPU.",
    "Disable a GPU in Windows' Device Manager, so that WSL gets fewer, or give WSL more memory (memory= in"
    " %UserProfile%\\.wslconfig), then restart WSL from Windows.",
    "nvidia-smi -L",
    "wsl.exe --shutdown  # in Windows",
)
_ADDRESS_SPACE = _WSL_MEMORY.variant(
    "cuda-address-space-limit",
    headline="CUDA does not start",
    sentence="cuInit fails with {code} ({name}): a process may use only {mib} MiB of address space here"
    " (ulimit -v), and CUDA reserves far more than the memory that it uses; no framework can use a GPU.",
    remedy="Take the limit away where the job is started (a batch system's vmem, 'as' in limits.d), and limit"
    " memory by control groups instead.",
    commands=("ulimit -v unlimited",),
    source="getrlimit(2), RLIMIT_AS; pytorch#35710",
)
_HMM = fail(
    "uvm-hmm-fails",
    "CUDA does not start",
    "cuInit fails with {code} ({name}) though NVML answers, and the open nvidia-uvm has HMM"
    " (heterogeneous memory management) on, which fails on some kernels: no framework can use a GPU.",
    "Switch HMM off in nvidia-uvm and load it again (or reboot); if CUDA does not start then either, it was"
    " something else: take the line away again.",
    "echo 'options nvidia_uvm uvm_disable_hmm=1' | sudo tee /etc/modprobe.d/nvidia-uvm-hmm.conf",
    "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm",
    source="ollama/ollama#11593; NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia-uvm/uvm_hmm.c",
)
_AFTER_SUSPEND = fail(
    "lost-after-suspend",
    "CUDA does not start since the machine was suspended",
    "cuInit fails with {code} ({name}) since the machine came back from a suspend: the module nvidia-uvm has"
    " lost the GPU's state; no framework can use a GPU.",
    "Stop what uses CUDA and load nvidia-uvm again, or reboot. So that the state survives the next suspend,"
    " let the driver save the GPU's memory (NVreg_PreserveVideoMemoryAllocations=1, with the services"
    " nvidia-suspend and nvidia-resume), or do not suspend the machine.",
    HOLDERS,
    "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm",
    "echo 'options nvidia NVreg_PreserveVideoMemoryAllocations=1'"
    " | sudo tee /etc/modprobe.d/nvidia-sleep.conf",
    "sudo systemctl enable nvidia-suspend nvidia-resume nvidia-hibernate",
    source="pop-os/default-settings#64; NVIDIA driver README, power management support",
)
_NO_LIBCUDA = fail(
    "libcuda-not-found",
    "the loader finds no libcuda",
    "The loader finds no libcuda.so.1, the driver's CUDA library{where}: no framework can use a GPU.",
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
        *_CODES.values(),
        _NODE_LOST,
        _WSL_MEMORY,
        _ADDRESS_SPACE,
        _HMM,
        _AFTER_SUSPEND,
        _NO_LIBCUDA,
        _CRASHES,
        _SILENT,
    ],
    about="Every CUDA program, and so every framework, begins with cuInit in libcuda. nvidia-smi and NVML"
    " do not use it, so they may work while CUDA does not.",
    sources=["cuda.h, CUresult; gpu-burn#60; gorgonia/cu#2; pytorch#35710; numba#9732"],
    follows=(
        *NO_GPUS,
        "KRN-006",
        "KRN-007",
        "KRN-009",
        "KRN-011",
        "KRN-013",
        "DRV-005",
        "DRV-009",
        "DRV-010",
        "GPU-001",
        "GPU-011",
        "GPU-012",
        "ENV-002",
        "ENV-009",
    ),
)
def cuda_starts(view: SnapshotView) -> Verdicts:
    probe = view.machine.cuda
    if probe is not None and probe.outcome == "crashed" and "signal" in probe.reason:
        evidence = [view.evidence("machine.cuda", probe.evidence or probe.reason)]
        commands = ["ldconfig -p | grep libcuda", *driver_libraries(view)]
        yield _CRASHES.found(evidence=evidence, commands=commands, reason=probe.reason)
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
    gpus = known(facts_or(view.machine.nvml, Nvml).gpus) or []
    if code == 0:
        version, count = known(cuda.driver_api_version), known(cuda.device_count)
        yield Passed(f"driver API {version or '?'}, {plural(count or 0, 'device')}")
    elif code == 100 and gpus and all(known(gpu.compute_mode) == "Prohibited" for gpu in gpus):
        raise Skip("the compute mode of every GPU keeps CUDA out (GPU-014)")
    else:
        row = CUDA.get(code, CUDA[999])
        evidence = [view.evidence("machine.cuda.init_code")]
        name = CUDA[code].name if code in CUDA else known(cuda.init_name) or "unknown"
        cause, advice = _CODES[row.key], None
        if code == 999 and container(view):
            cause, advice = _NODE_LOST, lost_gpus(view)
        elif code == 2 and on_wsl(view):
            cause = _WSL_MEMORY
        limit = fact(view.machine.host, "address_space_kib") or -1
        if code in (2, 304) and limit > 0:
            cause = _ADDRESS_SPACE
            evidence.append(view.evidence("machine.host.address_space_kib"))
        kernel = facts_or(view.machine.kernel, Kernel)
        slept = [one for one in known(kernel.log) or [] if one.kind == "suspend"]
        if code == 999 and slept and cause is not _NODE_LOST:
            cause = _AFTER_SUSPEND
            evidence.append(event_evidence(view, slept[-1]))
        hmm_off = kernel.uvm_parameters.get("uvm_disable_hmm")
        if code == 3 and gpus and hmm_off == "N" and known(kernel.driver_flavour) == "open":
            cause = _HMM
            evidence.append(view.evidence("machine.kernel.uvm_parameters", "uvm_disable_hmm = N"))
        some = plural(len(gpus), "GPU")
        yield cause.found(
            (), evidence, advice=advice, code=code, name=name, gpus=some, mib=limit // 1024
        )


def _no_libcuda(view: SnapshotView, cuda: CudaDriver) -> Finding:
    evidence = [view.evidence("machine.cuda.library_path")]
    if known(cuda.load_error):
        evidence.append(view.evidence("machine.cuda.load_error"))
    files = driver_files(facts_or(view.machine.kernel, Kernel))
    folder = next((f.path.rpartition("/")[0] for f in files if f.library == "libcuda"), "")
    where = ""
    if on_wsl(view):
        text = "Install NVIDIA's driver in Windows, none inside WSL (WSL 2), and restart WSL from Windows."
        commands = ["ls /usr/lib/wsl/lib/", "wsl.exe --update", "wsl.exe --shutdown"]
    elif container(view):
        text = "Start the container with the GPUs and the driver capability compute."
        commands = in_engine(view, "capabilities")
    elif folder:
        where = f", though it is in {folder}"
        evidence.append(view.evidence("machine.kernel.driver_files", f"{folder}/libcuda.so.*"))
        text, commands = _show_the_loader(folder)
    else:
        text = "Install the driver's compute libraries of the loaded module's version."
        commands = ["ldconfig -p | grep libcuda", *driver_libraries(view)]
    return _NO_LIBCUDA.found(evidence=evidence, advice=Remedy(text, commands), where=where)


def _show_the_loader(folder: str) -> tuple[str, list[str]]:
    if folder.startswith("/run/opengl-driver"):  # where NixOS keeps the driver's libraries
        text = "Name the directory to programs that were not built for NixOS, in the shell or with nix-ld."
        return text, [f"export LD_LIBRARY_PATH={word(folder)}:$LD_LIBRARY_PATH"]
    name = f"echo {word(folder)} | sudo tee /etc/ld.so.conf.d/nvidia-driver.conf && sudo ldconfig"
    usual = folder.startswith("/usr/lib")
    command = "sudo ldconfig && ldconfig -p | grep libcuda" if usual else name
    return "Write the loader's cache again, with its links.", [command]

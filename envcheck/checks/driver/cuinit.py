"""The check on cuInit: the door that every CUDA program goes through."""

from __future__ import annotations

from ...facts.gpu import CudaDriver, Gpu, Nvml
from ...facts.kernel import Kernel
from ..container_start import lost_gpus
from ..declared import declared_causes
from ..driver_on_disk import driver_files
from ..driver_state import NO_GPUS, container, driver_libraries, on_wsl
from ..gpus import plural
from ..nvidia_devices import event_evidence
from ..reading import Skip, SnapshotView, fact, facts_of, facts_or, is_absent, known, need
from ..system_commands import in_engine
from ..verdicts import Evidence, Finding, Passed, Remedy, Verdicts, check, word
from .error_codes import CUDA, CUINIT, causes
from .hang import silent

CAUSE = declared_causes(__name__)

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
_HERE = {  # what the code means in particular circumstances, by the cause's key
    key: code.cause("CUDA does not start", _SENTENCE) for key, code in CUINIT.items()
}


@check("DRV-004", causes=[*_CODES.values(), *_HERE.values()])
def cuda_starts(view: SnapshotView) -> Verdicts:
    probe = view.machine.cuda
    if probe is not None and probe.outcome == "crashed" and "signal" in probe.reason:
        evidence = [view.evidence("machine.cuda", probe.evidence or probe.reason)]
        commands = ["ldconfig -p | grep libcuda", *driver_libraries(view)]
        yield CAUSE["cuinit-crashes"].found(
            evidence=evidence, commands=commands, reason=probe.reason
        )
        return
    if probe is not None and silent(probe):
        evidence = [view.evidence("machine.cuda", probe.reason)]
        yield CAUSE["cuinit-hangs"].found(evidence=evidence, reason=probe.reason)
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
        special, shown = _special(view, code, gpus)
        lost = special == "container-lost-device-node"
        yield (_HERE[special] if special else _CODES[row.key]).found(
            (),
            evidence + shown,
            advice=lost_gpus(view) if lost else None,
            code=code,
            name=name,
            gpus=plural(len(gpus), "GPU"),
            mib=(fact(view.machine.host, "address_space_kib") or 0) // 1024,
        )


def _special(view: SnapshotView, code: int, gpus: list[Gpu]) -> tuple[str, list[Evidence]]:
    """The key of what the code means on this machine in particular ("" if nothing), and what shows it."""
    kernel, nvml = facts_or(view.machine.kernel, Kernel), facts_or(view.machine.nvml, Nvml)
    slept = [one for one in known(kernel.log) or [] if one.kind == "suspend"]
    if code == 999 and container(view):
        return "container-lost-device-node", []
    if code == 999 and slept:
        return "lost-after-suspend", [event_evidence(view, slept[-1])]
    if code in (2, 304) and (fact(view.machine.host, "address_space_kib") or -1) > 0:
        return "cuda-address-space-limit", [view.evidence("machine.host.address_space_kib")]
    if code == 2 and on_wsl(view):
        return "wsl-out-of-memory", []
    if code == 802 and known(nvml.confidential) and known(nvml.confidential_ready) is False:
        return "not-set-ready", [view.evidence("machine.nvml.confidential_ready")]
    hmm = kernel.uvm_parameters.get("uvm_disable_hmm") == "N"
    if code == 3 and gpus and hmm and known(kernel.driver_flavour) == "open":
        return "uvm-hmm-fails", [
            view.evidence("machine.kernel.uvm_parameters", "uvm_disable_hmm = N")
        ]
    return "", []


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
    return CAUSE["libcuda-not-found"].found(
        evidence=evidence, advice=Remedy(text, commands), where=where
    )


def _show_the_loader(folder: str) -> tuple[str, list[str]]:
    if folder.startswith("/run/opengl-driver"):  # where NixOS keeps the driver's libraries
        text = "Name the directory to programs that were not built for NixOS, in the shell or with nix-ld."
        return text, [f"export LD_LIBRARY_PATH={word(folder)}:$LD_LIBRARY_PATH"]
    name = f"echo {word(folder)} | sudo tee /etc/ld.so.conf.d/nvidia-driver.conf && sudo ldconfig"
    usual = folder.startswith("/usr/lib")
    command = "sudo ldconfig && ldconfig -p | grep libcuda" if usual else name
    return "Write the loader's cache again, with its links.", [command]

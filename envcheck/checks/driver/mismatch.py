"""The check that the loaded module and the driver's libraries are of one version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.kernel import Kernel
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..containers import CDI_GENERATE
from ..driver_on_disk import modules_on_disk
from ..driver_state import container, on_wsl
from ..driver_upgrade import bring_together
from ..registry import check
from ..system_commands import in_engine, on_system
from .error_codes import NVML

MISMATCH_CODE = 18
MISMATCH_WORDS = "driver/library version mismatch"
_COMPAT_OR_OTHER = re.compile(r"/compat/|cuda-compat|/stubs/|/i386-linux-gnu/|/lib32/")


@check(
    "DRV-002",
    title="Kernel module and driver libraries are of one version",
    problem="kernel module and driver libraries do not match",
    about="The driver's kernel module and its user-space libraries must be of the same version."
    " After an upgrade the new libraries are on disk while the old module is still loaded; from then on"
    " no new program can use the GPU, though running ones go on. Judged by NVML's and nvidia-smi's own"
    " error (18, 'Driver/library version mismatch'), and by the module's version against that of"
    " libnvidia-ml on disk where NVML does not answer. The remedy goes by the module on disk: where that is"
    " the libraries', a reload or a reboot loads it; where it is not, the upgrade stopped half-way, or the"
    " two come from two installations, and a reboot alone changes nothing.",
    sources=(
        "lyulyul/shine-cluster#30",
        "mozilla/translations#1167",
        "illinois-scicomp/machine-shop-maintenance#70",
        "nvml.h, nvmlReturn_t 18",
    ),
    follows=("PCI-001", "KRN-001", "CTR-012"),
)
def module_matches_libraries(view: SnapshotView) -> Iterator[Verdict]:
    if on_wsl(view):
        raise Skip("on WSL the kernel module is Windows' own")
    symptoms = _mismatch_symptoms(view)
    kernel = None if view.machine.kernel is None else view.machine.kernel.facts
    module = None if kernel is None else known(kernel.driver_version)
    libraries = _library_versions(kernel) if kernel is not None else []
    answers = view.machine.nvml is not None and nvml_code(view) == 0
    differs = bool(module and libraries and module not in libraries and not answers)
    if symptoms or differs:
        evidence = list(symptoms)
        if module:
            evidence.append(view.evidence("machine.kernel.driver_version"))
        if libraries:
            evidence.append(view.evidence("machine.kernel.driver_files", ", ".join(libraries)))
        if kernel is not None and modules_on_disk(kernel):
            on_disk = ", ".join(modules_on_disk(kernel))
            evidence.append(view.evidence("machine.kernel.module_files", f"on disk: {on_disk}"))
        remedy = _remedy(view, kernel, module, libraries)
        yield Finding("fail", _mismatch_message(module, libraries), [], evidence, remedy)
        return
    need(
        facts_of(view.machine.kernel, "the loaded module").driver_version,
        "the loaded module's version",
    )
    if not answers and not libraries:
        raise Skip("the driver libraries' version: neither NVML nor a file tells it")
    yield Passed(f"both are {module}")


def nvml_code(view: SnapshotView) -> int | None:
    probe = view.machine.nvml
    return None if probe is None or probe.facts is None else known(probe.facts.init_code)


def _mismatch_symptoms(view: SnapshotView) -> list[Evidence]:
    found = []
    if nvml_code(view) == MISMATCH_CODE:
        found.append(view.evidence("machine.nvml.init_code", f"{MISMATCH_CODE} ({NVML[18].name})"))
    smi = None if view.machine.nvidia_smi is None else view.machine.nvidia_smi.facts
    if smi is not None and known(smi.exit_code) == MISMATCH_CODE:
        found.append(view.evidence("machine.nvidia_smi.exit_code"))
    if smi is not None and MISMATCH_WORDS in (known(smi.message) or "").lower():
        found.append(view.evidence("machine.nvidia_smi.message"))
    return found


def _library_versions(kernel: Kernel) -> list[str]:
    """The versions of libnvidia-ml on disk, each once; compat, 32-bit and stub directories left out."""
    files = [
        file
        for file in known(kernel.driver_files) or []
        if file.library == "libnvidia-ml"
        and not _COMPAT_OR_OTHER.search(file.path)
        and file.version.count(".") > 0
    ]
    return list(dict.fromkeys(file.version for file in files))


def _mismatch_message(module: str | None, libraries: list[str]) -> str:
    if module and libraries and module not in libraries:
        return (
            f"The loaded kernel module is {module} and the driver's libraries are"
            f" {' and '.join(libraries)}: no program can use a GPU until they match."
        )
    return (
        "The loaded kernel module and the driver's libraries are of different versions: no program can"
        " use a GPU until they match."
    )


def _remedy(
    view: SnapshotView, kernel: Kernel | None, module: str | None, libraries: list[str]
) -> Remedy:
    if container(view):
        return Remedy(
            "The module is the host's, and so are the libraries, unless the image has its own. Where"
            " nvidia-smi fails on the host too, its modules must be reloaded; where it works there, the"
            " driver was upgraded after this container was started, or its CDI specification was written:"
            " start it again.",
            ["# on the host: nvidia-smi", CDI_GENERATE, *in_engine(view, "gpus")],
        )
    if kernel is None:
        kernel = Kernel()
    coming = [version for version in modules_on_disk(kernel) if version in libraries]
    if coming and module not in modules_on_disk(kernel):  # whatever is left of the module's own
        return bring_together(view, kernel, coming)
    if module and module in libraries:
        return Remedy(
            f"Libraries of the module's own version {module} are installed, and a process gets others: take"
            " those off the loader's path.",
            [
                "echo $LD_LIBRARY_PATH; ldconfig -p | grep -E 'libnvidia-ml|libcuda'",
                *on_system(view, "owner", names=_other_files(kernel, module)),
                "sudo ldconfig",
            ],
        )
    return bring_together(view, kernel, libraries)


def _other_files(kernel: Kernel, module: str) -> list[str]:
    files = [file.path for file in known(kernel.driver_files) or [] if file.version != module]
    return files[:6]

"""The check that the loaded module and the driver's libraries are of one version."""

from __future__ import annotations

import re

from ...facts.gpu import NvidiaSmi
from ..containers import CDI_GENERATE
from ..declared import declared_causes
from ..driver_on_disk import bring_together, modules_on_disk, packages_of
from ..driver_state import container, on_wsl
from ..reading import Kernel, Skip, SnapshotView, facts_of, facts_or, known, need
from ..system_commands import in_engine, on_system
from ..verdicts import Evidence, Passed, Remedy, Verdicts, check
from .error_codes import NVML
from .nvml import nvml_code

CAUSE = declared_causes(__name__)

_CODE = 18
_COMPAT_OR_OTHER = re.compile(r"/compat/|cuda-compat|/stubs/|/i386-linux-gnu/|/lib32/")


@check("DRV-002")
def module_matches_libraries(view: SnapshotView) -> Verdicts:
    if on_wsl(view):
        raise Skip("on WSL the kernel module is Windows' own")
    kernel = facts_or(view.machine.kernel, Kernel)
    module, libraries = known(kernel.driver_version), _library_versions(kernel)
    evidence, answers = _symptoms(view), nvml_code(view) == 0
    if evidence or (module and libraries and module not in libraries and not answers):
        on_disk = ", ".join(modules_on_disk(kernel))
        for field, shown in (
            ("driver_version", module),
            ("driver_files", ", ".join(libraries)),
            ("module_files", on_disk and f"on disk: {on_disk}"),
        ):
            evidence += [view.evidence(f"machine.kernel.{field}", shown)] if shown else []
        yield CAUSE["driver-library-mismatch"].found(
            evidence=evidence,
            advice=_remedy(view, kernel, module, libraries),
            module=module or "version not known",
            libraries=" and ".join(libraries) or "version not known",
        )
        return
    facts = facts_of(view.machine.kernel, "the loaded module")
    need(facts.driver_version, "the loaded module's version")
    if not answers and not libraries:
        raise Skip("the driver libraries' version: known neither from NVML nor from a file")
    yield Passed(f"both are {module}")


def _symptoms(view: SnapshotView) -> list[Evidence]:
    found = []
    smi = facts_or(view.machine.nvidia_smi, NvidiaSmi)
    if nvml_code(view) == _CODE:
        found.append(view.evidence("machine.nvml.init_code", f"{_CODE} ({NVML[_CODE].name})"))
    if known(smi.exit_code) == _CODE:
        found.append(view.evidence("machine.nvidia_smi.exit_code"))
    if "driver/library version mismatch" in (known(smi.message) or "").lower():
        found.append(view.evidence("machine.nvidia_smi.message"))
    return found


def _library_versions(kernel: Kernel) -> list[str]:
    files = [f for f in known(kernel.driver_files) or [] if f.library == "libnvidia-ml"]
    own = [f.version for f in files if not _COMPAT_OR_OTHER.search(f.path) and "." in f.version]
    return list(dict.fromkeys(own))


def _own(kernel: Kernel) -> bool:
    """Whether a container's libraries are its own, as of a system container with a driver installed in it."""
    files = [f for f in known(kernel.driver_files) or [] if f.library == "libnvidia-ml"]
    return bool(files) and all(file.mounted is False for file in files)


def _remedy(view: SnapshotView, kernel: Kernel, module: str | None, libraries: list[str]) -> Remedy:
    if container(view) and module and _own(kernel):
        names = [package.name for package in packages_of(kernel)]
        remove = on_system(view, "remove-driver", names=names) if names else []
        return Remedy(
            f"The libraries are this container's own: let its engine bring the host's in, and take its own"
            f" away. Or install exactly {module} here, without its kernel module.",
            [
                *in_engine(view, "capabilities" if container(view) == "lxc" else "gpus"),
                *(f"# then, in the container: {command}" for command in remove),
            ],
        )
    if container(view):
        return Remedy(
            "The module is the host's, and so are the libraries, unless the image has its own. Where"
            " nvidia-smi fails on the host too, its modules must be reloaded; where it works there, the"
            " driver was upgraded after this container was started, or its CDI specification was written:"
            " start it again.",
            ["# on the host: nvidia-smi", CDI_GENERATE, *in_engine(view, "gpus")],
        )
    coming = [version for version in modules_on_disk(kernel) if version in libraries]
    if coming and module not in modules_on_disk(kernel):
        return bring_together(view, kernel, coming)
    if not module or module not in libraries:
        return bring_together(view, kernel, libraries)
    others = [file.path for file in known(kernel.driver_files) or [] if file.version != module]
    owner = on_system(view, "owner", names=others[:6])
    return Remedy(
        f"Libraries of the module's own version {module} are installed, and a process gets others: take those"
        " away.",
        ["ldconfig -p | grep -E 'libnvidia-ml|libcuda'", *owner, "sudo ldconfig"],
    )

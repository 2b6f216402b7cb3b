"""The check on whether NVML answers."""

from __future__ import annotations

from ..container_start import lost_gpus, start_with_gpus
from ..driver_state import (
    HOLDERS,
    NO_DRIVER,
    NVRM_LOG,
    REBOOT,
    container,
    device_node,
    driver_libraries,
)
from ..reading import Nvml, SnapshotView, facts_of, facts_or, known, need
from ..verdicts import Passed, Verdict, Verdicts, check, fail
from .error_codes import NVML, causes
from .hang import died, silent, stuck_in

_CODES = causes(
    NVML, "NVML does not answer", "NVML does not start: {meaning}; no tool can see the GPUs."
)
_OTHER = fail(
    "other-error",
    "NVML does not answer",
    "NVML does not start: {error}; no tool can see the GPUs.",
    NVML[999].remedy,
    *NVML[999].commands,
)
_LOST = fail(
    "container-lost-gpus",
    "the container has lost its GPUs",
    "NVML does not start: the device nodes are in this container, and opening them fails, as where it has"
    " lost its GPUs; no tool can see the GPUs.",
)
_HANGS = fail(
    "nvml-hangs",
    "NVML hangs in the kernel",
    "NVML hangs in the kernel: no tool can see the GPUs.",
    "See DRV-010.",
    *(HOLDERS, REBOOT),
)
_CRASHES = fail(
    "nvml-crashes",
    "NVML crashes",
    "A process that asks NVML for the GPUs crashes ({reason}): monitoring and schedulers will crash, too.",
    "See whether nvidia-smi comes back, and what the kernel's log says about a GPU; where nothing helps,"
    " reboot, and if it stays so install the driver again.",
    *("time nvidia-smi -L", NVRM_LOG, REBOOT),
)
_SILENT = _CRASHES.variant(
    "nvml-silent",
    headline="NVML never answers",
    sentence="A process that asks NVML for the GPUs never answers ({reason}): monitoring cannot either.",
)


@check(
    "DRV-001",
    title="NVML answers",
    causes=[*_CODES.values(), _OTHER, _LOST, _HANGS, _CRASHES, _SILENT],
    about="NVML is the library through which nvidia-smi, schedulers and monitoring ask the driver. Where it"
    " does not start, no tool can list a GPU, and CUDA usually does not start either.",
    sources=["nvml.h, nvmlReturn_t; nvidia-container-toolkit#33, #48, #1227"],
    follows=(*NO_DRIVER, "KRN-006", "DRV-010", "DRV-002", "ENV-002", "ENV-009"),
)
def nvml_answers(view: SnapshotView) -> Verdicts:
    probe = view.machine.nvml
    if stuck_in(probe):
        yield _HANGS.found(evidence=[view.evidence("machine.nvml")])
        return
    if probe is not None and (died(probe) or silent(probe)):
        evidence = [view.evidence("machine.nvml", probe.evidence or probe.reason)]
        yield (_CRASHES if died(probe) else _SILENT).found(evidence=evidence, reason=probe.reason)
        return
    nvml = facts_of(probe, "NVML")
    code = need(nvml.init_code, "NVML's answer")
    if code == 0:
        count, version = known(nvml.gpu_count), known(nvml.driver_version)
        gpus = "" if count is None else f", {count} GPU{'' if count == 1 else 's'}"
        yield Passed(f"driver {version or 'of unknown version'}{gpus}")
    else:
        yield _does_not_start(view, code, known(nvml.init_error))


def nvml_code(view: SnapshotView) -> int | None:
    return known(facts_or(view.machine.nvml, Nvml).init_code)


def _does_not_start(view: SnapshotView, code: int, error: str | None) -> Verdict:
    row = NVML.get(code)
    name = row.name if row else f"NVML error {code}"
    evidence = [view.evidence("machine.nvml.init_code", f"{code} ({name})")]
    if error:
        evidence.append(view.evidence("machine.nvml.init_error"))
    cause, advice = _CODES[row.key] if row else _OTHER, None
    commands = list(row.commands) if row else None
    if container(view):
        advice = start_with_gpus(
            view,
            "Start a new container with the GPUs: one whose library is missing was started without them, or"
            " without the driver capability utility.",
        )
    if container(view) and code == 999 and device_node(view, "/dev/nvidiactl"):
        cause, advice = _LOST, lost_gpus(view)
    if code == 12 and commands is not None:
        commands += driver_libraries(view)
    shown = error or "an error without a name"
    return cause.found((), evidence, commands=commands, advice=advice, error=shown, code=code)

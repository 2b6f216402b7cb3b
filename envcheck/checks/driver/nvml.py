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
from ..verdicts import Passed, Remedy, Verdict, Verdicts, check, fail
from .error_codes import NVML, ErrorCode, causes
from .hang import died, silent, stuck_in

_SENTENCE = "NVML does not start: {meaning}; no tool can see the GPUs."
_CODES = causes(NVML, "NVML does not answer", _SENTENCE)
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
    "NVML does not start: the device nodes are in this container, and opening them fails, as where"
    " it has lost its GPUs; no tool can see the GPUs.",
)
_HANGS = fail(
    "nvml-hangs",
    "NVML hangs in the kernel",
    "NVML hangs in the kernel: no tool can see the GPUs.",
    "See DRV-010.",
    HOLDERS,
    REBOOT,
)
_CRASHES, _SILENT = (
    fail(
        key,
        f"NVML {what}",
        f"A process that asks NVML for the GPUs {what} ({{reason}}): monitoring and schedulers will"
        " do no better.",
        "See whether nvidia-smi comes back, and what the kernel's log says about a GPU; where nothing"
        " helps, reboot, and if it stays so install the driver again.",
        "time nvidia-smi -L",
        NVRM_LOG,
        REBOOT,
    )
    for key, what in (("nvml-crashes", "crashes"), ("nvml-silent", "never answers"))
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
        cause = _CRASHES if died(probe) else _SILENT
        seen = view.evidence("machine.nvml", probe.evidence or probe.reason)
        yield cause.found(evidence=[seen], reason=probe.reason)
        return
    nvml = facts_of(probe, "NVML")
    code = need(nvml.init_code, "NVML's answer")
    if code == 0:
        count, version = known(nvml.gpu_count), known(nvml.driver_version)
        gpus = "" if count is None else f", {count} GPU{'' if count == 1 else 's'}"
        yield Passed(f"driver {version or 'of unknown version'}{gpus}")
        return
    yield _does_not_start(view, nvml, code)


def nvml_code(view: SnapshotView) -> int | None:
    return known(facts_or(view.machine.nvml, Nvml).init_code)


def _does_not_start(view: SnapshotView, nvml: Nvml, code: int) -> Verdict:
    error = known(nvml.init_error) or "an error without a name"
    row = NVML.get(code, ErrorCode(f"NVML error {code}", error, ""))
    evidence = [view.evidence("machine.nvml.init_code", f"{code} ({row.name})")]
    if known(nvml.init_error):
        evidence.append(view.evidence("machine.nvml.init_error"))
    advice: Remedy | None = None
    commands = row.commands
    if container(view):
        if code == 999 and device_node(view, "/dev/nvidiactl"):
            return _LOST.found(evidence=evidence, advice=lost_gpus(view))
        advice = start_with_gpus(
            view,
            "Start a new container with the GPUs: one whose library is missing was started without"
            " them, or without the driver capability utility.",
        )
    if code not in NVML:
        return _OTHER.found(evidence=evidence, advice=advice, error=error, code=code)
    if code == 12:
        commands = (*commands, *driver_libraries(view))
    return _CODES[row.key].found(
        evidence=evidence, advice=advice, commands=commands, error=error, code=code
    )

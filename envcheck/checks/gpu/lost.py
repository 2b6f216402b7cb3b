"""Checks on whether each GPU still answers, and on the recovery that the driver asks for."""

from __future__ import annotations

from ...facts.gpu import LostGpu
from ...findings.subjects import gpu_subject
from .. import gpus
from ..container_start import lost_gpus
from ..declared import declared_causes
from ..driver.error_codes import NVML, ErrorCode
from ..driver_state import REBOOT, REPORT, container
from ..gpus import found
from ..reading import Gpu, Kernel, Nvml, SnapshotView, facts_or, known
from ..verdicts import Cause, Evidence, Finding, Params, Passed, Remedy, Verdicts, check

CAUSE = declared_causes(__name__)

_KERNEL_LOG = "sudo dmesg | grep -iE 'nvrm|xid|fallen off'"
_PERMISSION = 4
# NVML's errors on opening a GPU that have a remedy of their own.
_OWN_REMEDY = (8, 14)  # INSUFFICIENT_POWER, CORRUPTED_INFOROM
_RESET = 16  # RESET_REQUIRED


_AFTER_THE_LOG = Remedy(
    "Do first what the error in the kernel's log asks for (KRN-008). If the driver still answers with errors"
    " then, reset the GPU, and have the board diagnosed.",
    [_KERNEL_LOG, REPORT],
)


@check("GPU-001")
def no_gpu_is_lost(view: SnapshotView) -> Verdicts:
    lost = facts_or(view.machine.nvml, Nvml).lost
    for place, entry in enumerate(lost):
        yield _lost(view, place, entry)
    if view.gpus or not lost:
        yield from gpus.together(gpus.each_gpu(view, lambda gpu: _troubled(view, gpu)))


def _lost(view: SnapshotView, place: int, entry: LostGpu) -> Finding:
    address = known(entry.pci_address)
    gpu = Gpu(index=entry.index, pci_address=entry.pci_address)
    subject = gpu_subject(gpu)
    unknown = ErrorCode(f"NVML error {entry.code}", entry.error, NVML[999].remedy)
    code = NVML.get(entry.code, unknown)
    shown = f"{entry.error} ({entry.code}, {code.name})"
    evidence = [view.evidence(f"machine.nvml.lost[{place}]", shown)]
    own = Remedy(code.remedy, list(code.commands))
    if entry.code == _PERMISSION:
        return CAUSE["gpu-closed-to-user"].found([subject], evidence, advice=own, gpu=subject.text)
    if entry.code == _RESET:
        own = gpus.reset(gpu, "The driver asks for a reset.")
    elif entry.code not in _OWN_REMEDY:
        own = _bring_back(view)
    evidence += _log_evidence(view, address)
    params: Params = {"gpu": subject.text, "meaning": code.meaning, "error": entry.code}
    return CAUSE["gpu-lost"].found([subject], evidence, advice=own, **params)


def _bring_back(view: SnapshotView, hangs: bool = False) -> Remedy:
    if container(view):
        again = lost_gpus(view)
        text = f"Check whether the host still has the GPU; if it does: {again.text}"
        return Remedy(text, ["# on the host: nvidia-smi -L", *again.commands])
    if hangs:
        return Remedy(
            "Take the machine out of service and reboot it, or power it off and on where the reboot hangs:"
            " the driver's report and a reset would hang behind this GPU, too. If it happens again, reseat"
            " the GPU, then have it replaced (RMA).",
            [_KERNEL_LOG, REBOOT],
        )
    return Remedy(
        "Take the machine out of service, keep the driver's report, then power the machine off and on: no"
        " reset reaches a GPU that is lost, and a reboot may not bring it back. If it happens again, reseat"
        " the GPU, then have it replaced (RMA).",
        [_KERNEL_LOG, REPORT, "sudo poweroff"],
    )


def _log_evidence(view: SnapshotView, address: str | None) -> list[Evidence]:
    lines = [
        event.text
        for event in known(facts_or(view.machine.kernel, Kernel).log) or []
        if event.kind in ("xid", "fallen-off-bus")
        and address
        and known(event.pci_address) == address
    ]
    return [view.evidence("machine.kernel.log", text) for text in lines[-2:]]


def _troubled(view: SnapshotView, gpu: Gpu) -> Verdicts:
    errors, address = gpus.errors_of(gpu), known(gpu.pci_address)
    log, stopped = _log_evidence(view, address), known(gpu.stopped)
    if stopped is not None:
        advice = _bring_back(view, hangs=True)
        yield found(
            view,
            CAUSE["gpu-stops-answering"],
            gpu,
            "stopped",
            evidence=log,
            advice=advice,
            stopped=stopped,
        )
    elif gpus.is_lost(gpu):
        vital = {name: code for name, code in errors.items() if name in gpus.VITAL}
        shown = vital or {name: code for name, code in errors.items() if code == gpus.LOST}
        advice = _bring_back(view)
        if gpus.RESET_REQUIRED in shown.values():
            advice = gpus.reset(gpu, "The driver asks for a reset.")
        yield _with_errors(view, CAUSE["gpu-answers-with-errors"], gpu, shown, log, advice)
    elif own := _own_errors(view, gpu, errors):
        yield _with_errors(
            view,
            CAUSE["gpu-answers-some-with-errors"],
            gpu,
            own,
            log,
            _AFTER_THE_LOG if log else None,
        )
    else:
        yield Passed("every GPU answers")


def _own_errors(view: SnapshotView, gpu: Gpu, errors: dict[str, int]) -> dict[str, int]:
    """Those that no other check judges and no other GPU shares: what many share is the platform's."""
    if not errors:
        return {}
    others = [gpus.errors_of(one) for one in view.gpus if one is not gpu]
    return {
        name: code
        for name, code in errors.items()
        if code not in (gpus.CORRUPTED_INFOROM, gpus.RESET_REQUIRED)
        and others
        and not any(other.get(name) == code for other in others)
    }


def _with_errors(
    view: SnapshotView,
    cause: Cause,
    gpu: Gpu,
    errors: dict[str, int],
    log: list[Evidence],
    advice: Remedy | None,
) -> Finding:
    names = (
        f"{NVML[code].name} ({code})" if code in NVML else str(code) for code in errors.values()
    )
    fields = " ".join(list(errors)[:3])
    words = ", ".join(dict.fromkeys(names))
    return found(view, cause, gpu, fields, evidence=log, advice=advice, errors=words)


@gpus.gpu_check("GPU-006")
def no_recovery_needed(view: SnapshotView, gpu: Gpu) -> Verdicts:
    action, fields = known(gpu.recovery_action), "recovery_action"
    asking = [name for name, code in gpus.errors_of(gpu).items() if code == gpus.RESET_REQUIRED]
    if action is None and (known(gpu.reset_required) or known(gpu.drain_and_reset_recommended)):
        action, fields = "Reset", "reset_required drain_and_reset_recommended"
    elif asking and (action or "None") == "None":
        action, fields = "Reset", " ".join(asking[:3])
    if action is not None and action.strip().lower() not in ("none", "n/a", ""):
        advice = gpus.recovery(action, known(gpu.pci_address))
        yield found(view, CAUSE["recovery-action"], gpu, fields, advice=advice, action=action)
    else:
        gpus.need_any(gpu, ("recovery_action", "reset_required"), "the recovery action")
        yield Passed("no recovery action is asked for")

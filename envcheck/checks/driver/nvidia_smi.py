"""Checks on nvidia-smi: does it answer, and is the document that it wrote complete."""

from __future__ import annotations

import re

from ...facts.gpu import NvidiaSmi
from ...findings.subjects import about_device_at, about_file
from ..declared import declared_causes
from ..driver_state import NVRM_LOG, driver_libraries
from ..reading import Skip, SnapshotView, Unavailable, facts_of, is_absent, known, need
from ..verdicts import Finding, Passed, Remedy, Verdicts, check
from .error_codes import NVIDIA_SMI, NVML, causes
from .hang import silent, stuck_in
from .nvml import nvml_code

CAUSE = declared_causes(__name__)

_BROKEN = "nvidia-smi does not work"
# Exit codes that tell about the machine, even where NVML itself answers.
_FAULTS = frozenset({8, 10, 15, 18})
# What nvidia-smi prints for NVML's errors, instead of its document.
_PRINTED_CODES = {
    "version mismatch": 18,
    "communicate with the nvidia driver": 9,
    "driver not loaded": 9,
    "library not found": 12,
    "insufficient permissions": 4,
    "gpu is lost": 15,
    "reset required": 16,
    "blocked by the operating system": 17,
    "couldn't find libnvidia-ml": 12,
    "unknown error": 999,
}
_HANDLE = re.compile(
    r"device handle for GPU ?\d{0,3}:? ?([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])",
    re.I,
)

_PRINTED = causes(NVML, _BROKEN, "nvidia-smi printed an error and no GPUs: {meaning}.")
_SILENT = CAUSE["nvidia-smi-silent"]


@check("DRV-003", causes=_PRINTED.values())
def nvidia_smi_answers(view: SnapshotView) -> Verdicts:
    works, probe = nvml_code(view) == 0, view.machine.nvidia_smi
    if works and probe is not None and silent(probe):
        late = f"nvidia-smi gave no answer within {probe.seconds:.0f} s"
        yield _SILENT.found(evidence=[view.evidence("machine.nvidia_smi", probe.reason)], late=late)
        return
    smi = facts_of(probe, "nvidia-smi")
    if view.machine.origin == "nvidia-smi":
        yield _printed(view, smi)
        return
    if is_absent(smi.path) and works:
        paths = ("machine.nvidia_smi.path", "machine.nvml.init_code")
        evidence = [view.evidence(path) for path in paths]
        yield CAUSE["nvidia-smi-missing"].found(evidence=evidence, commands=driver_libraries(view))
        return
    path = need(smi.path, "nvidia-smi")
    hangs = isinstance(smi.exit_code, Unavailable) and smi.exit_code.unavailable == "timeout"
    message = known(smi.message)
    if hangs and works and not stuck_in(probe):
        evidence = [view.evidence("machine.nvidia_smi.message")]
        yield _SILENT.found(about_file(path), evidence, late=message or "nvidia-smi hangs")
        return
    code = need(smi.exit_code, "nvidia-smi's answer")
    if code == 0 and (known(smi.form) is not None or known(smi.gpus) is not None):
        yield Passed(path if known(smi.schema) is None else f"{path}, schema {known(smi.schema)}")
        return
    meaning = NVIDIA_SMI[code].meaning if code in NVIDIA_SMI else "no documented meaning"
    what = f"died by signal {-code}" if code < 0 else f"exits with {code} ({meaning})"
    if code == 0:
        what = (
            "prints something that is not its document (see whether another program has its name)"
        )
    fields = ["exit_code"] + ["message"] * bool(message)
    evidence = [view.evidence(f"machine.nvidia_smi.{field}") for field in fields]
    cause = (
        CAUSE["nvidia-smi-fails-alone"]
        if works and code not in _FAULTS
        else CAUSE["nvidia-smi-fails"]
    )
    yield cause.found(about_file(path), evidence, what=what, code=code)


def _printed(view: SnapshotView, smi: NvidiaSmi) -> Finding:
    text = known(smi.message)
    if text is None or known(smi.form) is not None:
        raise Skip("nvidia-smi was not run: the snapshot was made from what it once printed")
    evidence = [view.evidence("machine.nvidia_smi.message")]
    if is_absent(smi.path):
        return CAUSE["nvidia-smi-not-there"].found(evidence=evidence)
    codes = (code for printed, code in _PRINTED_CODES.items() if printed in text.lower())
    code = next(codes, 999)
    handle = _HANDLE.search(text)
    address = f"{int(handle[1], 16):04x}:{handle[2].lower()}" if handle else None
    return _PRINTED[NVML[code].key].found(about_device_at("gpu", address), evidence, code=code)


@check("DRV-011")
def document_is_whole(view: SnapshotView) -> Verdicts:
    smi = facts_of(view.machine.nvidia_smi, "nvidia-smi")
    if known(smi.form) not in ("xml", "text"):
        raise Skip("nvidia-smi's document: there is none")
    if not smi.cut:
        yield Passed("it is complete")
        return
    seen, attached = len(known(smi.gpus) or []), known(smi.gpu_count)
    of = f" of {attached}" if attached and attached > seen else ""
    advice = Remedy("Write it into a file and send that.", ["nvidia-smi -q > nvidia-smi.txt 2>&1"])
    if view.machine.origin != "nvidia-smi":
        text = "See whether it ends there again, and whether another program has its name."
        advice = Remedy(text, ["nvidia-smi -q -x | tail -3", "type -a nvidia-smi", NVRM_LOG])
    evidence = [view.evidence("machine.nvidia_smi.cut", f"after {seen} GPUs{of}")]
    yield CAUSE["document-cut"].found(evidence=evidence, advice=advice, seen=seen, of=of)

"""Checks on nvidia-smi: does it answer, and is the document that it wrote complete."""

from __future__ import annotations

import re

from ...facts.gpu import NvidiaSmi
from ..driver_state import NO_GPUS, NVRM_LOG, driver_libraries
from ..on_the_bus import NVIDIA_DEVICES
from ..reading import Probe, Skip, SnapshotView, Unavailable, facts_of, is_absent, known, need
from ..verdicts import (
    Evidence,
    Finding,
    Passed,
    Remedy,
    Verdict,
    Verdicts,
    about_device_at,
    about_file,
    check,
    fail,
    warn,
)
from .error_codes import NVIDIA_SMI, NVML, causes
from .hang import silent, stuck_in
from .nvml import nvml_code

_BROKEN = "nvidia-smi does not work"
_BY_HAND = "Run it by hand, and look at the kernel's log."
_RUN = ("nvidia-smi; echo $?", NVRM_LOG)
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
_PRINTED_OTHER = fail(
    "other-error", _BROKEN, "nvidia-smi printed an error and no GPUs.", _BY_HAND, *_RUN
)
_NOT_THERE = fail(
    "nvidia-smi-not-there",
    "there was no nvidia-smi",
    "There was no nvidia-smi: the driver is not installed, or a container was started without it.",
    "Install the NVIDIA driver; start a container with the GPUs, and with the driver capability"
    " utility; in WSL nvidia-smi is in a directory of its own.",
    NVIDIA_DEVICES,
    "cat /proc/driver/nvidia/version",
    "ls /usr/lib/wsl/lib/nvidia-smi",
)
_MISSING = warn(
    "nvidia-smi-missing",
    "nvidia-smi is not installed",
    "nvidia-smi is not installed though the driver works: scripts and health checks that call it"
    " will fail.",
    "Install the driver's tools (in a container: start it with the driver capability utility).",
)
_SILENT = warn(
    "nvidia-smi-silent",
    "nvidia-smi does not answer",
    "{late}, though NVML answers: scripts and health checks that call it hang.",
    "See where it hangs, and whether another program has its name.",
    "type -a nvidia-smi",
    "timeout 60 strace -f nvidia-smi -L",
    NVRM_LOG,
)
_NONSENSE = warn(
    "not-nvidia-smi",
    "nvidia-smi prints something else",
    "nvidia-smi reports success and prints something that is not its document: scripts that"
    " rely on it read nonsense.",
    "See whether another program has its name.",
    "type -a nvidia-smi",
)
_FAILS = fail("nvidia-smi-fails", _BROKEN, "nvidia-smi {what}.", _BY_HAND, *_RUN)
_FAILS_ALONE = warn(
    "nvidia-smi-fails-alone",
    _BROKEN,
    "nvidia-smi {what}, though NVML answers: scripts that call it will fail.",
    _BY_HAND,
    *_RUN,
)


@check(
    "DRV-003",
    title="nvidia-smi answers",
    causes=[
        *(*_PRINTED.values(), _PRINTED_OTHER, _NOT_THERE, _MISSING, _SILENT),
        *(_NONSENSE, _FAILS, _FAILS_ALONE),
    ],
    about="nvidia-smi is what people and scripts ask first. Where it is missing or broken while NVML works,"
    " training is not affected, yet scripts, health checks and container tools are: a warning.",
    sources=["nvidia-smi(1), RETURN VALUE"],
    follows=(*NO_GPUS, "DRV-010", "GPU-001", "KRN-009", "KRN-013"),
)
def nvidia_smi_answers(view: SnapshotView) -> Verdicts:
    works, probe = nvml_code(view) == 0, view.machine.nvidia_smi
    if works and probe is not None and silent(probe):
        yield _silent(view, probe, NvidiaSmi())
        return
    smi = facts_of(probe, "nvidia-smi")
    if view.machine.origin == "nvidia-smi":
        yield _printed(view, smi)
        return
    if is_absent(smi.path) and works:
        evidence = [view.evidence("machine.nvidia_smi.path"), _nvml_works(view)]
        yield _MISSING.found(evidence=evidence, commands=driver_libraries(view))
        return
    path = need(smi.path, "nvidia-smi")
    late = isinstance(smi.exit_code, Unavailable) and smi.exit_code.unavailable == "timeout"
    if late and works and probe is not None and not stuck_in(probe):
        yield _silent(view, probe, smi)
        return
    code = need(smi.exit_code, "nvidia-smi's answer")
    if code != 0:
        yield _failed(view, smi, code, works)
    elif known(smi.form) is None and known(smi.gpus) is None:
        fields = ("path", "message")
        evidence = [view.evidence(f"machine.nvidia_smi.{field}") for field in fields]
        yield _NONSENSE.found(about_file(path), evidence)
    else:
        yield Passed(path if known(smi.schema) is None else f"{path}, schema {known(smi.schema)}")


def _printed(view: SnapshotView, smi: NvidiaSmi) -> Verdict:
    """Judges a document that was sent: nvidia-smi was not run here."""
    text = known(smi.message)
    if text is None or known(smi.form) is not None:
        raise Skip("nvidia-smi was not run: the snapshot was made from what it once printed")
    evidence = [view.evidence("machine.nvidia_smi.message")]
    if is_absent(smi.path):
        return _NOT_THERE.found(evidence=evidence)
    codes = (code for words, code in _PRINTED_CODES.items() if words in text.lower())
    code = next(codes, None)
    cause = _PRINTED_OTHER if code is None else _PRINTED[NVML[code].key]
    handle = _HANDLE.search(text)
    address = f"{int(handle[1], 16):04x}:{handle[2].lower()}" if handle else None
    return cause.found(about_device_at("gpu", address), evidence, code=code)


def _silent(view: SnapshotView, probe: Probe[NvidiaSmi], smi: NvidiaSmi) -> Finding:
    """By nvidia-smi's own deadline, or by that of the process which waited for it."""
    message = known(smi.message)
    evidence = (
        view.evidence("machine.nvidia_smi.message")
        if message
        else view.evidence("machine.nvidia_smi", probe.reason)
    )
    late = message or f"nvidia-smi gave no answer within {probe.seconds:.0f} s"
    return _SILENT.found(about_file(known(smi.path)), [evidence], late=late)


def _failed(view: SnapshotView, smi: NvidiaSmi, code: int, works: bool) -> Finding:
    meaning = NVIDIA_SMI[code].meaning if code in NVIDIA_SMI else "no documented meaning"
    what = f"died by signal {-code}" if code < 0 else f"exits with {code} ({meaning})"
    evidence = [view.evidence("machine.nvidia_smi.exit_code")]
    if known(smi.message):
        evidence.append(view.evidence("machine.nvidia_smi.message"))
    cause = _FAILS_ALONE if works and code not in _FAULTS else _FAILS
    return cause.found(about_file(known(smi.path)), evidence, what=what, code=code)


CUT = warn(
    "document-cut",
    "nvidia-smi's document was cut",
    "nvidia-smi's document ends in the middle of GPU {seen}{of}: nothing after that is known.",
)
_SENT = Remedy("Write it into a file and send that.", ["nvidia-smi -q > nvidia-smi.txt 2>&1"])
_LIVE = Remedy(
    "See whether it ends there again, and whether another program has its name.",
    [
        "nvidia-smi -q -x | tail -3",
        "type -a nvidia-smi",
        "sudo dmesg | grep -iE 'nvrm|xid|nvidia-smi'",
    ],
)


@check(
    "DRV-011",
    title="nvidia-smi's document is complete",
    causes=[CUT],
    about="A truncated nvidia-smi document may end in the middle of a GPU: nothing is judged of what comes"
    " after, nor of further GPUs. Judged by its end, which XML has to close, and in which text has a GPU's"
    " processes.",
    sources=["nvidia-smi(1)"],
)
def document_is_whole(view: SnapshotView) -> Verdicts:
    smi = facts_of(view.machine.nvidia_smi, "nvidia-smi")
    if known(smi.form) not in ("xml", "text"):
        raise Skip("nvidia-smi's document: there is none")
    if not smi.cut:
        yield Passed("it is complete")
        return
    seen, attached = len(known(smi.gpus) or []), known(smi.gpu_count)
    of = f" of {attached}" if attached and attached > seen else ""
    yield CUT.found(
        evidence=[view.evidence("machine.nvidia_smi.cut", f"after {seen} GPUs{of}")],
        advice=_SENT if view.machine.origin == "nvidia-smi" else _LIVE,
        seen=seen,
        of=of,
    )


def _nvml_works(view: SnapshotView) -> Evidence:
    return view.evidence("machine.nvml.init_code", 0)

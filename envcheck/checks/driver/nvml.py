"""The check on whether NVML answers."""

from __future__ import annotations

from ..container_start import lost_gpus, start_with_gpus
from ..declared import declared_causes
from ..driver_on_disk import driver_files
from ..driver_state import (
    container,
    device_node,
    driver_libraries,
)
from ..gpus import error_code
from ..reading import Kernel, Nvml, SnapshotView, facts_of, facts_or, known, need
from ..verdicts import Passed, Remedy, Verdict, Verdicts, check
from .error_codes import NVML, causes
from .hang import died, silent, stuck_in

CAUSE = declared_causes(__name__)

_CODES = causes(
    NVML, "NVML does not answer", "NVML does not start: {meaning}; no tool can see the GPUs."
)


@check("DRV-001", causes=_CODES.values())
def nvml_answers(view: SnapshotView) -> Verdicts:
    probe = view.machine.nvml
    if stuck_in(probe):
        yield CAUSE["nvml-hangs"].found(evidence=[view.evidence("machine.nvml")])
        return
    if probe is not None and (died(probe) or silent(probe)):
        evidence = [view.evidence("machine.nvml", probe.evidence or probe.reason)]
        yield (CAUSE["nvml-crashes"] if died(probe) else CAUSE["nvml-silent"]).found(
            evidence=evidence, reason=probe.reason
        )
        return
    nvml = facts_of(probe, "NVML")
    code = need(nvml.init_code, "NVML's answer")
    if code == 0 and (trouble := error_code(nvml.gpu_count)) is not None:
        row = NVML.get(trouble, NVML[999])
        advice = Remedy(row.remedy, list(row.commands))
        evidence = [view.evidence("machine.nvml.gpu_count")]
        yield CAUSE["gpus-not-listed"].found(
            (), evidence, advice=advice, code=trouble, meaning=row.meaning
        )
    elif code == 0:
        count, version = known(nvml.gpu_count), known(nvml.driver_version)
        gpus = "" if count is None else f", {count} GPU{'' if count == 1 else 's'}"
        yield Passed(f"driver {version or 'of unknown version'}{gpus}")
    else:
        yield _does_not_start(view, code, known(nvml.init_error))


def nvml_code(view: SnapshotView) -> int | None:
    return known(facts_or(view.machine.nvml, Nvml).init_code)


def _does_not_start(view: SnapshotView, code: int, error: str | None) -> Verdict:
    row, name = NVML.get(code, NVML[999]), error or f"NVML error {code}"
    shown = NVML[code].name if code in NVML else name
    evidence = [view.evidence("machine.nvml.init_code", f"{code} ({shown})")]
    if error:
        evidence.append(view.evidence("machine.nvml.init_error"))
    cause, advice, commands = _CODES[row.key], None, list(row.commands)
    if container(view):
        advice = start_with_gpus(
            view,
            "Start a new container with the GPUs: one whose library is missing was started without them, or"
            " without the driver capability utility.",
        )
    if container(view) and code == 999 and device_node(view, "/dev/nvidiactl"):
        cause, advice = CAUSE["container-lost-gpus"], lost_gpus(view)
    files = driver_files(facts_or(view.machine.kernel, Kernel))
    bare = [one.path for one in files if one.library == "libnvidia-ml" and code == 12]
    if container(view) and bare:
        shown_file = view.evidence("machine.kernel.driver_files", bare[0])
        return CAUSE["driver-libraries-without-links"].found(
            (), [*evidence, shown_file], file=bare[0]
        )
    if code == 12:
        commands += driver_libraries(view)
    return cause.found((), evidence, commands=commands, advice=advice, code=code)

"""The check on whether NVML answers."""

from __future__ import annotations

from ..container_start import lost_gpus, start_with_gpus
from ..driver_on_disk import driver_files
from ..driver_state import (
    HOLDERS,
    NO_DRIVER,
    NVRM_LOG,
    REBOOT,
    container,
    device_node,
    driver_libraries,
)
from ..gpus import error_code
from ..reading import Kernel, Nvml, SnapshotView, facts_of, facts_or, known, need
from ..verdicts import Passed, Remedy, Verdict, Verdicts, check, fail
from .error_codes import NVML, causes
from .hang import died, silent, stuck_in

_CODES = causes(
    NVML, "NVML does not answer", "NVML does not start: {meaning}; no tool can see the GPUs."
)
_NO_LIST = fail(
    "gpus-not-listed",
    "NVML does not list the GPUs",
    "NVML starts and cannot count the GPUs (error {code}): {meaning}; no tool can see them.",
)
_LOST = fail(
    "container-lost-gpus",
    "the container has lost its GPUs",
    "NVML does not start: the device nodes are in this container, and opening them fails, as where it has"
    " lost its GPUs; no tool can see the GPUs.",
)
_NO_LINKS = fail(
    "driver-libraries-without-links",
    "the driver's libraries lack their links",
    "NVML does not start: this container has {file}, and no link of the name libnvidia-ml.so.1 to it, which"
    " NVIDIA's tool makes by ldconfig when a container starts; no tool can see the GPUs.",
    "Run ldconfig in the container. On the host, upgrade NVIDIA's container toolkit, or let it take the"
    ' container\'s own ldconfig (ldconfig = "/sbin/ldconfig" in /etc/nvidia-container-runtime/config.toml).',
    "sudo ldconfig",
    "# on the host: sudo nvidia-ctk config --set nvidia-container-cli.ldconfig=/sbin/ldconfig --in-place",
    source="nvidia-docker#1399",
)
_CRASHES = fail(
    "nvml-crashes",
    "NVML crashes",
    "A process that asks NVML for the GPUs crashes ({reason}): monitoring and schedulers will crash, too.",
    "See whether nvidia-smi comes back, and what the kernel's log says about a GPU; where nothing helps,"
    " reboot, and if it stays so install the driver again.",
    "time nvidia-smi -L",
    NVRM_LOG,
    REBOOT,
)
_HANGS = _CRASHES.variant(
    "nvml-hangs",
    headline="NVML hangs in the kernel",
    sentence="NVML hangs in the kernel: no tool can see the GPUs.",
    remedy="See DRV-010.",
    commands=(HOLDERS, REBOOT),
)
_SILENT = _CRASHES.variant(
    "nvml-silent",
    headline="NVML never answers",
    sentence="A process that asks NVML for the GPUs never answers ({reason}): monitoring cannot either.",
)


@check(
    "DRV-001",
    title="NVML answers",
    causes=[*_CODES.values(), _NO_LIST, _LOST, _NO_LINKS, _HANGS, _CRASHES, _SILENT],
    about="NVML is the library through which nvidia-smi, schedulers and monitoring ask the driver. Where it"
    " does not start, no tool can list a GPU, and CUDA usually does not start either.",
    sources=["nvml.h, nvmlReturn_t; nvidia-container-toolkit#33, #48, #1227"],
    follows=(
        *NO_DRIVER,
        "KRN-006",
        "KRN-008",
        "DRV-010",
        "DRV-002",
        "DRV-009",
        "ENV-002",
        "ENV-009",
    ),
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
    if code == 0 and (trouble := error_code(nvml.gpu_count)) is not None:
        row = NVML.get(trouble, NVML[999])
        advice = Remedy(row.remedy, list(row.commands))
        evidence = [view.evidence("machine.nvml.gpu_count")]
        yield _NO_LIST.found((), evidence, advice=advice, code=trouble, meaning=row.meaning)
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
        cause, advice = _LOST, lost_gpus(view)
    files = driver_files(facts_or(view.machine.kernel, Kernel))
    bare = [one.path for one in files if one.library == "libnvidia-ml" and code == 12]
    if container(view) and bare:
        shown_file = view.evidence("machine.kernel.driver_files", bare[0])
        return _NO_LINKS.found((), [*evidence, shown_file], file=bare[0])
    if code == 12:
        commands += driver_libraries(view)
    return cause.found((), evidence, commands=commands, advice=advice, code=code)

"""Checks on environment variables that hide GPUs, or choose which one is meant."""

from __future__ import annotations

import re

from ..container_start import start_with_gpus
from ..driver_state import NO_GPUS_THERE
from ..reading import NotKnown, Skip, SnapshotView, fact, is_container
from ..system_commands import in_engine
from ..target import gpus_present, need_gpus, variables
from ..verdicts import Cause, Finding, Passed, Remedy, Verdicts, about, check, fail, warn
from ..visible import VARIABLE, devices, visible
from .common import CUDA_GUIDE, setting_evidence
from .mig import FAILS, NONE_NAMED, SEVERAL_NAMED, one_of_several

_TOOLKIT = "NVIDIA Container Toolkit's documentation, environment variables"
_HIDES = f"{VARIABLE} hides GPUs"
_HIDES_ALL = f"{VARIABLE} {{what}}: it hides all {{total}} GPUs from CUDA."
_CUT_SHORT = (
    f"{VARIABLE}={{value}} ends at {{entry}}, which names no GPU: CUDA sees only the {{left}}"
    " before it."
)
_TWICE = f"{VARIABLE}={{value}} names a GPU twice: CUDA does not define what that means."
_UNSET = (
    "Unset it, or name GPUs that are there (index or UUID, separated by commas).",
    (f"unset {VARIABLE}", "nvidia-smi -L"),
)
_BY_SLURM = (
    "Slurm gave this job no GPU: ask for some, and leave the variable to Slurm.",
    ("srun --gres=gpu:1 nvidia-smi -L",),
)
HIDES_ALL = Cause("hides-all", "fail", _HIDES, _HIDES_ALL, *_UNSET)
NO_GPU_OF_SLURM = Cause("no-gpu-of-slurm", "fail", _HIDES, _HIDES_ALL, *_BY_SLURM)
CUT_SHORT = Cause("cut-short", "warn", _HIDES, _CUT_SHORT, *_UNSET)
NAMED_TWICE = Cause("named-twice", "warn", _HIDES, _TWICE, *_UNSET)
OTHER_ORDER = warn(
    "counted-otherwise",
    f"{VARIABLE} counts GPUs otherwise than nvidia-smi",
    f"{VARIABLE}={{value}}: CUDA counts the fastest GPU first, and its {{index}} is {{name}} at {{address}},"
    " which nvidia-smi counts as {other}.",
    "Let CUDA count by PCI address, as nvidia-smi does; or name GPUs by their UUIDs.",
    "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
    "nvidia-smi -L",
)


@check(
    "ENV-001",
    title="CUDA_VISIBLE_DEVICES leaves the GPUs visible",
    causes=[
        HIDES_ALL,
        NO_GPU_OF_SLURM,
        CUT_SHORT,
        NAMED_TWICE,
        OTHER_ORDER,
        SEVERAL_NAMED,
        NONE_NAMED,
        FAILS,
    ],
    about="CUDA shows a process only the devices that this variable names, and stops at the first entry"
    " that names none: empty, -1, an index beyond the last GPU, a UUID of another machine, or a word"
    " such as 'all'. CUDA shows a process only one MIG instance, however many the variable names.",
    sources=(
        CUDA_GUIDE,
        "NVIDIA Multi-Instance GPU User Guide, CUDA Device Enumeration",
        "pytorch#102715, #130181, #131650",
        "Slurm documentation, Generic Resource Scheduling: GPU management",
    ),
    follows=NO_GPUS_THERE,
)
def visible_devices(view: SnapshotView) -> Verdicts:
    values = variables(view)
    value = values.get(VARIABLE)
    one_of_many = one_of_several(view)
    if value is None:
        yield one_of_many or Passed(f"{VARIABLE} is not set")
        return
    need_gpus(view)
    total = len(devices(view)[0])
    choice = visible(view)
    subjects = about("variable", VARIABLE)
    evidence = [setting_evidence(view, VARIABLE), view.evidence("seen.cuda.device_count", total)]
    if not choice.chosen:
        what = f"is {value!r}, which names no GPU of this machine" if value.strip() else "is empty"
        if _in_container(view) and value.strip()[:1].isdecimal():
            what += f" (a container counts its own GPUs, from 0 to {total - 1})"
        by_slurm = "SLURM_JOB_ID" in values and value.strip() in ("", "NoDevFiles")
        cause = NO_GPU_OF_SLURM if by_slurm else HIDES_ALL
        yield cause.found(subjects, evidence, what=what, total=total)
    elif choice.stopped_at is not None:
        entry, before = choice.stopped_at or "(empty)", len(choice.chosen)
        yield CUT_SHORT.found(subjects, evidence, value=value, entry=entry, left=before)
    elif not choice.certain and len(set(choice.chosen)) < len(choice.chosen):
        yield NAMED_TWICE.found(subjects, evidence, value=value)
    elif not choice.certain:
        raise NotKnown(f"which GPUs {VARIABLE}={value} means on this machine")
    else:
        passed = Passed(f"{VARIABLE}={value}: {len(choice.chosen)} of {total}")
        yield one_of_many or _other_order(view, value) or passed


def _other_order(view: SnapshotView, value: str) -> Finding | None:
    """The first number that means another GPU to CUDA than to nvidia-smi."""
    everything = devices(view)[0]
    by_bus = sorted(everything, key=lambda one: one.address)
    if not all(one.address for one in everything):
        return None
    for entry in (part.strip() for part in value.split(",")):
        one = everything[int(entry)] if entry.isdecimal() and len(entry) < 4 else None
        if one is not None and by_bus[int(entry)].name != one.name:
            return OTHER_ORDER.found(
                about("variable", VARIABLE),
                [setting_evidence(view, VARIABLE), view.evidence("seen.cuda.devices")],
                value=value,
                index=entry,
                name=one.name,
                address=one.address,
                other=by_bus.index(one),
            )
    return None


GIVEN = "NVIDIA_VISIBLE_DEVICES"
_NO_GPU = "the container was given no GPU"
NONE_GIVEN = fail(
    "no-gpu-given",
    _NO_GPU,
    f"This container was started with {GIVEN}={{value}}: it has no GPU.",
    "Start it with GPUs.",
)
IGNORED = fail(
    "runtime-ignores-request",
    _NO_GPU,
    f"{GIVEN}={{value}} asks for GPUs, and neither a device node nor a library of the driver is in this"
    " container: what started it does not use NVIDIA's runtime.",
    "Start it with NVIDIA's runtime, or by CDI.",
)


@check(
    "ENV-002",
    title="The container was given its GPUs",
    causes=[NONE_GIVEN, IGNORED],
    about="The container toolkit reads NVIDIA_VISIBLE_DEVICES when a container starts: none gives it the"
    " driver without a GPU, void or nothing gives it neither. Any runtime but NVIDIA's ignores it, and with"
    " CDI the toolkit itself sets void.",
    sources=(_TOOLKIT, "k8s-device-plugin#23, #107"),
    follows=("PCI-001",),
)
def container_devices(view: SnapshotView) -> Verdicts:
    value = _of_container(view, GIVEN)
    if is_container(view.target):
        raise Skip("seen from outside, too: BND-002 compares")
    subjects, evidence = about("variable", GIVEN), [setting_evidence(view, GIVEN)]
    asks_for_gpus = value.strip().lower() not in ("", "void", "none")
    sees_any = fact(view.seen.cuda, "device_count") or fact(view.seen.nvml, "gpu_count")
    if asks_for_gpus and not sees_any and _nothing_came(view):
        places = ("seen.kernel.device_nodes", "seen.host.container")
        evidence += map(view.evidence, places)
        advice = start_with_gpus(view, IGNORED.remedy)
        yield IGNORED.found(subjects, evidence, advice=advice, value=value)
    elif asks_for_gpus or sees_any:
        yield Passed(f"{GIVEN}={value}{'' if asks_for_gpus else ', and the GPUs came another way'}")
    else:
        advice = start_with_gpus(view, NONE_GIVEN.remedy)
        yield NONE_GIVEN.found(subjects, evidence, advice=advice, value=value or "(empty)")


def _of_container(view: SnapshotView, name: str) -> str:
    """A variable's value in a container; raises Skip outside of one, and if it is not set."""
    value = variables(view).get(name)
    if not _in_container(view):
        raise Skip("not in a container")
    if value is None:
        raise Skip(f"{name} is not set")
    return value


def _nothing_came(view: SnapshotView) -> bool:
    """The machine has a GPU, and neither a device node nor a library of its driver is in the container."""
    nodes = fact(view.seen.kernel, "device_nodes")
    return nodes == [] and not fact(view.seen.cuda, "library_path") and bool(gpus_present(view))


def _in_container(view: SnapshotView) -> bool:
    return fact(view.seen.host, "container") is not None


CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
_OMITS = f"{CAPABILITIES}={{value}} leaves out {{lacking}}: "
_LACKS_PARTS = "the container lacks parts of the driver"
_NO_NVML = f"{_OMITS}nvidia-smi and NVML are missing."
NO_COMPUTE = fail(
    "no-compute", _LACKS_PARTS, f"{_OMITS}no framework finds a GPU.", "Start it with both."
)
NVML_FAILS = fail("nvml-fails", _LACKS_PARTS, _NO_NVML, NO_COMPUTE.remedy)
NO_UTILITY = warn("no-utility", _LACKS_PARTS, _NO_NVML, NO_COMPUTE.remedy)
# What a program may want besides, by the capability that brings it.
_OTHERS = {"video": "video (NVENC, NVDEC)", "graphics": "graphics (OpenGL, Vulkan)"}


@check(
    "ENV-009",
    title="The container has the driver's compute part",
    causes=[NO_COMPUTE, NVML_FAILS, NO_UTILITY],
    about="NVIDIA_DRIVER_CAPABILITIES says which driver libraries the container toolkit mounts: without"
    " compute there is no libcuda, without utility no nvidia-smi and no NVML. Judged in a container if it is"
    " set and CUDA or NVML does not start.",
    sources=(_TOOLKIT,),
    follows=("PCI-001",),
)
def driver_capabilities(view: SnapshotView) -> Verdicts:
    value = _of_container(view, CAPABILITIES)
    if not value:
        raise Skip(f"{CAPABILITIES} is not set")
    words = set(re.split(r"[\s,]+", value.strip().lower()))
    codes = {
        "compute": fact(view.seen.cuda, "init_code"),
        "utility": fact(view.seen.nvml, "init_code"),
    }
    lacking = [word for word, code in codes.items() if not words & {"all", word} and code != 0]
    if not lacking:
        others = [parts for word, parts in _OTHERS.items() if not words & {"all", word}]
        left_out = (
            f" leaves out {' and '.join(others)}: a program that needs these wants a container that was"
            " started with all"
        )
        yield Passed(f"{CAPABILITIES}={value}{left_out if others else ''}", note=bool(others))
        return
    without_nvml = NVML_FAILS if codes["utility"] is not None else NO_UTILITY
    yield (NO_COMPUTE if "compute" in lacking else without_nvml).found(
        about("variable", CAPABILITIES),
        [setting_evidence(view, CAPABILITIES)],
        advice=Remedy("Start the container with both.", in_engine(view, "capabilities")),
        value=value,
        lacking=" and ".join(lacking),
    )

"""Checks on environment variables that hide GPUs, or choose which one is meant."""

from __future__ import annotations

import re

from ..container_start import start_with_gpus
from ..declared import declared_causes
from ..reading import NotKnown, Skip, SnapshotView, fact, is_container
from ..system_commands import in_engine
from ..target import gpus_present, need_gpus, variables
from ..verdicts import Finding, Passed, Remedy, Verdicts, about, check
from ..visible import VARIABLE, devices, visible
from .common import setting_evidence
from .mig import FAILS, NONE_NAMED, SEVERAL_NAMED, one_of_several

CAUSE = declared_causes(__name__)


@check("ENV-001", causes=[SEVERAL_NAMED, NONE_NAMED, FAILS])
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
        cause = CAUSE["no-gpu-of-slurm"] if by_slurm else CAUSE["hides-all"]
        yield cause.found(subjects, evidence, what=what, total=total)
    elif choice.stopped_at is not None:
        entry, before = choice.stopped_at or "(empty)", len(choice.chosen)
        yield CAUSE["cut-short"].found(subjects, evidence, value=value, entry=entry, left=before)
    elif not choice.certain and len(set(choice.chosen)) < len(choice.chosen):
        yield CAUSE["named-twice"].found(subjects, evidence, value=value)
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
            return CAUSE["counted-otherwise"].found(
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


@check("ENV-002")
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
        advice = start_with_gpus(view, CAUSE["runtime-ignores-request"].remedy)
        yield CAUSE["runtime-ignores-request"].found(subjects, evidence, advice=advice, value=value)
    elif asks_for_gpus or sees_any:
        yield Passed(f"{GIVEN}={value}{'' if asks_for_gpus else ', and the GPUs came another way'}")
    else:
        advice = start_with_gpus(view, CAUSE["no-gpu-given"].remedy)
        yield CAUSE["no-gpu-given"].found(
            subjects, evidence, advice=advice, value=value or "(empty)"
        )


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
# What a program may want besides, by the capability that brings it.
_OTHERS = {"video": "video (NVENC, NVDEC)", "graphics": "graphics (OpenGL, Vulkan)"}


@check("ENV-009")
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
    without_nvml = CAUSE["nvml-fails"] if codes["utility"] is not None else CAUSE["no-utility"]
    yield (CAUSE["no-compute"] if "compute" in lacking else without_nvml).found(
        about("variable", CAPABILITIES),
        [setting_evidence(view, CAPABILITIES)],
        advice=Remedy("Start the container with both.", in_engine(view, "capabilities")),
        value=value,
        lacking=" and ".join(lacking),
    )

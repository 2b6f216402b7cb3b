"""Checks on environment variables that hide GPUs, or choose which one is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import NotKnown, Skip
from ...facts.view import SnapshotView, is_container
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..container_start import start_with_gpus
from ..driver_state import NO_GPUS_THERE
from ..registry import check
from ..system_commands import in_engine
from ..target import framework_facts, gpus_present, need_gpus, sees_gpus, variables
from ..visible import VARIABLE, devices, visible
from .common import CUDA_GUIDE, misset, told
from .mig import one_of_several

_TOOLKIT = "NVIDIA Container Toolkit's documentation, environment variables"


@check(
    "ENV-001",
    title="CUDA_VISIBLE_DEVICES leaves the GPUs visible",
    problem="CUDA_VISIBLE_DEVICES hides GPUs",
    about=(
        "CUDA shows a process only the devices that this variable names, in its order, and stops at the "
        "first entry that names none: empty, -1, an index beyond the last GPU, a UUID of another machine, "
        "or a word such as 'all'. Tools that ask the driver still list every GPU. A failure where nothing "
        "is left, a warning where an entry cuts the list short; a list of GPUs that are there is a choice "
        "and passes. Of MIG instances CUDA shows a process one, however many the variable names: a warning "
        "where it names several, or none and a framework was seen to get one of several; a failure where a "
        "framework fails over that ('device < num_gpus')."
    ),
    sources=(
        CUDA_GUIDE,
        "NVIDIA Multi-Instance GPU User Guide, CUDA Device Enumeration",
        "pytorch#102715, #130181, #131650",
        "Slurm documentation, Generic Resource Scheduling: GPU management",
    ),
    follows=NO_GPUS_THERE,
)
def visible_devices(view: SnapshotView) -> Iterator[Verdict]:
    values = variables(view)
    value = values.get(VARIABLE)
    one_of_many = one_of_several(view)
    if value is None:
        yield one_of_many or Passed(f"{VARIABLE} is not set")
        return
    need_gpus(view)
    total = len(devices(view)[0])
    choice = visible(view)
    evidence = [told(view, VARIABLE), view.evidence("seen.cuda.device_count", total)]
    remedy = _name_others(view, value)
    if not choice.chosen:
        what = (
            "is empty" if not value.strip() else f"is {value!r}, which names no GPU of this machine"
        )
        if _in_container(view) and value.strip()[:1].isdecimal():
            what += f" (a container counts those that it was given, from 0 to {total - 1})"
        yield Finding(
            "fail",
            f"{VARIABLE} {what}: it hides all {total} GPU{'' if total == 1 else 's'} from CUDA.",
            subjects=about("variable", VARIABLE),
            evidence=evidence,
            remedy=remedy,
        )
    elif choice.stopped_at is not None:
        left = len(choice.chosen)
        entry = choice.stopped_at or "(empty)"
        yield Finding(
            "warn",
            f"{VARIABLE}={value} ends at {entry}, which names no GPU: CUDA sees only the {left} before it.",
            subjects=about("variable", VARIABLE),
            evidence=evidence,
            remedy=remedy,
        )
    elif not choice.certain and len(set(choice.chosen)) < len(choice.chosen):
        yield Finding(
            "warn",
            f"{VARIABLE}={value} names a GPU twice: what CUDA makes of that is not defined.",
            subjects=about("variable", VARIABLE),
            evidence=evidence,
            remedy=remedy,
        )
    elif not choice.certain:
        raise NotKnown(f"which GPUs {VARIABLE}={value} means on this machine")
    elif one_of_many is not None:
        yield one_of_many
    else:
        yield Passed(f"{VARIABLE}={value}: {len(choice.chosen)} of {total}")


def _name_others(view: SnapshotView, value: str) -> Remedy:
    """In a job of Slurm's the variable is Slurm's: empty, or NoDevFiles, where it gave the job no GPU."""
    if "SLURM_JOB_ID" in variables(view) and value.strip() in ("", "NoDevFiles"):
        return Remedy(
            "Slurm gave this job no GPU: ask for some, and leave the variable to Slurm.",
            ["srun --gres=gpu:1 nvidia-smi -L", "sbatch --gres=gpu:1 SCRIPT"],
        )
    return Remedy(
        "Unset it, or name GPUs that are there (index or UUID, separated by commas).",
        [f"unset {VARIABLE}", "nvidia-smi -L"],
    )


@check(
    "ENV-002",
    title="The container was given its GPUs",
    problem="the container was given no GPU",
    about=(
        "The container toolkit reads NVIDIA_VISIBLE_DEVICES when a container starts: none gives it the "
        "driver without a GPU, void or nothing gives it neither. A failure where it says so and the "
        "container sees no GPU; with CDI the toolkit itself sets void and brings the GPUs along another "
        "way. A failure, too, where it names GPUs and nothing of the driver came: images and device "
        "plugins set it, and any runtime but NVIDIA's ignores it."
    ),
    sources=(_TOOLKIT, "k8s-device-plugin#23, #107"),
    follows=("PCI-001",),
)
def container_devices(view: SnapshotView) -> Iterator[Verdict]:
    value = variables(view).get("NVIDIA_VISIBLE_DEVICES")
    if not _in_container(view):
        raise Skip("not in a container")
    if value is None:
        raise Skip("NVIDIA_VISIBLE_DEVICES is not set")
    if is_container(view.target):
        raise Skip("seen from outside, too: BND-002 compares")
    if value.strip().lower() not in ("", "void", "none"):
        if _nothing_came(view):
            yield _ignored(view, value)
        else:
            yield Passed(f"NVIDIA_VISIBLE_DEVICES={value}")
        return
    if _sees_any(view):
        yield Passed(f"NVIDIA_VISIBLE_DEVICES={value}, and the GPUs came another way")
        return
    yield Finding(
        "fail",
        f"This container was started with NVIDIA_VISIBLE_DEVICES={value or '(empty)'}: it has no GPU.",
        subjects=about("variable", "NVIDIA_VISIBLE_DEVICES"),
        evidence=[told(view, "NVIDIA_VISIBLE_DEVICES")],
        remedy=start_with_gpus(view, "Start it with GPUs."),
    )


def _nothing_came(view: SnapshotView) -> bool:
    """The machine has a GPU, and neither a device node nor a library of its driver is in the container."""
    if _sees_any(view) or not gpus_present(view):
        return False
    kernel, cuda = view.seen.kernel, view.seen.cuda
    nodes = None if kernel is None or kernel.facts is None else known(kernel.facts.device_nodes)
    mapped = None if cuda is None or cuda.facts is None else known(cuda.facts.library_path)
    return nodes is not None and not nodes and mapped is None


def _ignored(view: SnapshotView, value: str) -> Finding:
    return Finding(
        "fail",
        f"NVIDIA_VISIBLE_DEVICES={value} asks for GPUs, and neither a device node nor a library of the driver"
        " is in this container: what started it does not use NVIDIA's runtime.",
        subjects=about("variable", "NVIDIA_VISIBLE_DEVICES"),
        evidence=[
            told(view, "NVIDIA_VISIBLE_DEVICES"),
            view.evidence("seen.kernel.device_nodes"),
            view.evidence("seen.host.container"),
        ],
        remedy=start_with_gpus(view, "Start it with NVIDIA's runtime, or by CDI."),
    )


def _in_container(view: SnapshotView) -> bool:
    host = view.seen.host
    return host is not None and host.facts is not None and known(host.facts.container) is not None


def _sees_any(view: SnapshotView) -> bool:
    cuda, nvml = view.seen.cuda, view.seen.nvml
    counts = [
        None if cuda is None or cuda.facts is None else known(cuda.facts.device_count),
        None if nvml is None or nvml.facts is None else known(nvml.facts.gpu_count),
    ]
    return any(counts)


@check(
    "ENV-003",
    title="CUDA counts GPUs in the order nvidia-smi does",
    problem="CUDA and nvidia-smi number the GPUs differently",
    about=(
        "Without CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA puts the fastest GPU first, while nvidia-smi counts by "
        "PCI address. On a machine with different GPUs, index 0 is then not the same GPU for both, and "
        "CUDA_VISIBLE_DEVICES picks another one than its user meant. A warning where the two orders differ."
    ),
    sources=(CUDA_GUIDE,),
    follows=NO_GPUS_THERE,
)
def device_order(view: SnapshotView) -> Iterator[Verdict]:
    order = variables(view).get("CUDA_DEVICE_ORDER")
    if order == "PCI_BUS_ID":
        yield Passed("CUDA_DEVICE_ORDER=PCI_BUS_ID")
        return
    need_gpus(view)
    listed, in_order = devices(view)
    names = list(dict.fromkeys(device.name for device in listed if device.name))
    if len(names) < 2 and len(listed) > 1 and not all(device.name for device in listed):
        raise NotKnown("whether all GPUs are of one kind")
    if len(names) < 2:
        yield Passed("all GPUs are of one kind")
        return
    addresses = [device.address for device in listed]
    if in_order and all(addresses) and addresses == sorted(addresses):
        yield Passed("CUDA counts them by PCI address here, as nvidia-smi does")
        return
    yield Finding(
        "warn",
        f"This machine has different GPUs ({', '.join(names)}) and CUDA_DEVICE_ORDER is "
        f"{order or 'not set'}: CUDA's index of a GPU is not nvidia-smi's.",
        subjects=about("variable", "CUDA_DEVICE_ORDER"),
        evidence=[
            *([told(view, "CUDA_DEVICE_ORDER")] if order is not None else []),
            view.evidence("seen.cuda.devices", ", ".join(names)),
        ],
        remedy=Remedy("Set it, before CUDA starts.", ["export CUDA_DEVICE_ORDER=PCI_BUS_ID"]),
    )


@check(
    "ENV-008",
    title="TensorFlow may say why it sees no GPU",
    problem="TensorFlow's messages are switched off",
    about=(
        "TF_CPP_MIN_LOG_LEVEL of 2 or more hides warnings, and with them the one line in which TensorFlow "
        "says which library it could not load. envcheck's own look at TensorFlow ignores the variable. A "
        "warning where TensorFlow sees no GPU on a machine that has some; otherwise a matter of taste."
    ),
    sources=("tensorflow#85311, #96707",),
    follows=(*NO_GPUS_THERE, "DRV-004", "FRM-005", "ENV-001", "FRM-002"),
)
def hidden_log(view: SnapshotView) -> Iterator[Verdict]:
    value = variables(view).get("TF_CPP_MIN_LOG_LEVEL")
    if value is None or not value.strip().isdecimal() or int(value) < 2:
        yield Passed("TensorFlow's warnings are not hidden")
        return
    tensorflow = [one for one in framework_facts(view) if one.name == "tensorflow" and one.imported]
    blind = [one for one in tensorflow if known(one.gpus) is not None and not sees_gpus(one)]
    if not blind:
        yield Passed(f"TF_CPP_MIN_LOG_LEVEL={value}")
        return
    need_gpus(view)
    yield misset(
        view,
        "TF_CPP_MIN_LOG_LEVEL",
        f"TF_CPP_MIN_LOG_LEVEL={value} hides the reason why TensorFlow sees no GPU.",
        "Unset it until the GPUs are seen.",
    )


@check(
    "ENV-009",
    title="The container has the driver's compute part",
    problem="the container lacks parts of the driver",
    about=(
        "NVIDIA_DRIVER_CAPABILITIES says which driver libraries the container toolkit mounts: without "
        "compute there is no libcuda, and no framework finds a GPU; without utility there is no "
        "nvidia-smi and no NVML. Judged in a container where it is set: a failure where CUDA or NVML does "
        "not start for want of it, a warning without utility where nobody asked NVML."
    ),
    sources=(_TOOLKIT,),
    follows=("PCI-001",),
)
def driver_capabilities(view: SnapshotView) -> Iterator[Verdict]:
    value = variables(view).get("NVIDIA_DRIVER_CAPABILITIES")
    if not _in_container(view):
        raise Skip("not in a container")
    if not value:
        raise Skip("NVIDIA_DRIVER_CAPABILITIES is not set")
    words = set(re.split(r"[\s,]+", value.strip().lower()))
    cuda = view.seen.cuda
    starts = cuda is not None and cuda.facts is not None and known(cuda.facts.init_code) == 0
    lacking = (
        [] if "all" in words else [word for word in ("compute", "utility") if word not in words]
    )
    if "compute" in lacking and starts:
        lacking.remove("compute")
    nvml = view.seen.nvml
    answer = None if nvml is None or nvml.facts is None else known(nvml.facts.init_code)
    if "utility" in lacking and answer == 0:
        lacking.remove("utility")
    if not lacking:
        yield Passed(f"NVIDIA_DRIVER_CAPABILITIES={value}")
        return
    effect = (
        "no framework finds a GPU" if "compute" in lacking else "nvidia-smi and NVML are missing"
    )
    yield Finding(
        "fail" if "compute" in lacking or answer is not None else "warn",
        f"NVIDIA_DRIVER_CAPABILITIES={value} leaves out {' and '.join(lacking)}: {effect}.",
        subjects=about("variable", "NVIDIA_DRIVER_CAPABILITIES"),
        evidence=[told(view, "NVIDIA_DRIVER_CAPABILITIES")],
        remedy=Remedy("Start the container with both.", in_engine(view, "capabilities")),
    )

"""Checks that lay the driver's accounts side by side: NVML, nvidia-smi, PCI and CUDA."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Gpu, NvidiaSmi, Nvml
from ...facts.kernel import Kernel
from ...facts.pci import PciDevice
from ...findings.subjects import about_device, gpu_subject, joined
from ..declared import declared_causes
from ..driver_state import container, on_wsl
from ..gpus import plural
from ..nvidia_devices import kept_closed
from ..reading import (
    CannotJudge,
    Skip,
    SnapshotView,
    facts_of,
    facts_or,
    is_absent,
    known,
    need,
    show,
)
from ..verdicts import Evidence, Finding, Passed, Verdicts, about, check, unjudged, word
from ..visible import VARIABLE, devices, setting, visible

CAUSE = declared_causes(__name__)

# What does not change from one moment to the next, and the difference that rounding may make.
_SAME_FIELDS = {"uuid": 0, "name": 0, "memory_total_mib": 1, "mig_enabled": 0}


@check("DRV-006")
def nvml_and_smi_agree(view: SnapshotView) -> Verdicts:
    nvml = facts_of(view.machine.nvml, "NVML")
    smi = facts_of(view.machine.nvidia_smi, "nvidia-smi")
    need(nvml.gpus, "NVML's GPUs")
    need(smi.gpus, "nvidia-smi's GPUs")
    differences = list(_differences(view, nvml, smi))
    if not differences:
        yield Passed("versions, count, addresses, UUIDs, names, memory and MIG are the same")
        return
    evidence = [one for _, pair in differences for one in pair]
    fields = ", ".join(dict.fromkeys(name for name, _ in differences))
    yield CAUSE["nvml-smi-disagree"].found(evidence=evidence, fields=fields)


def _differences(
    view: SnapshotView, nvml: Nvml, smi: NvidiaSmi
) -> Iterator[tuple[str, list[Evidence]]]:
    for field, name in (("driver_version", "driver version"), ("gpu_count", "number of GPUs")):
        if _differ(getattr(nvml, field), getattr(smi, field), 0):
            paths = (f"machine.nvml.{field}", f"machine.nvidia_smi.{field}")
            yield name, [view.evidence(path) for path in paths]
    theirs = {gpu.pci_address: (place, gpu) for place, gpu in enumerate(known(smi.gpus) or [])}
    for place, gpu in enumerate(known(nvml.gpus) or []):
        other_place, other = theirs.get(gpu.pci_address, (0, None))
        if known(gpu.pci_address) is None or other is None:
            continue
        for field, rounding in _SAME_FIELDS.items():
            first, second = getattr(gpu, field), getattr(other, field)
            if _differ(first, second, rounding):
                one = view.evidence(f"machine.nvml.gpus[{place}].{field}", first)
                two = view.evidence(f"machine.nvidia_smi.gpus[{other_place}].{field}", second)
                yield f"{field} of {gpu_subject(gpu).text}", [one, two]


def _differ(here: object, there: object, rounding: int) -> bool:
    first, second = known(here), known(there)
    if first is None or second is None:
        return False
    if rounding and isinstance(first, int) and isinstance(second, int):
        return abs(first - second) > rounding
    return first != second


@check("DRV-007")
def chain_drops_no_gpu(view: SnapshotView) -> Verdicts:
    nvml = facts_of(view.machine.nvml, "NVML")
    gpus = need(nvml.gpus, "NVML's GPUs")
    uuids = [known(gpu.uuid) for gpu in gpus]
    for uuid in {one for one in uuids if one and uuids.count(one) > 1}:
        same = [gpu_subject(gpu) for gpu in gpus if known(gpu.uuid) == uuid]
        yield CAUSE["same-uuid-twice"].found(
            same, [view.evidence("machine.nvml.gpus", f"uuid {uuid}")], uuid=uuid
        )
    for link in (_bus_to_driver, _driver_to_cuda, _cuda_to_programs):
        try:
            yield from link(view, nvml, gpus)
        except CannotJudge as why:
            yield unjudged(why)


def _bus_to_driver(view: SnapshotView, nvml: Nvml, gpus: list[Gpu]) -> Verdicts:
    if container(view):
        raise Skip("PCI against NVML: a container sees the GPUs that it was given")
    if on_wsl(view):
        raise Skip("PCI against NVML: WSL has no PCI devices of its own")
    pci = facts_of(view.machine.pci, "PCI devices")
    excluded = facts_or(view.machine.kernel, Kernel).excluded_gpus  # KRN-016
    bound = [device for device in need(pci.devices, "PCI devices") if _is_ours(device)]
    bound = [device for device in bound if device.address not in excluded]
    seen = [known(gpu.pci_address) for gpu in gpus]
    seen += [known(lost.pci_address) for lost in nvml.lost]
    missing = [device for device in bound if device.address not in seen]
    unnamed = len(missing) - seen.count(None)
    counts = f"{plural(len(bound), 'GPU')} on the bus, {len(gpus)} in NVML"
    if unnamed <= 0:
        yield Passed(counts + (f" and {len(nvml.lost)} lost (GPU-001)" if nvml.lost else ""))
    elif unnamed <= len(kept_closed(facts_or(view.machine.kernel, Kernel))):
        yield Passed(f"{counts}; a device cgroup keeps the others for other jobs")
    else:
        yield from (_dropped_by_driver(view, device) for device in missing)


def _is_ours(device: PciDevice) -> bool:
    """Whether NVML should list it. PCI-003 has those that no driver took, PCI-004 those off the bus."""
    if device.kind != "gpu" or is_absent(device.driver) or known(device.answers) is False:
        return False
    return known(device.driver) in ("nvidia", None)


def _dropped_by_driver(view: SnapshotView, device: PciDevice) -> Finding:
    name, address = known(device.name) or device.device_id, device.address
    about = about_device(device, device.device_id)
    shown = f"{address} {name}, driver {show(device.driver)}"
    evidence = [
        view.evidence("machine.pci.devices", shown),
        view.evidence("machine.nvml.gpu_count"),
    ]
    commands = [
        f"sudo dmesg | grep -iE {word(f'nvrm|xid|{address[:-2]}')}",
        f"cat {word(f'/sys/bus/pci/devices/{address}/enable')}",
        "sudo reboot",
    ]
    return CAUSE["driver-dropped-gpu"].found(about, evidence, commands=commands, address=address)


def _driver_to_cuda(view: SnapshotView, nvml: Nvml, gpus: list[Gpu]) -> Verdicts:
    cuda = facts_of(view.machine.cuda, "libcuda")
    if known(cuda.init_code) not in (0, None):
        raise Skip("NVML against CUDA: CUDA does not start (DRV-004)")
    counted = need(cuda.devices, "CUDA's devices")
    if any(known(gpu.mig_enabled) for gpu in gpus):
        raise Skip("NVML against CUDA: with MIG on, CUDA shows one MIG instance at most")
    if len(counted) >= len(gpus):
        yield Passed(f"{len(counted)} in CUDA")
        return
    addresses = {known(device.pci_address) for device in counted}
    missing = [gpu_subject(gpu) for gpu in gpus if known(gpu.pci_address) not in addresses]
    missing = [] if None in addresses else missing
    yield CAUSE["hidden-from-cuda"].found(
        missing,
        [
            view.evidence("machine.nvml.gpu_count", len(gpus)),
            view.evidence("machine.cuda.device_count", len(counted)),
        ],
        listed=plural(len(gpus), "GPU"),
        seen=len(counted),
        missing=joined(missing) or f"{len(gpus) - len(counted)} of them",
    )


def _cuda_to_programs(view: SnapshotView, nvml: Nvml, gpus: list[Gpu]) -> Verdicts:
    """By the variable where envcheck runs; a target's own is ENV-001's."""
    value = setting(view)
    if view.snapshot.target is not None or value is None:
        return
    choice = visible(view)
    if choice.stopped_at is not None:
        yield CAUSE["visible-list-cut-short"].found(
            about("variable", VARIABLE),
            [view.evidence("machine.cuda.visible_devices")],
            value=value,
            entry=choice.stopped_at or "(empty)",
            left=len(choice.chosen),
            total=len(devices(view)[0]),
        )

"""Checks on the modes that a GPU is in: MIG, compute mode, persistence, vGPU licence, generation."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from ...data.capabilities import capability
from ...data.cuda import rows
from ...data.versions import parse_version
from ...facts.base import Unavailable, known
from ...facts.gpu import Gpu
from ...facts.missing import NotKnown, Skip
from ...facts.view import SnapshotView, need
from ...findings.model import Passed, Remedy, Verdict
from ..driver_state import (
    DATA_CENTRE_BRANDS,
    HOLDERS,
    NO_GPUS,
    container,
    on_windows,
    on_wsl,
    service,
)
from ..gpus import address_of, finding, judge_gpus
from ..registry import check


@check(
    "GPU-011",
    title="A GPU with MIG on has instances",
    problem="has a MIG mode without instances",
    about="With MIG on, a GPU offers its instances and not itself. While there is none, CUDA and every"
    " framework see no device at all though nvidia-smi lists the GPU: a failure. A change of the mode that"
    " waits for a reset is a warning.",
    sources=("pytorch#95784", "NVIDIA Multi-Instance GPU User Guide"),
    follows=NO_GPUS,
)
def mig_has_instances(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _mig(view, gpu))


def _mig(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    enabled = need(gpu.mig_enabled, "MIG")
    pending = known(gpu.mig_pending)
    if pending is not None and pending != enabled:
        yield finding(
            view,
            "warn",
            gpu,
            f"MIG will be turned {'on' if pending else 'off'} at the GPU's next reset: what programs see of"
            " it will change.",
            "mig_enabled mig_pending",
            Remedy(
                "Stop what uses the GPU and reset it, or set the mode that it has now again.",
                [
                    "nvidia-smi --query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending --format=csv",
                    HOLDERS,
                    f"sudo nvidia-smi --gpu-reset -i {address_of(gpu)}",
                ],
            ),
            "has a change of its MIG mode pending",
        )
    if not enabled:
        yield Passed("MIG is off")
        return
    instances = need(gpu.mig_instances, "the MIG instances")
    if instances:
        yield Passed(f"{len(instances)} MIG instance{'' if len(instances) == 1 else 's'}")
        return
    found = finding(
        view,
        "fail",
        gpu,
        "MIG is on and the GPU has no instance: CUDA and every framework see no device on it.",
        "mig_enabled mig_instances",
        Remedy(
            "Create instances. Where nobody wants the GPU divided, its owner can turn MIG off.",
            [
                f"nvidia-smi mig -i {address_of(gpu)} -lgip  # what it can be divided into",
                f"sudo nvidia-smi mig -i {address_of(gpu)} -cgi 0 -C  # one instance, the whole GPU",
            ],
        ),
    )
    yield found


@check(
    "GPU-014",
    title="The compute mode lets programs in",
    problem="has a compute mode that refuses programs",
    about="In compute mode Prohibited no CUDA program can use the GPU: a failure. In Exclusive_Process one"
    " process at a time can, which is right where a scheduler or MPS wants it so, and a warning where a"
    " process holds the GPU now: the next one will be refused.",
    sources=("nvidia-smi(1), Compute Mode", "cuda.h, CUDA_ERROR_DEVICE_UNAVAILABLE"),
    follows=NO_GPUS,
)
def compute_mode_is_open(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _compute_mode(view, gpu))


def _compute_mode(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    mode = need(gpu.compute_mode, "the compute mode")
    words = mode.lower().replace(" ", "_")
    remedy = Remedy(
        "Set the mode back to the default, if no scheduler wants it so.",
        [f"sudo nvidia-smi -i {address_of(gpu)} -c DEFAULT"],
    )
    if "prohibited" in words:
        yield finding(
            view,
            "fail",
            gpu,
            "The compute mode prohibits computing: no CUDA program can use the GPU.",
            "compute_mode",
            remedy,
        )
    elif "exclusive" in words and _held(view, gpu):
        yield finding(
            view,
            "warn",
            gpu,
            "The compute mode lets one process in and one holds the GPU now: the next CUDA program will be"
            " refused.",
            "compute_mode processes",
            remedy,
            "has a compute mode for one process, and it is taken",
        )
    elif "exclusive" not in words and words != "default":
        raise NotKnown(f"the compute mode '{mode}'")
    else:
        yield Passed(mode)


def _held(view: SnapshotView, gpu: Gpu) -> bool:
    """Whether a process computes on the GPU, and not through MPS, which shares it."""
    mps = service(view, "nvidia-cuda-mps-control")
    if mps is not None and known(mps.running):
        return False
    return any(process.kind in ("C", "C+G") for process in known(gpu.processes) or [])


@check(
    "GPU-015",
    title="Persistence keeps the driver ready on headless GPUs",
    problem="has persistence mode off",
    about="Without persistence mode, or the persistence daemon, the driver takes a GPU down when its last"
    " program ends and brings it up for the next, which takes seconds on large machines and forgets"
    " settings such as power limits and the count of recent memory errors. It matters on data-centre"
    " boards without a display, where it is a warning; elsewhere the desktop keeps the driver ready. On"
    " Windows there is no such mode.",
    sources=("NVIDIA Driver Persistence",),
    follows=NO_GPUS,
)
def persistence_is_on(view: SnapshotView) -> Iterator[Verdict]:
    if on_windows(view) or on_wsl(view):
        raise Skip("Windows has no persistence mode")
    daemon = service(view, "nvidia-persistenced")
    if daemon is not None and known(daemon.running):
        yield Passed("nvidia-persistenced is running")
        return
    yield from judge_gpus(view, lambda gpu: _persistence(view, gpu))


def _persistence(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    if need(gpu.persistence, "the persistence mode"):
        yield Passed("on")
    elif not _headless(gpu) or container(view):
        yield Passed("off, which does not matter here")
    elif isinstance(gpu.processes, Unavailable) and gpu.processes.unavailable == "not-collected":
        need(gpu.processes, "whether anything draws on it")
    else:
        yield finding(
            view,
            "warn",
            gpu,
            "Persistence mode is off on a data-centre GPU: every first program waits for the driver to bring"
            " the GPU up, and settings are forgotten in between.",
            "persistence",
            Remedy(
                "Run the persistence daemon, which comes with the driver.",
                ["sudo systemctl enable --now nvidia-persistenced"],
            ),
        )


def _headless(gpu: Gpu) -> bool:
    """Whether it is a data-centre board on which nothing draws."""
    draws = any("G" in process.kind for process in known(gpu.processes) or [])
    return known(gpu.brand) in DATA_CENTRE_BRANDS and not draws


@check(
    "GPU-017",
    title="The vGPU is licensed",
    problem="has no vGPU licence",
    about="A virtual GPU without a licence starts at full speed and is held back more and more after some"
    " minutes; CUDA is refused in the end. Unlicensed and restricted is a failure, unlicensed and not"
    " restricted yet a warning.",
    sources=("NVIDIA Virtual GPU Client Licensing User Guide",),
    follows=NO_GPUS,
)
def vgpu_is_licensed(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _licence(view, gpu))


def _licence(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    licence = need(gpu.vgpu_licence, "a vGPU licence")
    words = licence.lower()
    if words.startswith("licensed"):
        yield Passed(licence)
        return
    if not words.startswith("unlicensed"):
        raise NotKnown(f"the licence status '{licence}'")
    restricted = "restricted" in words and "unrestricted" not in words
    yield finding(
        view,
        "fail" if restricted else "warn",
        gpu,
        f"The vGPU has no licence ({licence}): "
        + ("it is held back, and CUDA is refused." if restricted else "it will soon be held back."),
        "vgpu_licence virtualization",
        Remedy(
            "Give the guest its client token and restart the licensing service.",
            ["ls /etc/nvidia/ClientConfigToken/", "sudo systemctl restart nvidia-gridd"],
        ),
    )


@check(
    "GPU-020",
    title="Current CUDA makes code for the GPU's compute capability",
    problem="is too old for current CUDA",
    about="Each CUDA toolkit makes code for a range of compute capabilities; old ones are dropped, and what"
    " a newer toolkit built does not run on them. A GPU whose last CUDA is older than the major versions"
    " that current frameworks are built with (11.8 for Kepler) is a warning: no current framework will run"
    " on it. For others the range is shown; the framework's checks say which wheels fit.",
    sources=("CMake, CMakeCUDAArchitecturesAll", "NVIDIA CUDA Toolkit 13.0 release notes"),
    follows=NO_GPUS,
)
def capability_is_current(view: SnapshotView) -> Iterator[Verdict]:
    return judge_gpus(view, lambda gpu: _capability(view, gpu))


def _capability(view: SnapshotView, gpu: Gpu) -> Iterator[Verdict]:
    told = need(gpu.compute_capability, "the compute capability")
    entry = capability(told)
    if entry is None:
        raise NotKnown(f"which CUDA makes code for compute capability {told}")
    last = parse_version(entry.last_cuda)
    if last is not None and last < Version(str(rows()[0].version.major - 1)):
        yield finding(
            view,
            "warn",
            gpu,
            f"CUDA {entry.last_cuda} is the last that makes code for compute capability {told}"
            f" ({entry.architecture}): no current framework runs on this GPU.",
            "compute_capability architecture",
            Remedy(f"Use a framework built with CUDA {entry.last_cuda} or older, or another GPU."),
        )
    elif entry.last_cuda:
        yield Passed(f"{told} ({entry.architecture}): up to CUDA {entry.last_cuda}")
    else:
        yield Passed(f"{told} ({entry.architecture}): CUDA {entry.first_cuda} and newer")

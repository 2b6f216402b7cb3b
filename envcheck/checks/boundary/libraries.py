"""Checks on the driver's libraries across a container's boundary: there, the right ones, and answering."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.versions import parse_version
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.gpu import CudaDriver
from ...facts.missing import CouldNotRun, Skip
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..container.cgroups import UDEV_RULE
from ..containers import CDI_GENERATE, DEVICES_FOR_CONTAINERS
from ..driver.libcuda import library_version
from ..driver_state import DATA_CENTRE_BRANDS, NO_GPUS
from ..registry import check
from .common import image, need_host_gpus, nodes, release_branches, with_gpus

_STUB = re.compile(r"/stubs/")
_COMPAT = re.compile(r"/compat(-[^/]*)?/|/cuda-compat[^/]*/")
_MISFIT = (803, 804)  # cuInit: the library does not go with the driver; this GPU may not do that
_UNKNOWN = 999  # NVML's Unknown Error, CUDA_ERROR_UNKNOWN
_FORBIDDEN = 4  # NVML_ERROR_NO_PERMISSION


@check(
    "BND-003",
    title="The driver's libraries are in the container",
    problem="the container lacks libraries of the driver",
    about="libcuda belongs to the host's driver, and no image holds the right one: the engine brings it in,"
    " by CDI or by NVIDIA's runtime or hook. Where nobody does (podman before 5 accepts --gpus all and does"
    " nothing; NVIDIA_DRIVER_CAPABILITIES without compute), the image's framework runs on the CPU. A failure"
    " where the host has a libcuda and the inside has none.",
    sources=("podman-run(1), --gpus", "NVIDIA Container Toolkit's documentation"),
    follows=(*NO_GPUS, "ENV-009"),
)
def libraries_arrive(view: SnapshotView) -> Iterator[Verdict]:
    cuda = facts_of(view.inside.cuda, "libcuda inside")
    need_host_gpus(view)
    outside = view.machine.cuda
    if outside is None or outside.facts is None or not known(outside.facts.library_path):
        raise Skip("the host itself has no libcuda")
    path = known(cuda.library_path)
    if path:
        yield Passed(path)
        return
    yield Finding(
        "fail",
        "The engine brought no libcuda into the container: nothing inside can use a GPU.",
        subjects=about("container", view.inside.location),
        evidence=[
            view.evidence("machine.cuda.library_path"),
            view.evidence("target.cuda.library_path"),
        ],
        remedy=with_gpus(view, "Start the container in a way that brings the driver along."),
    )


@check(
    "BND-004",
    title="libcuda inside goes with the host's driver",
    problem="the container's libcuda does not fit the driver",
    about="The kernel's module is the host's, so the libcuda inside must be of its version: an injected copy"
    " that is older or newer is left from before a driver upgrade (a CDI specification that names old files,"
    " a container that was started before). NVIDIA's images also carry a newer libcuda in"
    " /usr/local/cuda/compat for older drivers: forward compatibility, for data-centre GPUs and the driver"
    " branches that the image names. It passes where CUDA starts with it; 803 and 804 say that it may not.",
    sources=(
        "NVIDIA CUDA Compatibility guide, Forward Compatibility",
        "releases.csv (compat_driver_branches)",
        "mistral-inference#144",
        "numba#9732 (stubs)",
    ),
    follows=(*NO_GPUS, "BND-003", "CTR-012"),
)
def libcuda_fits(view: SnapshotView) -> Iterator[Verdict]:
    cuda = facts_of(view.inside.cuda, "libcuda inside")
    path = known(cuda.library_path)
    if not path:
        raise Skip("there is no libcuda inside")
    paths = f"{path} {known(cuda.library_real_path) or ''} "
    kernel = view.machine.kernel
    module = None if kernel is None or kernel.facts is None else known(kernel.facts.driver_version)
    if _STUB.search(paths) or known(cuda.init_code) == 34:
        yield _finding(
            view,
            "The loader inside finds the toolkit's libcuda stub, which is for linking only: no CUDA program"
            " can start.",
            Remedy("Take the stubs directory out of LD_LIBRARY_PATH in the image."),
        )
    elif _COMPAT.search(paths):
        yield _compat(view, cuda, path, module)
    else:
        yield _injected(view, cuda, module)


def _injected(view: SnapshotView, cuda: CudaDriver, module: str | None) -> Verdict:
    version = library_version(cuda)
    if version is None or module is None:
        raise Skip("the version of libcuda inside, or of the host's module, is not known")
    if parse_version(version) == parse_version(module):
        return Passed(f"{version}, injected from the host")
    return _finding(
        view,
        f"libcuda inside is of driver {version}, and the host's kernel runs {module}: CUDA does not start.",
        Remedy(
            "The driver was upgraded after the container was started, or the CDI specification was written:"
            " write it again and restart the container.",
            [CDI_GENERATE],
        ),
    )


def _compat(view: SnapshotView, cuda: CudaDriver, path: str, module: str | None) -> Verdict:
    code, version = known(cuda.init_code), library_version(cuda)
    if code in _MISFIT:
        return _finding(view, _why_not(view, code, module), _without_compat(view))
    ours, theirs = parse_version(module or ""), parse_version(version or "")
    if ours is not None and theirs is not None and theirs < ours:
        return _finding(
            view,
            f"The image's compat libcuda {version} hides the host's newer one ({module}): programs get an"
            " older CUDA than the driver has.",
            _without_compat(view),
            "warn",
        )
    if code:
        raise Skip(f"CUDA does not start inside (BND-005), and error {code} is not compat's")
    return Passed(
        f"forward compatibility: the image's libcuda {version or ''} from {path}"
        + (f" on driver {module}" if module else "")
    )


def _why_not(view: SnapshotView, code: int, module: str | None) -> str:
    brands = {known(gpu.brand) for gpu in view.gpus}
    words = f"The image's compat libcuda does not start on this machine (error {code}): "
    if code == 804 or not brands & {*DATA_CENTRE_BRANDS, None}:
        return words + "forward compatibility is for data-centre GPUs only."
    branches = release_branches(view)
    made_for = f" ({', '.join(branches)})" if branches else ""
    driver = f"driver {module}" if module else "this driver"
    return f"{words}{driver} is not of a branch that it was made for{made_for}."


def _without_compat(view: SnapshotView) -> Remedy:
    return with_gpus(
        view,
        "Upgrade the host's driver to one that has this image's CUDA itself, or take an image for this"
        " driver (envcheck releases); and take the compat directory off the loader's path inside.",
    )


def _finding(view: SnapshotView, message: str, remedy: Remedy, level: str = "fail") -> Finding:
    evidence = [view.evidence("target.cuda.library_path")]
    for field in ("library_real_path", "init_code"):
        cuda = view.inside.cuda
        if cuda is not None and known(getattr(cuda.facts, field)) is not None:
            evidence.append(view.evidence(f"target.cuda.{field}"))
    evidence.append(view.evidence("machine.kernel.driver_version"))
    return Finding(
        "warn" if level == "warn" else "fail",
        message,
        about("container", view.inside.location),
        evidence,
        remedy,
    )


@check(
    "BND-005",
    title="CUDA answers inside as it does outside",
    problem="CUDA fails inside the container",
    about="With the libraries there and the host well, CUDA or NVML may still fail inside: the device nodes"
    " did not come along, this user may not open them, or the container has lost its GPUs. The last happens"
    " in the middle of a run, after `systemctl daemon-reload`: systemd rewrites the device rules, and"
    " knows nothing of what NVIDIA's hook added. The nodes are still there, and opening them fails: NVML says"
    " Unknown Error. Nothing brings them back into that container.",
    sources=("nvidia-container-toolkit#48", "nvidia-container-toolkit#1227"),
    follows=(*NO_GPUS, "KRN-006", "DRV-004", "BND-003", "BND-004"),
)
def answers_inside(view: SnapshotView) -> Iterator[Verdict]:
    cuda = facts_of(view.inside.cuda, "libcuda inside")
    need_host_gpus(view)
    if not known(cuda.library_path):
        raise Skip("there is no libcuda inside")
    code = known(cuda.init_code)
    nvml = view.inside.nvml
    nvml_code = None if nvml is None or nvml.facts is None else known(nvml.facts.init_code)
    if code == 0 and nvml_code in (0, None):
        yield Passed("CUDA starts inside")
        return
    outside = view.machine.cuda
    if outside is None or outside.facts is None or known(outside.facts.init_code) != 0:
        raise Skip("CUDA does not start on the host either")
    if code is None and nvml_code is None:
        raise CouldNotRun("libcuda inside was not asked to start")
    if code == 0 and nvml_code != _UNKNOWN:
        yield Passed("CUDA starts inside; NVML does not, which CUDA does without")
        return
    yield _silent(view, code, nvml_code)


def _silent(view: SnapshotView, code: int | None, nvml_code: int | None) -> Finding:
    found = nodes(view)
    evidence = _codes(view)
    if found is not None:
        shown = ", ".join(f"{node.path} {node.mode}" for node in found) or "none of a GPU"
        evidence.append(view.evidence("target.kernel.device_nodes", shown))
    where = view.inside.location
    if found == []:
        message = "The driver's libraries are in the container, and no device node of a GPU is."
        remedy = with_gpus(view, "Start the container with its devices.")
        return Finding("fail", message, about("container", where), evidence, remedy)
    if nvml_code == _FORBIDDEN or (found and not all(node.usable for node in found)):
        message = "The GPUs' device nodes are in the container, and its user may not open them."
        remedy = Remedy(
            "Run it as a user or group that may: rootless podman keeps the caller's groups with the first"
            f" command. Where SELinux refuses it, allow containers to use devices. {DEVICES_FOR_CONTAINERS}",
            [
                f"podman run --group-add keep-groups --device nvidia.com/gpu=all {image(view)}",
                "sudo setsebool -P container_use_devices on",
            ],
        )
        return Finding("fail", message, about("container", where), evidence, remedy)
    if _UNKNOWN in (code, nvml_code) and found:
        return _lost(view, evidence)
    message = f"CUDA starts on the host and not in the container (error {code})."
    return Finding(
        "fail",
        message,
        about("container", where),
        evidence,
        with_gpus(view, "Start a new one with its GPUs."),
    )


def _lost(view: SnapshotView, evidence: list[Evidence]) -> Finding:
    links = [node for node in nodes(view) or [] if known(node.char_link) is False]
    if links:
        evidence.append(view.evidence("target.kernel.device_nodes", f"{links[0].path}: no link"))
    containers = view.machine.containers
    engines = [] if containers is None or containers.facts is None else containers.facts.engines
    for position, engine in enumerate(engines):
        if known(engine.cgroup_driver) == "systemd":
            path = f"machine.containers.engines[{position}].cgroup_driver"
            evidence.append(view.evidence(path, f"{engine.name}: systemd"))
    return Finding(
        "fail",
        "The container has lost its GPUs: the device nodes are there and may not be opened any more, while"
        " everything works on the host; `systemctl daemon-reload` does that.",
        about("container", view.inside.location),
        evidence,
        Remedy(
            "Create the container again, with its GPUs by CDI, which survives it; for NVIDIA's hook, create"
            " the links that systemd looks for.",
            [
                *with_gpus(view, "").commands,
                "sudo nvidia-ctk system create-dev-char-symlinks --create-all",
                UDEV_RULE,
            ],
        ),
    )


def _codes(view: SnapshotView) -> list[Evidence]:
    evidence = []
    for section in ("cuda", "nvml"):
        probe = getattr(view.inside, section)
        if probe is not None and probe.facts is not None:
            evidence.append(view.evidence(f"target.{section}.init_code"))
    return [*evidence, view.evidence("machine.cuda.init_code")]

"""Checks on the driver's libraries across a container's boundary: there, the right ones, and answering."""

from __future__ import annotations

from ...data.versions import parse_version
from ..container.cgroups import UDEV_RULE
from ..container_start import LINKS
from ..containers import CDI_GENERATE, DEVICES_FOR_CONTAINERS
from ..driver.libcuda import COMPAT, STUB_ERROR, STUBS, library_version
from ..driver_state import DATA_CENTRE_BRANDS, NO_GPUS
from ..reading import CouldNotRun, CudaDriver, Skip, SnapshotView, fact, facts_of, known
from ..verdicts import Cause, Finding, Param, Passed, Remedy, Verdict, Verdicts, about, check, fail
from .common import image, inside, need_host_gpus, nodes, start_commands

_MISFIT = (803, 804)  # cuInit: the library does not go with the driver; this GPU may not do that
_UNKNOWN = 999  # NVML's Unknown Error, CUDA_ERROR_UNKNOWN
_FORBIDDEN = 4  # NVML_ERROR_NO_PERMISSION

NO_LIBCUDA = fail(
    "no-libcuda",
    "the container lacks libraries of the driver",
    "The engine brought no libcuda into the container: nothing inside can use a GPU.",
    "Start the container in a way that brings the driver's libraries.",
)


@check(
    "BND-003",
    title="The driver's libraries are in the container",
    causes=[NO_LIBCUDA],
    about="libcuda belongs to the host's driver, and no image contains the right one: the engine mounts it,"
    " by CDI or by NVIDIA's runtime or hook.",
    sources=["podman-run(1), --gpus; NVIDIA Container Toolkit's documentation"],
    follows=(*NO_GPUS, "ENV-009"),
)
def libraries_arrive(view: SnapshotView) -> Verdicts:
    cuda = facts_of(view.inside.cuda, "libcuda inside")
    need_host_gpus(view)
    if not fact(view.machine.cuda, "library_path"):
        raise Skip("the host itself has no libcuda")
    if path := known(cuda.library_path):
        yield Passed(path)
        return
    paths = [view.evidence(f"{place}.cuda.library_path") for place in ("machine", "target")]
    yield inside(view, NO_LIBCUDA, paths)


STUB = fail(
    "stub-inside",
    "the container's libcuda does not fit the driver",
    "The loader inside finds the toolkit's libcuda stub, which is for linking only: CUDA does not start.",
    "Remove the stubs directory from LD_LIBRARY_PATH in the image.",
)
OTHER_DRIVER = STUB.variant(
    "libcuda-of-another-driver",
    sentence="libcuda inside is of driver {version}, and the host runs {module}: CUDA does not start.",
    remedy="The driver was upgraded after the container was started, or the CDI specification was written:"
    " write it again and restart the container.",
    commands=[CDI_GENERATE],
)
COMPAT_FAILS = STUB.variant(
    "compat-does-not-start",
    sentence="The image's compat libcuda does not start on this machine (error {code}): {why}.",
    remedy="Upgrade the host's driver to one that has this image's CUDA itself, or use an image for this"
    " driver (envcheck releases); and remove the compat directory from the loader's path inside.",
)
COMPAT_OLDER = COMPAT_FAILS.variant(
    "compat-older-than-driver",
    severity="warn",
    sentence="The image's compat libcuda {version} hides the host's newer one ({module}): programs get an"
    " older CUDA than the driver has.",
)


@check(
    "BND-004",
    title="libcuda inside goes with the host's driver",
    causes=[STUB, OTHER_DRIVER, COMPAT_FAILS, COMPAT_OLDER],
    about="The kernel's module is the host's, so the libcuda inside must be of its version.",
    sources=["NVIDIA CUDA Compatibility guide; releases.csv; mistral-inference#144; numba#9732"],
    follows=(*NO_GPUS, "BND-003", "CTR-012"),
)
def libcuda_fits(view: SnapshotView) -> Verdicts:
    cuda = facts_of(view.inside.cuda, "libcuda inside")
    path = known(cuda.library_path)
    if not path:
        raise Skip("there is no libcuda inside")
    paths = f"{path} {known(cuda.library_real_path) or ''} "
    module, version = fact(view.machine.kernel, "driver_version"), library_version(cuda)
    if STUBS.search(paths) or known(cuda.init_code) == STUB_ERROR:
        yield _unfit(view, STUB)
    elif COMPAT.search(paths):
        yield _compat(view, cuda, path, module)
    elif version is None or module is None:
        raise Skip("the version of libcuda inside, or of the host's module, is not known")
    elif parse_version(version) == parse_version(module):
        yield Passed(f"{version}, injected from the host")
    else:
        yield _unfit(view, OTHER_DRIVER, version=version, module=module)


def _compat(view: SnapshotView, cuda: CudaDriver, path: str, module: str | None) -> Verdict:
    code, version = known(cuda.init_code), library_version(cuda)
    if code in _MISFIT:
        return _unfit(view, COMPAT_FAILS, code=code, why=_why_not(view, code, module))
    ours, theirs = parse_version(module or ""), parse_version(version or "")
    if ours is not None and theirs is not None and theirs < ours:
        return _unfit(view, COMPAT_OLDER, version=version, module=module)
    if code:
        raise Skip(f"CUDA does not start inside (BND-005), and error {code} is not compat's")
    on = f" on driver {module}" if module else ""
    return Passed(f"forward compatibility: the image's libcuda {version or ''} from {path}{on}")


def _why_not(view: SnapshotView, code: int, module: str | None) -> str:
    brands = {known(gpu.brand) for gpu in view.gpus}
    if code == 804 or not brands & {*DATA_CENTRE_BRANDS, None}:
        return "forward compatibility is for data-centre GPUs only"
    return f"driver {module or 'of this version'} is not of a branch that it was made for"


def _unfit(view: SnapshotView, cause: Cause, **params: Param) -> Finding:
    evidence = [
        view.evidence(f"target.cuda.{field}")
        for field in ("library_path", "library_real_path", "init_code")
        if fact(view.inside.cuda, field) is not None
    ]
    evidence.append(view.evidence("machine.kernel.driver_version"))
    return inside(view, cause, evidence, cause in (COMPAT_FAILS, COMPAT_OLDER), **params)


NO_NODES = fail(
    "no-device-nodes",
    "CUDA fails inside the container",
    "The driver's libraries are in the container, and no device node of a GPU is.",
    "Start the container with its devices.",
)
FORBIDDEN = NO_NODES.variant(
    "device-nodes-forbidden",
    sentence="The GPUs' device nodes are in the container, and its user may not open them.",
    remedy="Run it as a user or group that may: rootless podman keeps the caller's groups with the first"
    f" command. If SELinux refuses it, allow containers to use devices. {DEVICES_FOR_CONTAINERS}",
)
LOST = NO_NODES.variant(
    "gpus-lost",
    sentence="The container has lost its GPUs: the device nodes are there and may not be opened any more,"
    " while everything works on the host; `systemctl daemon-reload` does that.",
    remedy="Create the container again, with its GPUs by CDI, which survives it; for NVIDIA's hook, create"
    " the links that systemd looks for.",
)
FAILS = NO_NODES.variant(
    "cuda-fails-inside",
    sentence="CUDA starts on the host and not in the container (error {code}).",
    remedy="Start a new one with its GPUs.",
)


@check(
    "BND-005",
    title="CUDA answers inside as it does outside",
    causes=[NO_NODES, FORBIDDEN, LOST, FAILS],
    about="Even if the libraries are there and the host is healthy, CUDA or NVML may fail inside: device"
    " nodes are missing, this user may not open them, or the container has lost its GPUs.",
    sources=["nvidia-container-toolkit#48, #1227"],
    follows=(*NO_GPUS, "KRN-006", "DRV-004", "BND-003", "BND-004"),
)
def answers_inside(view: SnapshotView) -> Verdicts:
    cuda = facts_of(view.inside.cuda, "libcuda inside")
    need_host_gpus(view)
    if not known(cuda.library_path):
        raise Skip("there is no libcuda inside")
    code, nvml_code = known(cuda.init_code), fact(view.inside.nvml, "init_code")
    if code == 0 and nvml_code in (0, None):
        yield Passed("CUDA starts inside")
    elif fact(view.machine.cuda, "init_code") != 0:
        raise Skip("CUDA does not start on the host either")
    elif code is None and nvml_code is None:
        raise CouldNotRun("libcuda inside was not asked to start")
    elif code == 0 and nvml_code != _UNKNOWN:
        yield Passed("CUDA starts inside; NVML does not, which CUDA does without")
    else:
        yield _fails(view, code, nvml_code)


def _fails(view: SnapshotView, code: int | None, nvml_code: int | None) -> Finding:
    found = nodes(view)
    asked = {"cuda": code, "nvml": nvml_code}
    evidence = [view.evidence(f"target.{one}.init_code") for one in asked if asked[one] is not None]
    evidence.append(view.evidence("machine.cuda.init_code"))
    if found is not None:
        shown = ", ".join(f"{node.path} {node.mode}" for node in found) or "none of a GPU"
        evidence.append(view.evidence("target.kernel.device_nodes", shown))
    cause, commands = FAILS, start_commands(view)
    if found == []:
        cause = NO_NODES
    elif nvml_code == _FORBIDDEN or (found and not all(node.usable for node in found)):
        groups = "podman run --group-add keep-groups --device nvidia.com/gpu=all"
        commands = [f"{groups} {image(view)}", "sudo setsebool -P container_use_devices on"]
        cause = FORBIDDEN
    elif _UNKNOWN in (code, nvml_code) and found:
        cause, commands = LOST, [*commands, LINKS, UDEV_RULE]
    advice = Remedy(cause.remedy, commands)
    return cause.found(about("container", view.inside.location), evidence, advice=advice, code=code)

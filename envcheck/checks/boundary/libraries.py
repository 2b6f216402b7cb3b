"""Checks on the driver's libraries across a container's boundary: there, the right ones, and answering."""

from __future__ import annotations

from ...data.versions import parse_version
from ..container.cgroups import UDEV_RULE
from ..container_start import LINKS
from ..declared import declared_causes
from ..driver.libcuda import COMPAT, STUB_ERROR, STUBS, library_version
from ..driver_state import DATA_CENTRE_BRANDS
from ..reading import CouldNotRun, CudaDriver, Skip, SnapshotView, fact, facts_of, known
from ..verdicts import Cause, Finding, Param, Passed, Remedy, Verdict, Verdicts, about, check
from .common import image, inside, need_host_gpus, nodes, start_commands

CAUSE = declared_causes(__name__)

_MISFIT = (803, 804)  # cuInit: the library does not go with the driver; this GPU may not do that
_UNKNOWN = 999  # NVML's Unknown Error, CUDA_ERROR_UNKNOWN
_FORBIDDEN = 4  # NVML_ERROR_NO_PERMISSION


@check("BND-003")
def libraries_arrive(view: SnapshotView) -> Verdicts:
    cuda = facts_of(view.inside.cuda, "libcuda inside")
    need_host_gpus(view)
    if not fact(view.machine.cuda, "library_path"):
        raise Skip("the host itself has no libcuda")
    if path := known(cuda.library_path):
        yield Passed(path)
        return
    paths = [view.evidence(f"{place}.cuda.library_path") for place in ("machine", "target")]
    yield inside(view, CAUSE["no-libcuda"], paths)


@check("BND-004")
def libcuda_fits(view: SnapshotView) -> Verdicts:
    cuda = facts_of(view.inside.cuda, "libcuda inside")
    path = known(cuda.library_path)
    if not path:
        raise Skip("there is no libcuda inside")
    paths = f"{path} {known(cuda.library_real_path) or ''} "
    module, version = fact(view.machine.kernel, "driver_version"), library_version(cuda)
    if STUBS.search(paths) or known(cuda.init_code) == STUB_ERROR:
        yield _unfit(view, CAUSE["stub-inside"])
    elif COMPAT.search(paths):
        yield _compat(view, cuda, path, module)
    elif version is None or module is None:
        raise Skip("the version of libcuda inside, or of the host's module, is not known")
    elif parse_version(version) == parse_version(module):
        yield Passed(f"{version}, injected from the host")
    else:
        yield _unfit(view, CAUSE["libcuda-of-another-driver"], version=version, module=module)


def _compat(view: SnapshotView, cuda: CudaDriver, path: str, module: str | None) -> Verdict:
    code, version = known(cuda.init_code), library_version(cuda)
    if code in _MISFIT:
        return _unfit(
            view, CAUSE["compat-does-not-start"], code=code, why=_why_not(view, code, module)
        )
    ours, theirs = parse_version(module or ""), parse_version(version or "")
    if ours is not None and theirs is not None and theirs < ours:
        return _unfit(view, CAUSE["compat-older-than-driver"], version=version, module=module)
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
    return inside(
        view,
        cause,
        evidence,
        cause in (CAUSE["compat-does-not-start"], CAUSE["compat-older-than-driver"]),
        **params,
    )


@check("BND-005")
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
    cause, commands = CAUSE["cuda-fails-inside"], start_commands(view)
    if found == []:
        cause = CAUSE["no-device-nodes"]
    elif nvml_code == _FORBIDDEN or (found and not all(node.usable for node in found)):
        groups = "podman run --group-add keep-groups --device nvidia.com/gpu=all"
        commands = [f"{groups} {image(view)}", "sudo setsebool -P container_use_devices on"]
        cause = CAUSE["device-nodes-forbidden"]
    elif _UNKNOWN in (code, nvml_code) and found:
        cause, commands = CAUSE["gpus-lost"], [*commands, LINKS, UDEV_RULE]
    advice = Remedy(cause.remedy, commands)
    return cause.found(about("container", view.inside.location), evidence, advice=advice, code=code)

"""Checks on whether a framework's build suits the machine: its driver, and the code and speed on its GPUs."""

from __future__ import annotations

import re

from ...data.cuda import driver_fits
from ...data.framework_gpus import gpu_builds
from ..builds import gpu_build, newest_build
from ..driver_state import NO_GPUS_THERE, driver_version, on_windows, on_wsl
from ..fitness import code_for, is_entry, ptx_runs
from ..reading import Framework, NotKnown, Skip, SnapshotView, fact, known, need
from ..system_commands import on_system
from ..target import per_framework, title_of
from ..verdicts import Cause, Finding, Passed, Remedy, Verdicts, about, check, fail, warn
from ..visible import VisibleDevice, capabilities, visible
from .causes import found
from .trials import ran

DRIVER_TOO_OLD = fail(
    "driver-too-old",
    "driver {driver} is too old for {framework} {version}",
    "Driver {driver} is too old for {framework}, which was built with CUDA {built} and needs driver {needed}"
    " or newer: it cannot use the GPUs.",
)


@check(
    "FRM-003",
    title="The driver runs the CUDA that the framework was built with",
    causes=[DRIVER_TOO_OLD],
    about="A driver runs the CUDA it was released with and every older one; from CUDA 11 on also newer minor"
    " versions of the same major, except for PTX that is newer than itself. What libcuda itself reports"
    " counts first, since a forward-compatibility package may raise it.",
    sources=("CUDA release notes, tables 2 and 3 (cuda_driver.csv)", "CUDA compatibility guide"),
    follows=(*NO_GPUS_THERE, "FRM-001", "FRM-005", "FRM-007"),
)
@per_framework(built_with_cuda=True)
def driver_runs_it(view: SnapshotView, facts: Framework) -> Verdicts:
    title = title_of(facts)
    built = need(facts.built_cuda, f"the CUDA that {title} was built with")
    version, path = driver_version(view)
    api = driver_cuda(view)
    if api and ptx_runs(built, api):
        yield Passed(f"{title}: CUDA {built}, and the driver supports {api}")
        return
    driver = need(version, "the driver's version")
    if on_wsl(view) or on_windows(view):
        raise NotKnown(f"whether a Windows driver ({driver}) runs CUDA {built}")
    fit = driver_fits(built, driver)
    if fit.fits is None:
        raise NotKnown(f"which driver CUDA {built} needs, or what driver {driver} runs")
    if fit.fits:
        how = "" if fit.how == "native" else " by minor-version compatibility"
        yield Passed(f"{title}: CUDA {built} on driver {driver}{how}")
        return
    yield found(
        view,
        DRIVER_TOO_OLD,
        facts,
        "built_cuda",
        view.evidence(path),
        advice=_older_or_newer(view, facts, fit.needs),
        driver=driver,
        built=built,
        needed=fit.needs,
    )


def driver_cuda(view: SnapshotView) -> str:
    """The newest CUDA that the driver supports: as libcuda says, else as NVML or nvidia-smi do."""
    return (
        fact(view.seen.cuda, "driver_api_version")
        or fact(view.seen.nvml, "cuda_version")
        or fact(view.seen.nvidia_smi, "cuda_version")
        or ""
    )


def _older_or_newer(view: SnapshotView, facts: Framework, needed: str) -> Remedy:
    commands = on_system(view, "update-driver")
    text = f"Update the driver to {needed} or newer."
    if newest_build(view, facts.name, capabilities(view)) is None:
        text += f" No {title_of(facts)} with CUDA is known that this driver runs with this Python."
        return Remedy(text, commands)
    other = gpu_build(view, facts.name)
    return Remedy(f"{text} Or keep it: {other.text}", [*commands, *other.commands])


_LACKS_CODE = "the framework has no code for a GPU"
_NONE = "{framework} {version} has no machine code for {gpu} (compute capability {capability})"
NO_CODE = fail("no-code", _LACKS_CODE, f"{_NONE} and no PTX; {{why}}: no kernel runs there.")
PTX_FAILS = fail(
    "ptx-does-not-run",
    "{framework} {version} does not run on {gpu}",
    f"{_NONE}, and what the driver would compile does not run there: kernels stop with"
    " CUDA_ERROR_INVALID_PTX or INVALID_HANDLE.",
)
PTX_TOO_NEW = fail(
    "ptx-newer-than-driver",
    _LACKS_CODE,
    f"{_NONE}, and its PTX is of CUDA {{cuda}}, newer than the driver's {{driver_cuda}}: no kernel runs.",
    "Update the driver, or use a build with code for this GPU.",
)
PTX_ALONE = warn(
    "ptx-alone",
    _LACKS_CODE,
    f"{_NONE}: the driver compiles its {{ptx}} first, so the first start takes tens of minutes.",
)


@check(
    "FRM-004",
    title="The framework holds code for each GPU",
    causes=[NO_CODE, PTX_FAILS, PTX_TOO_NEW, PTX_ALONE],
    about="A build contains machine code for a list of compute capabilities, which also runs on higher minor"
    " versions of the same major. For some it contains PTX, which the driver compiles on first use.",
    sources=(
        "CUDA C++ programming guide, binary and PTX compatibility",
        "TensorFlow's configure.py",
        "tensorflow#47058, #89272, #97387, #99592",
        "reports on new GPUs, and PyTorch's support matrix (framework_gpus.csv, framework_builds.csv)",
    ),
    follows=(*NO_GPUS_THERE, "FRM-001", "FRM-003", "FRM-005", "FRM-007"),
)
@per_framework(built_with_cuda=True)
def code_for_each_gpu(view: SnapshotView, facts: Framework) -> Verdicts:
    title = title_of(facts)
    devices = {
        one.capability: one
        for one in visible(view).chosen
        if re.fullmatch(r"\d+(\.\d+)?", one.capability)
    }
    built = need(facts.built_capabilities, f"the capabilities that {title} was built for")
    if not built:
        raise NotKnown(f"the capabilities that {title} was built for")
    if not devices:
        raise Skip("no visible GPU's compute capability is known")
    for capability, device in devices.items():
        code = code_for(capability, built)
        if code.kind == "none" and not all(map(is_entry, built)):
            raise NotKnown(f"what {title}'s list of capabilities means ({', '.join(built)})")
        name = _name(device)
        if code.kind == "jit" and len(devices) == 1 and ran(facts, "conv2d float32"):
            yield Passed(f"{title} computed on {name} ({capability}), with {code.by}")
        elif code.kind == "native":
            yield Passed(f"{title} has {code.by} for {name} ({capability})")
        elif code.kind == "jit":
            yield _jit(view, facts, device, code.by)
        else:
            why = f"it was built for {', '.join(built)}"
            yield _lacks(view, facts, NO_CODE, device, why=why)


def _name(device: VisibleDevice) -> str:
    return device.name or f"compute capability {device.capability}"


def _jit(view: SnapshotView, facts: Framework, device: VisibleDevice, ptx: str) -> Finding:
    cuda, api = known(facts.built_cuda) or "", driver_cuda(view)
    row = gpu_builds(facts.name, device.capability)
    if row is not None and row.ptx == "fails":
        return _lacks(view, facts, PTX_FAILS, device)
    if cuda and api and ptx_runs(cuda, api) is False:
        update = Remedy(PTX_TOO_NEW.remedy, on_system(view, "update-driver"))
        return _lacks(view, facts, PTX_TOO_NEW, device, update, cuda=cuda, driver_cuda=api)
    build = gpu_build(view, facts.name, [device.capability])
    advice = Remedy(
        f"{build.text} Until then keep what was compiled (the cache's default size is too small for a whole"
        " framework).",
        [*build.commands, "export CUDA_CACHE_MAXSIZE=4294967296"],
    )
    return _lacks(view, facts, PTX_ALONE, device, advice, ptx=ptx)


def _lacks(
    view: SnapshotView,
    facts: Framework,
    cause: Cause,
    device: VisibleDevice,
    advice: Remedy | None = None,
    **params: str,
) -> Finding:
    name, capability = _name(device), device.capability
    section = "nvml.gpus" if fact(view.seen.cuda, "devices") is None else "cuda.devices"
    return found(
        view,
        cause,
        facts,
        "built_capabilities",
        view.evidence(f"seen.{section}", f"{name}: compute capability {capability}"),
        *(["built_cuda"] if "cuda" in params else []),
        subjects=about("gpu-model", name),
        advice=advice or gpu_build(view, facts.name, [capability]),
        gpu=name,
        capability=capability,
        **params,
    )

"""Checks on whether a framework's build suits the machine: its driver, and the code and speed on its GPUs."""

from __future__ import annotations

import re

from ...data.cuda import driver_fits
from ...data.framework_gpus import gpu_builds
from ..builds import gpu_build, newest_build
from ..declared import declared_causes
from ..driver_state import driver_version, on_windows, on_wsl
from ..fitness import code_for, is_entry, ptx_runs
from ..reading import Framework, NotKnown, Skip, SnapshotView, fact, known, need
from ..system_commands import on_system
from ..target import per_framework, title_of
from ..verdicts import Cause, Finding, Passed, Remedy, Verdicts, about, check
from ..visible import VisibleDevice, capabilities, visible
from .causes import found
from .trials import ran

CAUSE = declared_causes(__name__)


@check("FRM-003")
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
        CAUSE["driver-too-old"],
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


@check("FRM-004")
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
            yield _lacks(view, facts, CAUSE["no-code"], device, why=why)


def _name(device: VisibleDevice) -> str:
    return device.name or f"compute capability {device.capability}"


def _jit(view: SnapshotView, facts: Framework, device: VisibleDevice, ptx: str) -> Finding:
    cuda, api = known(facts.built_cuda) or "", driver_cuda(view)
    row = gpu_builds(facts.name, device.capability)
    if row is not None and row.ptx == "fails":
        return _lacks(view, facts, CAUSE["ptx-does-not-run"], device)
    if cuda and api and ptx_runs(cuda, api) is False:
        update = Remedy(CAUSE["ptx-newer-than-driver"].remedy, on_system(view, "update-driver"))
        return _lacks(
            view, facts, CAUSE["ptx-newer-than-driver"], device, update, cuda=cuda, driver_cuda=api
        )
    build = gpu_build(view, facts.name, [device.capability])
    advice = Remedy(
        f"{build.text} Until then keep what was compiled (the cache's default size is too small for a whole"
        " framework).",
        [*build.commands, "export CUDA_CACHE_MAXSIZE=4294967296"],
    )
    return _lacks(view, facts, CAUSE["ptx-alone"], device, advice, ptx=ptx)


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

"""Checks on whether a framework fits driver and GPUs: its CUDA, and its code for each GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.cuda import driver_fits
from ...facts.base import NOT_COLLECTED, known
from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge, NotKnown, Skip
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..driver_state import NO_GPUS_THERE, driver_version, on_windows, on_wsl
from ..fitness import code_for, is_entry, newest_tensorflow, ptx_runs
from ..registry import check
from ..system_commands import on_system
from ..target import each_framework, need_gpus, pip_install, python_version
from ..visible import visible


@check(
    "FRM-003",
    title="The driver runs the CUDA that the framework was built with",
    problem="the driver is too old for the framework",
    about=(
        "A driver runs the CUDA it was released with and every older one; from CUDA 11 on also newer "
        "minor versions of the same major (minor-version compatibility), except for PTX that is newer "
        "than itself. With an older driver a framework finds no GPU, or dies at the first kernel. A "
        "failure, with the newest TensorFlow that the driver runs; what libcuda itself reports counts "
        "first, since a forward-compatibility package may raise it."
    ),
    sources=("CUDA release notes, tables 2 and 3 (cuda_driver.csv)", "CUDA compatibility guide"),
    follows=(*NO_GPUS_THERE, "FRM-001", "FRM-005", "FRM-007"),
)
def driver_runs_it(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        if known(facts.cuda_build) is False:
            raise Skip(f"{title} was built without CUDA")
        built = need(facts.built_cuda, f"the CUDA that {title} was built with")
        version, path = driver_version(view)
        api = _driver_cuda(view)
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
        yield Finding(
            "fail",
            f"Driver {driver} is too old for {title}, which was built with CUDA {built} and needs driver "
            f"{fit.needs} or newer: it cannot use the GPUs.",
            subjects=about("framework", title),
            evidence=[view.evidence(f"target.{facts.name}.built_cuda"), view.evidence(path)],
            remedy=_older_or_newer(view, facts, driver, fit.needs),
            headline=f"driver {driver} is too old for {title} {known(facts.version) or ''}".rstrip(),
        )

    yield from each_framework(view, judge)


def _driver_cuda(view: SnapshotView) -> str:
    """The newest CUDA that the driver supports: as libcuda says, else as NVML or nvidia-smi do."""
    cuda, nvml, smi = view.seen.cuda, view.seen.nvml, view.seen.nvidia_smi
    said = [
        cuda.facts.driver_api_version
        if cuda is not None and cuda.facts is not None
        else NOT_COLLECTED,
        nvml.facts.cuda_version if nvml is not None and nvml.facts is not None else NOT_COLLECTED,
        smi.facts.cuda_version if smi is not None and smi.facts is not None else NOT_COLLECTED,
    ]
    return next((version for version in map(known, said) if version), "")


def _older_or_newer(view: SnapshotView, facts: Framework, driver: str, needs: str) -> Remedy:
    commands = on_system(view, "update-driver")
    text = f"Update the driver to {needs} or newer."
    if facts.name == "tensorflow":
        capabilities = _capabilities(view)
        build = newest_tensorflow(driver, capabilities, python_version(view) or (0, 0))
        if build is not None:
            text += f" Or install TensorFlow {build.version}, the newest known one that this driver runs."
            commands.append(pip_install(view, f"tensorflow[and-cuda]=={build.version}"))
        else:
            text += (
                " No TensorFlow with CUDA wheels is known that this driver runs with this Python."
            )
    return Remedy(text, commands)


def _capabilities(view: SnapshotView) -> list[str]:
    try:
        return sorted({device.capability for device in visible(view).chosen if device.capability})
    except CannotJudge:
        return []


@check(
    "FRM-004",
    title="The framework holds code for each GPU",
    problem="the framework has no code for a GPU",
    about=(
        "A build carries machine code for a list of compute capabilities, and PTX, which the driver "
        "compiles on first use, for some. Machine code runs on its own capability and higher minors of "
        "the same major. With PTX alone the first start takes tens of minutes: a warning; with PTX that "
        "is newer than the driver, or with neither, no kernel runs: a failure. GPUs that "
        "CUDA_VISIBLE_DEVICES hides are left out."
    ),
    sources=(
        "CUDA C++ programming guide, binary and PTX compatibility",
        "TensorFlow's configure.py",
        "tensorflow#47058, #89272, #97387, #99592",
    ),
    follows=(*NO_GPUS_THERE, "FRM-001", "FRM-003", "FRM-005", "FRM-007"),
)
def code_for_each_gpu(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        if known(facts.cuda_build) is False:
            raise Skip(f"{title} was built without CUDA")
        built = need(facts.built_capabilities, f"the capabilities that {title} was built for")
        if not built:
            raise NotKnown(f"the capabilities that {title} was built for")
        devices = {
            one.capability: one
            for one in visible(view).chosen
            if re.fullmatch(r"\d+(\.\d+)?", one.capability)
        }
        if not devices:
            raise Skip("no visible GPU's compute capability is known")
        for capability, device in devices.items():
            code = code_for(capability, built)
            if code.kind == "none" and not all(map(is_entry, built)):
                raise NotKnown(f"what {title}'s list of capabilities means ({', '.join(built)})")
            name = device.name or f"compute capability {capability}"
            if code.kind == "native":
                yield Passed(f"{title} has {code.by} for {name} ({capability})")
            elif code.kind == "jit":
                yield _jit(view, facts, name, capability, code.by)
            else:
                yield _no_code(view, facts, name, capability, built)

    yield from each_framework(view, judge)


def _jit(view: SnapshotView, facts: Framework, name: str, capability: str, by: str) -> Finding:
    title = FRAMEWORKS[facts.name]
    cuda, api = known(facts.built_cuda) or "", _driver_cuda(view)
    evidence = [
        view.evidence(f"target.{facts.name}.built_capabilities"),
        *_capability_evidence(view, name, capability),
    ]
    if cuda and api and ptx_runs(cuda, api) is False:
        return Finding(
            "fail",
            f"{title} has no machine code for {name} (compute capability {capability}), and its PTX is of "
            f"CUDA {cuda}, newer than the driver's {api}: no kernel runs.",
            subjects=about("framework", title) + about("gpu-model", name),
            evidence=[*evidence, view.evidence(f"target.{facts.name}.built_cuda")],
            remedy=Remedy(
                "Update the driver, or use a build with code for this GPU.",
                on_system(view, "update-driver"),
            ),
        )
    return Finding(
        "warn",
        f"{title} has no machine code for {name} (compute capability {capability}): the driver compiles "
        f"its {by} first, so the first start takes tens of minutes.",
        subjects=about("framework", title) + about("gpu-model", name),
        evidence=evidence,
        remedy=Remedy(
            "Use a build with code for this GPU; until then keep what was compiled (the cache's default "
            "size is too small for a whole framework).",
            ["export CUDA_CACHE_MAXSIZE=4294967296"],
        ),
    )


def _no_code(
    view: SnapshotView, facts: Framework, name: str, capability: str, built: list[str]
) -> Finding:
    title = FRAMEWORKS[facts.name]
    return Finding(
        "fail",
        f"{title} {known(facts.version) or ''} has no code for {name} (compute capability {capability}); "
        f"it was built for {', '.join(built)}: no kernel runs there.",
        subjects=about("framework", title) + about("gpu-model", name),
        evidence=[
            view.evidence(f"target.{facts.name}.built_capabilities"),
            *_capability_evidence(view, name, capability),
        ],
        remedy=_other_build(view, facts, capability),
    )


def _other_build(view: SnapshotView, facts: Framework, capability: str) -> Remedy:
    text = "Use a build or a container that has code for this GPU."
    driver, version = known(driver_version(view)[0]), python_version(view)
    if facts.name != "tensorflow" or not driver or version is None:
        return Remedy(text)
    build = newest_tensorflow(driver, [capability], version)
    if build is None:
        return Remedy(text)
    return Remedy(
        f"TensorFlow {build.version} has code for it.",
        [pip_install(view, f"tensorflow[and-cuda]=={build.version}")],
    )


def _capability_evidence(view: SnapshotView, name: str, capability: str) -> list[Evidence]:
    cuda = view.seen.cuda
    section = "cuda.devices" if cuda is not None and cuda.facts is not None else "nvml.gpus"
    return [view.evidence(f"seen.{section}", f"{name}: compute capability {capability}")]

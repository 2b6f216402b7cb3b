"""The check on whether the driver runs the CUDA that a framework was built with."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.cuda import driver_fits
from ...facts.base import NOT_COLLECTED, known
from ...facts.missing import CannotJudge, NotKnown, Skip
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..driver_state import NO_GPUS_THERE, driver_version, on_windows, on_wsl
from ..fitness import newest_tensorflow, ptx_runs
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


def driver_cuda(view: SnapshotView) -> str:
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

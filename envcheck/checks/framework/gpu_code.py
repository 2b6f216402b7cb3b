"""The check on whether a framework's build holds code for each GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.framework_gpus import gpu_builds
from ...data.versions import parse_version
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.missing import NotKnown, Skip
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..driver_state import NO_GPUS_THERE, driver_version
from ..fitness import code_for, is_entry, newest_tensorflow, ptx_runs
from ..registry import check
from ..system_commands import on_system
from ..target import each_framework, need_gpus, pip_install, python_version
from ..visible import VisibleDevice, visible
from .fit import driver_cuda
from .trials import ran


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
        "reports on new GPUs, and PyTorch's support matrix (framework_gpus.csv)",
    ),
    follows=(*NO_GPUS_THERE, "FRM-001", "FRM-003", "FRM-005", "FRM-007"),
)
def code_for_each_gpu(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        if known(facts.cuda_build) is False:
            raise Skip(f"{title} was built without CUDA")
        devices = {
            one.capability: one
            for one in visible(view).chosen
            if re.fullmatch(r"\d+(\.\d+)?", one.capability)
        }
        if facts.name == "jax" and known(facts.built_capabilities) is None:
            yield from _by_version(view, facts, devices)
            return
        built = need(facts.built_capabilities, f"the capabilities that {title} was built for")
        if not built:
            raise NotKnown(f"the capabilities that {title} was built for")
        if not devices:
            raise Skip("no visible GPU's compute capability is known")
        for capability, device in devices.items():
            code = code_for(capability, built)
            if code.kind == "none" and not all(map(is_entry, built)):
                raise NotKnown(f"what {title}'s list of capabilities means ({', '.join(built)})")
            name = device.name or f"compute capability {capability}"
            if code.kind == "jit" and len(devices) == 1 and ran(facts, "conv2d float32"):
                yield Passed(f"{title} computed on {name} ({capability}), with {code.by}")
            elif code.kind == "native":
                yield Passed(f"{title} has {code.by} for {name} ({capability})")
            elif code.kind == "jit":
                yield _jit(view, facts, name, capability, code.by)
            else:
                yield _no_code(
                    view, facts, name, capability, f"it was built for {', '.join(built)}"
                )

    yield from each_framework(view, judge)


def _by_version(
    view: SnapshotView, facts: Framework, devices: dict[str, VisibleDevice]
) -> Iterator[Verdict]:
    """JAX does not say what it was built for: what was read from its builds counts."""
    version = parse_version(known(facts.version) or "")
    rows = {capability: gpu_builds(facts.name, capability) for capability in devices}
    if version is None or not any(rows.values()):
        raise Skip(f"{FRAMEWORKS[facts.name]} does not say for which GPUs it was built")
    for capability, row in rows.items():
        name = devices[capability].name or f"compute capability {capability}"
        if row is None or row.last_without is None or row.first_with is None:
            continue
        if version <= row.last_without:
            first = f"code for it came with {row.first_with}"
            yield _no_code(view, facts, name, capability, f"{first} at the latest")
        elif version >= row.first_with:
            yield Passed(f"{FRAMEWORKS[facts.name]} {version} has code for {name} ({capability})")
        else:
            raise NotKnown(f"whether {FRAMEWORKS[facts.name]} {version} has code for {name}")


def _jit(view: SnapshotView, facts: Framework, name: str, capability: str, by: str) -> Finding:
    title = FRAMEWORKS[facts.name]
    cuda, api = known(facts.built_cuda) or "", driver_cuda(view)
    evidence = [
        view.evidence(f"target.{facts.name}.built_capabilities"),
        *_capability_evidence(view, name, capability),
    ]
    row = gpu_builds(facts.name, capability)
    if row is not None and row.ptx_fails:
        return Finding(
            "fail",
            f"{title} {known(facts.version) or ''} has no machine code for {name} (compute capability "
            f"{capability}), and what the driver would compile does not run there: kernels stop with "
            "CUDA_ERROR_INVALID_PTX or INVALID_HANDLE.",
            subjects=about("framework", title) + about("gpu-model", name),
            evidence=evidence,
            remedy=_other_build(view, facts, capability),
            headline=f"{title} {known(facts.version) or ''} does not run on {name}",
        )
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
        remedy=_until_then(_other_build(view, facts, capability)),
    )


def _until_then(build: Remedy) -> Remedy:
    return Remedy(
        f"{build.text} Until then keep what was compiled (the cache's default size is too small for a whole "
        "framework).",
        [*build.commands, "export CUDA_CACHE_MAXSIZE=4294967296"],
    )


def _no_code(view: SnapshotView, facts: Framework, name: str, capability: str, why: str) -> Finding:
    title = FRAMEWORKS[facts.name]
    return Finding(
        "fail",
        f"{title} {known(facts.version) or ''} has no code for {name} (compute capability {capability}); "
        f"{why}: no kernel runs there.",
        subjects=about("framework", title) + about("gpu-model", name),
        evidence=[
            view.evidence(f"target.{facts.name}.built_capabilities"),
            *_capability_evidence(view, name, capability),
        ],
        remedy=_other_build(view, facts, capability),
    )


def _other_build(view: SnapshotView, facts: Framework, capability: str) -> Remedy:
    """A build that has code for a GPU: of TensorFlow's wheels, else as the table of builds knows it."""
    title = FRAMEWORKS[facts.name]
    driver, version = known(driver_version(view)[0]), python_version(view)
    if facts.name == "tensorflow" and driver and version is not None:
        build = newest_tensorflow(driver, [capability], version)
        if build is not None:
            return Remedy(
                f"TensorFlow {build.version} has code for it.",
                [pip_install(view, f"tensorflow[and-cuda]=={build.version}")],
            )
    row = gpu_builds(facts.name, capability)
    if row is not None and row.image:
        return Remedy(
            f"No {title} wheel is known to have code for it: use NVIDIA's container, which most reports say "
            "runs there, or a build of one's own for this compute capability.",
            [f"docker run --rm -it --gpus all {row.image}"],
        )
    if row is not None and row.requirement:
        index = f" --index-url {row.index}" if row.index else ""
        first = f" since {row.first_with}" if row.first_with else ""
        of = f" of {row.index.rpartition('/')[2]}" if row.index else ""
        return Remedy(
            f"The builds{of} have code for it{first}.",
            [f"{pip_install(view, row.requirement)} --upgrade --force-reinstall{index}"],
        )
    return Remedy("Use a build or a container that has code for this GPU.")


def _capability_evidence(view: SnapshotView, name: str, capability: str) -> list[Evidence]:
    cuda = view.seen.cuda
    section = "cuda.devices" if cuda is not None and cuda.facts is not None else "nvml.gpus"
    return [view.evidence(f"seen.{section}", f"{name}: compute capability {capability}")]

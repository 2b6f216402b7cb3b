"""Checks on the frameworks in the target: do they import, survive it, and were they built for GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from ...data.releases import releases
from ...data.versions import parse_version
from ...facts.base import Probe, StuckProcess, known
from ...facts.missing import Skip
from ...facts.target import FRAMEWORKS, Framework
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.subjects import about
from ..driver.hang import silent
from ..purpose import CPU_TENSORFLOWS
from ..registry import check
from ..target import (
    each_framework,
    framework_facts,
    installed,
    need_gpus,
    pip_install,
    pip_replace,
    python,
    sees_gpus,
    tensorflows,
)
from .causes import IMPORT, SIGNALS, explain
from .missing_modules import explain_missing
from .version_causes import explain_versions


@check(
    "FRM-001",
    title="The framework imports",
    problem="the framework does not import",
    about=(
        "Each framework that the target holds is imported in a process of its own, by the target's "
        "interpreter, started as its user would start it. A failure where that fails: with the reason "
        "where the words are known ones (protobuf or numpy too new, a GLIBC version that the system "
        "does not have, a library the loader does not find, a missing module), and with the words "
        "themselves otherwise."
    ),
    sources=(
        "NVIDIA/tensorflow#32, #34, #58, #99",
        "upstream TensorFlow 1.15.5 with protobuf 4.24.4, observed",
    ),
    follows=(
        "HOST-002",
        "PKG-001",
        "PKG-002",
        "PKG-005",
        "PKG-012",
        "PKG-014",
        "FRM-007",
        "LIB-009",
        "ENV-011",
    ),
)
def it_imports(view: SnapshotView) -> Iterator[Verdict]:
    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        if facts.imported:
            seconds = known(facts.import_seconds)
            took = "" if seconds is None else f" in {seconds:.1f} s"
            yield Passed(f"{title} {known(facts.version) or 'of an unknown version'}{took}")
            return
        words = known(facts.import_error) or "no reason was given"
        found = (
            explain_versions(view, facts, "\n".join([words, *facts.log]))
            or explain_missing(view, facts, words)
            or explain(IMPORT, [words], f"{python(view)} -m pip")
        )
        yield Finding(
            "fail",
            f"{title} does not import: {found.says if found else _first_line(words)}.",
            subjects=about("framework", title),
            evidence=[view.evidence(f"target.{facts.name}.import_error", words[:600])],
            remedy=found.remedy
            if found
            else Remedy("See the whole message.", [f"{python(view)} -c 'import {facts.name}'"]),
            headline=f"{title} does not import" + (f": {found.says}" if found else ""),
        )

    yield from each_framework(view, judge, imported=False)


def _first_line(words: str) -> str:
    return (words.strip().splitlines() or [""])[0][:200].rstrip(".")


@check(
    "FRM-005",
    title="The framework was built for GPUs",
    problem="the framework was built without CUDA",
    about=(
        "tensorflow-cpu, PyTorch's +cpu wheels and JAX without its CUDA plugin run everything on the "
        "CPU and report no error. A failure on a machine with GPUs; a warning where another framework "
        "in the same environment does see them, since the CPU build may then be there on purpose, and where "
        "envcheck installed it, as its user asked."
    ),
    sources=("the frameworks' own build information",),
    follows=("PCI-001", "PKG-003", "FRM-001", "FRM-007"),
)
def built_for_gpus(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    another = any(sees_gpus(one) for one in framework_facts(view))

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        version = known(facts.version) or ""
        if need(facts.cuda_build, f"whether {title} was built with CUDA"):
            built = known(facts.built_cuda)
            yield Passed(f"{title} {version}" + (f", CUDA {built}" if built else ""))
            return
        names = ", ".join(_cpu_builds(view, facts)) or f"{title} {version}".strip()
        yield Finding(
            "warn" if another or _asked_for(view, facts) else "fail",
            f"{names} was built without CUDA: {title} runs everything on the CPU of this machine with "
            "GPUs.",
            subjects=about("framework", title),
            evidence=[view.evidence(f"target.{facts.name}.cuda_build")],
            remedy=_gpu_build(view, facts),
            headline=f"{names} was built without CUDA",
        )

    yield from each_framework(view, judge)


def _asked_for(view: SnapshotView, facts: Framework) -> bool:
    """Whether envcheck installed the environment with a build for CPUs, as its user wanted."""
    probe = view.target.lock
    locked = None if probe is None or probe.facts is None else known(probe.facts.packages)
    names = {one.name for one in locked or []}
    return facts.name == "tensorflow" and not names.isdisjoint(CPU_TENSORFLOWS)


def _cpu_builds(view: SnapshotView, facts: Framework) -> list[str]:
    packages = view.target.packages
    if packages is None or packages.facts is None:
        return []
    cpu = {
        "tensorflow": ("tensorflow-cpu", "tf-nightly-cpu"),
        "torch": ("torch",),
        "jax": ("jaxlib",),
    }
    distributions = installed(view)
    return [
        f"{distributions[name].name} {distributions[name].version}"
        for name in cpu[facts.name]
        if name in distributions
    ]


def _gpu_build(view: SnapshotView, facts: Framework) -> Remedy:
    if facts.name == "tensorflow":
        return _gpu_tensorflow(view, parse_version(known(facts.version) or ""))
    if facts.name == "jax":
        return Remedy("Install JAX's CUDA plugin.", [pip_install(view, "jax[cuda12]")])
    return Remedy(
        "Install PyTorch's CUDA build; on Linux it is the one that has no +cpu in its version.",
        [pip_install(view, "torch") + " --force-reinstall"],
    )


def _gpu_tensorflow(view: SnapshotView, version: Version | None) -> Remedy:
    if version is not None and version.major == 1:
        image = next((one.image_tf1 for one in reversed(releases()) if one.image_tf1), "")
        return Remedy(
            "TensorFlow 1.15 with CUDA is NVIDIA's build: nvidia-tensorflow, or its last container.",
            [f"docker run --rm -it --gpus all {image}"],
        )
    extra = "" if version is not None and version < Version("2.14") else "[and-cuda]"
    pinned = f"=={version}" if version is not None and not version.local else ""
    return Remedy(
        "Install the build with CUDA, then take the others away: they share its files.",
        [_instead(view, f"tensorflow{extra}{pinned}")],
    )


def _instead(view: SnapshotView, wanted: str) -> str:
    others = [one.name for one in tensorflows(installed(view)) if one.normalized != "tensorflow"]
    if not others:
        return pip_install(view, wanted) + " --force-reinstall"
    return pip_replace(view, wanted, *others)


@check(
    "FRM-007",
    title="The framework's process survives",
    problem="the framework crashes or hangs",
    about=(
        "Importing a framework and asking it for its GPUs loads hundreds of megabytes of native code. "
        "Where that code crashes, no Python error is left: the process dies by a signal, which tells "
        "why (4: instructions that this CPU lacks; 9: out of memory; 11: a library crashed). A failure. "
        "A warning where it gave no answer in time: a slow disk does that, and so does a network mount or "
        "a GPU that never answers."
    ),
    sources=("signal(7)", "tensorflow's requirement of AVX since 1.6"),
    follows=("HOST-002", "DRV-010", "PKG-017", "ENV-011"),
)
def survives(view: SnapshotView) -> Iterator[Verdict]:
    asked = {name: getattr(view.target, name) for name in FRAMEWORKS}
    if not any(asked.values()):
        raise Skip("no TensorFlow, PyTorch or JAX was found in the target")
    for name, probe in asked.items():
        if probe is not None:
            yield _outcome(view, name, probe)


def _outcome(view: SnapshotView, name: str, probe: Probe[Framework]) -> Verdict:
    title = FRAMEWORKS[name]
    if probe.stuck:
        return Finding(
            "fail",
            f"The process that asked {title} for its GPUs hangs in the kernel and cannot be killed.",
            subjects=about("framework", title),
            evidence=[view.evidence(f"target.{name}.stuck", _processes(probe.stuck))],
            remedy=Remedy(
                "See the kernel's log, then reboot.", ["sudo dmesg | tail -50", "sudo reboot"]
            ),
        )
    if probe.outcome == "ok":
        return Passed(f"{title} answered in {probe.seconds:.1f} s")
    if silent(probe) and not any(map(silent, (view.machine.nvml, view.machine.cuda))):
        return _hangs(view, name, probe)
    found = re.search(r"signal (\d+)", probe.reason)
    if probe.outcome != "crashed" or found is None:
        return Unjudged(
            "could-not-run", f"{title}: {probe.reason or probe.outcome}", about("framework", title)
        )
    number = int(found[1])
    return Finding(
        "fail",
        f"Importing {title} and asking for its GPUs kills the process (signal {number}): "
        f"{SIGNALS.get(number, 'the reason is not known')}.",
        subjects=about("framework", title),
        evidence=[
            view.evidence(f"target.{name}", probe.reason),
            *([view.evidence(f"target.{name}", probe.evidence)] if probe.evidence else []),
        ],
        remedy=_after_signal(view, name, number),
    )


def _hangs(view: SnapshotView, name: str, probe: Probe[Framework]) -> Finding:
    title = FRAMEWORKS[name]
    again = f"{python(view)} -c 'import faulthandler; faulthandler.dump_traceback_later(60); "
    return Finding(
        "warn",
        f"Importing {title} and asking it for its GPUs took longer than the {probe.seconds:.0f} s that it was"
        " given: it hangs, or is slow.",
        subjects=about("framework", title),
        evidence=[
            view.evidence(f"target.{name}", probe.reason),
            *([view.evidence(f"target.{name}", probe.evidence)] if probe.evidence else []),
        ],
        remedy=Remedy(
            "Give it longer once (--deadline). Where it does not end then either, import it by hand: after a"
            " minute its stack shows where it waits. In Python's own files it is the disk or a network mount;"
            " in the driver it is a GPU, and the kernel's log says which.",
            [
                "envcheck doctor --deadline 600",
                f"{again}import {name}'",
                f"py-spy dump --native --pid $(pgrep -n -f 'import {name}')"
                "  # from another terminal, where py-spy is installed",
                f'df -hT "$({python(view)} -c "import sys; print(sys.prefix)")"',
                "sudo dmesg | grep -iE 'nvrm|xid|nfs|blocked for more than'",
            ],
        ),
        headline=f"importing {title} took longer than {probe.seconds:.0f} s",
    )


def _processes(stuck: list[StuckProcess]) -> str:
    return "; ".join(f"{process.command}, state {process.state}" for process in stuck)


def _after_signal(view: SnapshotView, name: str, number: int) -> Remedy:
    again = f"{python(view)} -X faulthandler -c 'import {name}'"
    if number == 4:
        return Remedy(
            "Use a CPU with these instructions, or a build without them.",
            ["grep -o -w -m1 -e avx -e avx2 /proc/cpuinfo", again],
        )
    if number == 9:
        return Remedy(
            "Give it more memory (the container's limit counts).",
            ["sudo dmesg | grep -i oom", again],
        )
    return Remedy("See in which library it crashes, and install that again.", [again])

"""Checks on the frameworks in the target: do they import, survive it, and were they built for GPUs."""

from __future__ import annotations

import re

from packaging.version import Version

from ...data.releases import releases
from ..builds import gpu_build, newest_build
from ..driver.hang import silent
from ..installing import by_conda
from ..purpose import CPU_TENSORFLOWS
from ..reading import FRAMEWORKS, Framework, Probe, Skip, SnapshotView, fact, known, need
from ..target import (
    about_framework,
    framework_facts,
    framework_version,
    installed,
    installed_if_known,
    per_framework,
    pip_install,
    pip_replace,
    python,
    sees_gpus,
    tensorflows,
    title_of,
)
from ..verdicts import Passed, Remedy, Unjudged, Verdict, Verdicts, about, check, fail, warn
from ..visible import capabilities
from .causes import IMPORT, SIGNALS, explain, import_fails
from .version_causes import CAUSES, explain_missing, explain_versions

OTHER_REASON = import_fails("other-reason", "{reason}", "See the whole message.")


@check(
    "FRM-001",
    title="The framework imports",
    causes=[*(sign.cause for sign in IMPORT), *CAUSES, OTHER_REASON],
    about="Each framework in the target is imported in a process of its own, by the target's interpreter,"
    " started as its user would start it. Known messages (a protobuf or numpy that does not fit, a"
    " missing library) are explained, others quoted.",
    sources=(
        "NVIDIA/tensorflow#32, #34, #58, #99",
        "upstream TensorFlow 1.15.5 with protobuf 4.24.4, observed",
    ),
    follows=(
        "HOST-002",
        "PKG-001",
        "PKG-002",
        "FRM-007",
        "LIB-009",
        "ENV-011",
    ),
)
@per_framework(gpus=False, imported=False)
def it_imports(view: SnapshotView, facts: Framework) -> Verdicts:
    title = title_of(facts)
    if facts.imported:
        seconds = known(facts.import_seconds)
        took = "" if seconds is None else f" in {seconds:.1f} s"
        yield Passed(f"{title} {known(facts.version) or 'of an unknown version'}{took}")
        return
    words = known(facts.import_error) or "no reason was given"
    evidence = [view.evidence(f"target.{facts.name}.import_error", words[:600])]
    found = (
        explain_versions(view, facts, "\n".join([words, *facts.log]))
        or explain_missing(view, facts, words)
        or explain(view, facts, IMPORT, [words])
    )
    if found is not None:
        yield found.found(facts, evidence)
        return
    yield OTHER_REASON.found(
        about_framework(facts),
        evidence,
        commands=[f"{python(view)} -c 'import {facts.name}'"],
        framework=title,
        reason=(words.strip().splitlines() or [""])[0][:200].rstrip("."),
    )


_CPU_BUILD = "{build} was built without CUDA"
_ON_CPU = ": {framework} runs everything on the CPU of this machine with GPUs."
CPU_BUILD = fail("cpu-build", _CPU_BUILD, _CPU_BUILD + _ON_CPU)
CPU_BUILD_WANTED = warn(
    "cpu-build-on-purpose",
    _CPU_BUILD,
    _CPU_BUILD
    + _ON_CPU
    + " That may be intended: another framework sees the GPUs, or envcheck installed this one on request.",
)


@check(
    "FRM-005",
    title="The framework was built for GPUs",
    causes=[CPU_BUILD, CPU_BUILD_WANTED],
    about="tensorflow-cpu, PyTorch's +cpu wheels and JAX without its CUDA plugin run everything on the CPU"
    " and report no error.",
    sources=("the frameworks' own build information",),
    follows=("PCI-001", "PKG-003", "FRM-001", "FRM-007"),
)
@per_framework()
def built_for_gpus(view: SnapshotView, facts: Framework) -> Verdicts:
    title, version = title_of(facts), known(facts.version) or ""
    if need(facts.cuda_build, f"whether {title} was built with CUDA"):
        built = known(facts.built_cuda)
        yield Passed(f"{title} {version}" + (f", CUDA {built}" if built else ""))
        return
    wanted = any(map(sees_gpus, framework_facts(view))) or _asked_for(view, facts)
    distributions = installed_if_known(view)
    names = {"tensorflow": ("tensorflow-cpu", "tf-nightly-cpu"), "jax": ("jaxlib",)}
    builds = [
        f"{distributions[name].name} {distributions[name].version}"
        for name in names.get(facts.name, (facts.name,))
        if name in distributions
    ]
    yield (CPU_BUILD_WANTED if wanted else CPU_BUILD).found(
        about_framework(facts),
        [view.evidence(f"target.{facts.name}.cuda_build")],
        advice=_gpu_build(view, facts),
        build=", ".join(builds) or f"{title} {version}".strip(),
        framework=title,
    )


def _asked_for(view: SnapshotView, facts: Framework) -> bool:
    """Whether envcheck installed the environment with a build for CPUs, as its user wanted."""
    names = {one.name for one in fact(view.target.lock, "packages") or []}
    return facts.name == "tensorflow" and not names.isdisjoint(CPU_TENSORFLOWS)


def _gpu_build(view: SnapshotView, facts: Framework) -> Remedy:
    if facts.name != "tensorflow":
        return gpu_build(view, facts.name)
    version = framework_version(facts)
    if version is not None and version.major == 1:
        image = next((one.image_tf1 for one in reversed(releases()) if one.image_tf1), "")
        return Remedy(
            "TensorFlow 1.15 with CUDA is NVIDIA's build: nvidia-tensorflow, or its last container.",
            [f"docker run --rm -it --gpus all {image}"],
        )
    others = [one.name for one in tensorflows(installed(view)) if one.normalized != "tensorflow"]
    build = newest_build(view, "tensorflow", capabilities(view))
    wanted = build.requirement if build is not None else ""
    if version is not None and version < Version("2.14") and not version.local:
        wanted = f"tensorflow=={version}"  # that wheel is the one with CUDA, for CUDA on the loader's path
    elif not wanted or not others or by_conda(view, "tensorflow"):
        return gpu_build(view, "tensorflow")
    again = pip_replace(view, wanted, *others) if others else ""
    return Remedy(
        "Install the build with CUDA, then uninstall the others, which share its files.",
        [again or pip_install(view, wanted) + " --force-reinstall"],
    )


_DIES = "the framework crashes or hangs"
_KILLED = (
    "Importing {framework} and asking for its GPUs kills the process (signal {signal}): {why}."
)
_OTHER_CPU = "Use a CPU with these instructions, or a build without them."
_MORE_MEMORY = "Give it more memory (the container's limit counts)."
_SEE_WHERE = "See in which library it crashes, and install that again."
_AVX = "tensorflow's requirement of AVX since 1.6"
ILLEGAL_INSTRUCTION = fail("illegal-instruction", _DIES, _KILLED, _OTHER_CPU, source=_AVX)
KILLED = fail("killed", _DIES, _KILLED, _MORE_MEMORY)
CRASHED = fail("crashed", _DIES, _KILLED, _SEE_WHERE)
STUCK = fail(
    "stuck-in-kernel",
    _DIES,
    "The process that asked {framework} for its GPUs hangs in the kernel and cannot be killed.",
    "See the kernel's log, then reboot.",
    "sudo dmesg | tail -50",
    "sudo reboot",
)
SLOW = warn(
    "no-answer-in-time",
    "importing {framework} took longer than {seconds} s",
    "Importing {framework} and asking it for its GPUs took longer than the {seconds} s that it was given: it"
    " hangs, or is slow.",
    "Give it longer once (--deadline). If it does not end then either, import it by hand: after a minute its"
    " stack shows where it waits. In Python's own files it is the disk or a network mount; in the driver it"
    " is a GPU, and the kernel's log says which.",
)


@check(
    "FRM-007",
    title="The framework's process survives",
    causes=[ILLEGAL_INSTRUCTION, KILLED, CRASHED, STUCK, SLOW],
    about="Importing a framework and asking it for its GPUs loads hundreds of megabytes of native code. If"
    " that code crashes there is no Python error: the process dies by a signal.",
    sources=("signal(7)",),
    follows=("HOST-002", "DRV-010", "PKG-001", "PKG-017", "ENV-011"),
)
def survives(view: SnapshotView) -> Verdicts:
    asked = {name: getattr(view.target, name) for name in FRAMEWORKS}
    if not any(asked.values()):
        raise Skip("no TensorFlow, PyTorch or JAX was found in the target")
    for name, probe in asked.items():
        if probe is not None:
            yield _outcome(view, name, probe)


def _outcome(view: SnapshotView, name: str, probe: Probe[Framework]) -> Verdict:
    title = FRAMEWORKS[name]
    subjects = about("framework", title)
    if probe.stuck:
        shown = "; ".join(f"{process.command}, state {process.state}" for process in probe.stuck)
        return STUCK.found(
            subjects, [view.evidence(f"target.{name}.stuck", shown)], framework=title
        )
    if probe.outcome == "ok":
        return Passed(f"{title} answered in {probe.seconds:.1f} s")
    words = [view.evidence(f"target.{name}", one) for one in (probe.reason, probe.evidence) if one]
    again = f"{python(view)} -X faulthandler -c 'import {name}'"
    if silent(probe) and not any(map(silent, (view.machine.nvml, view.machine.cuda))):
        return SLOW.found(
            subjects,
            words,
            commands=_where_it_hangs(view, name),
            framework=title,
            seconds=f"{probe.seconds:.0f}",
        )
    signal = re.search(r"signal (\d+)", probe.reason)
    if probe.outcome != "crashed" or signal is None:
        return Unjudged("could-not-run", f"{title}: {probe.reason or probe.outcome}", subjects)
    number = int(signal[1])
    cause, look = {
        4: (ILLEGAL_INSTRUCTION, ["grep -o -w -m1 -e avx -e avx2 /proc/cpuinfo"]),
        9: (KILLED, ["sudo dmesg | grep -i oom"]),
    }.get(number, (CRASHED, []))
    return cause.found(
        subjects,
        words,
        commands=[*look, again],
        framework=title,
        signal=number,
        why=SIGNALS.get(number, "the reason is not known"),
    )


def _where_it_hangs(view: SnapshotView, name: str) -> list[str]:
    script = f"import faulthandler; faulthandler.dump_traceback_later(60); import {name}"
    return [
        "envcheck doctor --deadline 600",
        f"{python(view)} -c '{script}'",
        f"py-spy dump --native --pid $(pgrep -n -f 'import {name}')"
        "  # from another terminal, where py-spy is installed",
        f'df -hT "$({python(view)} -c "import sys; print(sys.prefix)")"',
        "sudo dmesg | grep -iE 'nvrm|xid|nfs|blocked for more than'",
    ]

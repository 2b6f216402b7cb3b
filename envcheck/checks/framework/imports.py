"""Checks on the frameworks in the target: do they import, survive it, and were they built for GPUs."""

from __future__ import annotations

import re

from packaging.version import Version

from ...data.releases import releases
from ..builds import gpu_build, newest_build
from ..declared import declared_causes
from ..installing import by_conda
from ..purpose import CPU_TENSORFLOWS
from ..reading import Framework, SnapshotView, fact, is_absent, known, need
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
    variables_if_known,
)
from ..verdicts import Passed, Remedy, Verdicts, about, check, word
from ..visible import capabilities
from .causes import IMPORT, explain
from .error_files import CAUSES as FILE_CAUSES
from .error_files import explain_files
from .version_causes import CAUSES, explain_missing, explain_versions

CAUSE = declared_causes(__name__)

_NUMPY_1 = re.compile(r"compiled using NumPy 1|_ARRAY_API not found")


@check("FRM-001", causes=[*(sign.cause for sign in IMPORT), *FILE_CAUSES, *CAUSES])
@per_framework(gpus=False, imported=False)
def it_imports(view: SnapshotView, facts: Framework) -> Verdicts:
    title = title_of(facts)
    if facts.imported and is_absent(facts.version) and not facts.shadows:
        file = known(facts.file) or ""
        yield CAUSE["another-module"].found(
            about_framework(facts),
            [
                view.evidence(f"target.{facts.name}.version"),
                view.evidence(f"target.{facts.name}.file"),
            ],
            commands=[f"ls -ld {word(file)}"],
            framework=title,
            file=file,
        )
        return
    value = variables_if_known(view).get("JAX_PLATFORMS", "") if facts.name == "jax" else ""
    if {"cuda", "gpu"} & set(value.split(",")) and known(facts.cuda_build) is False:
        shown = view.evidence("target.environment.variables", f"JAX_PLATFORMS={value}")
        cuda = view.evidence("target.jax.cuda_build")
        yield CAUSE["platform-not-built-in"].found(
            about_framework(facts), [shown, cuda], framework=title, value=value
        )
        return
    line = next((one for one in facts.log if _NUMPY_1.search(one)), "")
    numpy = installed_if_known(view).get("numpy")
    if facts.imported and line and numpy is not None:
        yield CAUSE["part-built-for-numpy-1"].found(
            [*about_framework(facts), *about("package", "numpy")],
            [view.evidence(f"target.{facts.name}.log", line)],
            commands=[pip_install(view, "numpy<2")],
            framework=title,
            numpy=numpy.version,
        )
        return
    if facts.imported:
        seconds = known(facts.import_seconds)
        took = "" if seconds is None else f" in {seconds:.1f} s"
        yield Passed(f"{title} {known(facts.version) or 'of an unknown version'}{took}")
        return
    words = known(facts.import_error) or "no reason was given"
    evidence = [view.evidence(f"target.{facts.name}.import_error", words[:600])]
    found = (
        explain_files(view, facts, words)
        or explain_versions(view, facts, "\n".join([words, *facts.log]))
        or explain_missing(view, facts, words)
        or explain(view, facts, IMPORT, [words])
    )
    if found is not None:
        yield found.found(facts, evidence)
        return
    yield CAUSE["other-reason"].found(
        about_framework(facts),
        evidence,
        commands=[f"{python(view)} -c 'import {facts.name}'"],
        framework=title,
        reason=(words.strip().splitlines() or [""])[0][:200].rstrip("."),
    )


@check("FRM-005")
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
    yield (CAUSE["cpu-build-on-purpose"] if wanted else CAUSE["cpu-build"]).found(
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

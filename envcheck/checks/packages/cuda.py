"""Checks on whether TensorFlow and Horovod stand with the CUDA libraries they were built with."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from ...data.packages import NVTF_SOURCE, WHEELS_SOURCE, tensorflow_build
from ...facts.base import known
from ...facts.missing import NotKnown, Skip
from ...facts.target import FRAMEWORKS
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..registry import check
from ..target import (
    PLACE,
    framework,
    gpus_present,
    installed,
    loaded,
    loader_libraries,
    named,
    need_gpus,
    of_component,
    pip_install,
    sees_gpus,
    soname,
    tensorflows,
    version_of,
)
from .release_sets import installable, nvidia_release, pinned


@check(
    "PKG-010",
    title="The libraries are those of NVIDIA's release",
    problem="the libraries are not those of NVIDIA's release",
    about=(
        "NVIDIA built each month's TensorFlow with one set of CUDA libraries and tested it with that. "
        "The wheels since 22.06 let the libraries float inside a CUDA major, so that an environment "
        "built later is not the one NVIDIA tested. This names the release, what was compared and what "
        "has moved; a warning where a library is outside of what the release's own wheel asks for, and "
        '"not known" where no source says what the release holds.'
    ),
    sources=(
        "NVIDIA's TensorFlow release notes, container and wheel (releases.csv)",
        NVTF_SOURCE,
        "NVIDIA/tensorflow#85 and #86",
    ),
    follows=("PKG-002", "PKG-003"),
)
def release_set(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    found = next(
        (
            one
            for one in tensorflows(distributions)
            if (version := version_of(one)) and (version.local or "").startswith("nv")
        ),
        None,
    )
    if found is None:
        raise Skip("no TensorFlow of NVIDIA's in the target")
    yield from nvidia_release(view, found, distributions)


@check(
    "PKG-011",
    title="Horovod was built for the installed framework",
    problem="Horovod was built without the framework",
    about=(
        "Horovod builds its extension for each framework when it is installed, and goes on without a "
        "word where that fails; `horovodrun --check-build` was seen to tick a framework for which "
        "nothing had been built. This looks for the extension itself. A failure where there is none "
        "at all, a warning where that of an installed framework is missing."
    ),
    sources=("horovod 0.28.1, observed",),
)
def horovod(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    package = distributions.get("horovod") or distributions.get("nvidia-horovod")
    if package is None:
        raise Skip("no Horovod in the target")
    packages = facts_of(view.target.packages, "the target's packages")
    extensions = need(packages.horovod_extensions, "Horovod's extensions")
    built = [one.framework for one in extensions if one.present]
    has = {"tensorflow": bool(tensorflows(distributions)), "torch": "torch" in distributions}
    lacking = [name for name, there in has.items() if there and name not in built]
    if built and not lacking:
        yield Passed(f"{named(package)}, built for {', '.join(built)}")
        return
    what = " and ".join(FRAMEWORKS[name] for name in lacking) or "any framework"
    yield Finding(
        "warn" if built else "fail",
        f"{named(package)} holds no extension for {what}: `import horovod` succeeds, and training "
        "across GPUs with it fails.",
        subjects=about("package", package.name),
        evidence=[view.evidence("target.packages.horovod_extensions")],
        remedy=Remedy(
            "Build it again, with the framework installed first, and let the build fail aloud.",
            [
                "".join(
                    f"HOROVOD_WITH_{_build_name(name)}=1 " for name in lacking or ["tensorflow"]
                )
                + "HOROVOD_GPU_OPERATIONS=NCCL "
                + pip_install(view, f"{package.name}=={package.version}")
                + " --no-cache-dir --no-build-isolation --force-reinstall --no-deps"
            ],
        ),
    )


def _build_name(framework_name: str) -> str:
    return {"torch": "PYTORCH"}.get(framework_name, framework_name.upper())


@check(
    "PKG-013",
    title="TensorFlow has CUDA libraries to load",
    problem="TensorFlow has no CUDA libraries",
    about=(
        "Since 2.14, `pip install tensorflow` brings no CUDA library: they come with the extra, "
        "tensorflow[and-cuda], or from a CUDA installation of the system. With neither, TensorFlow "
        "imports, trains on the CPU and says so in a log line only. A failure on a machine with GPUs, "
        "unless TensorFlow was seen to find them."
    ),
    sources=("TensorFlow's installation guide", WHEELS_SOURCE, "tensorflow#63362 and #65842"),
    follows=("PCI-001", "PKG-002", "PKG-003"),
)
def cuda_packages(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    package = distributions.get("tensorflow")
    version = version_of(package) if package else None
    if package is None or version is None or version < Version("2.14"):
        raise Skip("no tensorflow 2.14 or later in the target")
    need_gpus(view)
    facts = framework(view, "tensorflow")
    if facts is not None and known(facts.cuda_build) is False:
        raise Skip("this TensorFlow was built without CUDA")
    if facts is not None and sees_gpus(facts):
        yield Passed(f"{named(package)} finds its libraries")
        return
    wheels = [one for part in ("cudnn", "cublas") for one in of_component(distributions, part)]
    if wheels:
        yield Passed(", ".join(named(one) for one in wheels))
        return
    system = [
        library
        for library in loader_libraries(view)
        if library.name in ("libcudnn", "libcublas", "libcudart") and loaded(library)
    ]
    if system:
        yield Passed(f"the system's {', '.join(dict.fromkeys(map(soname, system)))}")
        return
    yield Finding(
        "fail",
        f"{named(package)} was installed without its CUDA libraries, and the system has none: it runs "
        "on the CPU.",
        subjects=about("package", "tensorflow"),
        evidence=[
            view.evidence(PLACE, f"{named(package)}; no nvidia-cudnn, no nvidia-cublas"),
            view.evidence("target.loader.libraries", "no libcudnn, no libcublas found"),
        ],
        remedy=Remedy(
            "Install them with TensorFlow's own extra.",
            [pip_install(view, f"tensorflow[and-cuda]=={_and_cuda_version(version)}")],
        ),
        headline=f"{named(package)} has no CUDA libraries",
    )


def _and_cuda_version(version: Version) -> Version:
    """The version itself, or the next whose extra can be installed from the registry."""
    build = tensorflow_build(version)
    better = installable(build) if build else None
    return better.version if better else version


@check(
    "PKG-015",
    title="TensorFlow's CUDA wheels have the versions it asks for",
    problem="TensorFlow's CUDA wheels are not its own set",
    about=(
        "tensorflow[and-cuda] names each CUDA library it was built with. Another package in the same "
        "environment (PyTorch, JAX) may have replaced some of them; and for 2.14.0, 2.14.1 and 2.15.0 "
        "the extra itself cannot be installed everywhere, because it pins TensorRT wheels that the "
        "registry does not have. A warning where the set is incomplete or different while TensorFlow "
        "sees no GPU."
    ),
    sources=(WHEELS_SOURCE, "tensorflow#61986 and #62328"),
    follows=("PCI-001", "PKG-002", "PKG-003", "PKG-013", "LIB-005", "LIB-008"),
)
def and_cuda(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    package = distributions.get("tensorflow")
    version = version_of(package) if package else None
    if package is None or version is None or version.local:
        raise Skip("no tensorflow of the public registry in the target")
    build = tensorflow_build(version)
    if build is None:
        raise NotKnown(f"the CUDA libraries that {named(package)} asks for")
    if not build.and_cuda:
        raise Skip(f"{named(package)} has no [and-cuda] extra")
    found = pinned(build, distributions)
    if not found.present and not found.different:
        raise Skip(f"{named(package)} stands without CUDA wheels")
    parts = [f"missing {text}" for text in found.missing] + [f"{text}" for text in found.different]
    facts = framework(view, "tensorflow")
    works = facts is not None and sees_gpus(facts)
    if parts and not works and gpus_present(view) is None:
        need_gpus(view)
    if not parts or works or not gpus_present(view):
        yield Passed(
            f"{named(package)}[and-cuda]" + (f", except {'; '.join(parts)}" if parts else "")
        )
        return
    better = installable(build) or build
    note = f" ({build.note})" if build.tensorrt_pins else ""
    shown = "; ".join(parts[:4]) + (f" and {len(parts) - 4} more" if len(parts) > 4 else "")
    yield Finding(
        "warn",
        f"{named(package)}'s CUDA wheels are not the set it asks for: {shown}{note}.",
        subjects=about("package", "tensorflow"),
        evidence=[
            view.evidence(PLACE, f"{named(package)}: {'; '.join(parts)}"),
            view.evidence("target.tensorflow.gpus"),
        ],
        remedy=Remedy(
            "Install the set again.",
            [pip_install(view, f"tensorflow[and-cuda]=={better.version}")],
        ),
    )

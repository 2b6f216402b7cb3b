"""Checks on whether TensorFlow and Horovod stand with the CUDA libraries they were built with."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data.packages import (
    NVTF_SOURCE,
    WHEELS_SOURCE,
    TensorFlowBuild,
    tensorflow_build,
    tensorflow_builds,
)
from ...facts.base import known
from ...facts.missing import NotKnown, Skip
from ...facts.target import FRAMEWORKS, Distribution
from ...facts.view import SnapshotView, facts_of, need
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ..registry import check
from ..target import (
    framework,
    gpus_present,
    installed,
    loaded,
    loader_libraries,
    named,
    need_gpus,
    of_component,
    pip_install,
    pip_restore,
    sees_gpus,
    soname,
    tensorflows,
    version_of,
)
from .common import found
from .release_sets import OTHER_VERSION, nvidia_release


@check(
    "PKG-010",
    title="The libraries are those of NVIDIA's release",
    causes=[OTHER_VERSION],
    about="NVIDIA built each month's TensorFlow with one set of CUDA libraries and tested it with that. The"
    " wheels since 22.06 let the libraries float inside a CUDA major, so that an environment built later is"
    ' not the one NVIDIA tested. This names the release, what was compared and what differs; "not known" if'
    " no source says what the release holds.",
    sources=(
        "NVIDIA's TensorFlow release notes, container and wheel (releases.csv)",
        *(NVTF_SOURCE, "NVIDIA/tensorflow#85 and #86"),
    ),
    follows=("PKG-002", "PKG-003"),
)
def release_set(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    for one in tensorflows(distributions):
        if (getattr(version_of(one), "local", None) or "").startswith("nv"):
            yield from nvidia_release(view, one, distributions)
            return
    raise Skip("no TensorFlow of NVIDIA's in the target")


_HOLDS = "{package} holds no extension for {frameworks}: `import horovod` succeeds, and training across GPUs"
_BUILD_AGAIN = (
    "Build it again, with the framework installed first, and let a failing build be an error."
)
_BUILT_WITHOUT = "Horovod was built without the framework"
NO_EXTENSION = Cause(
    "horovod-empty", "fail", _BUILT_WITHOUT, f"{_HOLDS} with it fails.", _BUILD_AGAIN
)
EXTENSION_MISSING = Cause(
    "horovod-extension-missing", "warn", _BUILT_WITHOUT, f"{_HOLDS} fails there.", _BUILD_AGAIN
)


@check(
    "PKG-011",
    title="Horovod was built for the installed framework",
    causes=[NO_EXTENSION, EXTENSION_MISSING],
    about="Horovod builds its extension for each framework when it is installed, and goes on without a"
    " message if that fails; `horovodrun --check-build` was seen to tick a framework for which nothing had"
    " been built. This looks for the extension itself.",
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
    names = {"tensorflow": "TENSORFLOW", "torch": "PYTORCH"}
    wanted = "".join(f"HOROVOD_WITH_{names[name]}=1 " for name in lacking or ["tensorflow"])
    install = pip_restore(view, package.name, package.version)
    options = "--no-cache-dir --no-build-isolation"
    yield found(
        view,
        EXTENSION_MISSING if built else NO_EXTENSION,
        package,
        evidence=[view.evidence("target.packages.horovod_extensions")],
        commands=[f"{wanted}HOROVOD_GPU_OPERATIONS=NCCL {install} {options}"],
        frameworks=" and ".join(FRAMEWORKS[name] for name in lacking) or "any framework",
    )


NO_LIBRARIES = Cause(
    "no-cuda-libraries",
    "fail",
    "{package} has no CUDA libraries",
    "{package} was installed without its CUDA libraries, and the system has none: it runs on the CPU.",
    "Install them with TensorFlow's own extra.",
)


@check(
    "PKG-013",
    title="TensorFlow has CUDA libraries to load",
    causes=[NO_LIBRARIES],
    about="Since 2.14, `pip install tensorflow` brings no CUDA library: they come with the extra,"
    " tensorflow[and-cuda], or from a CUDA installation of the system. With neither, TensorFlow imports,"
    " trains on the CPU and says so in a log line only. No failure if TensorFlow was seen to find them.",
    sources=("TensorFlow's installation guide", WHEELS_SOURCE, "tensorflow#63362 and #65842"),
    follows=("PCI-001", "PKG-002", "PKG-003"),
)
def cuda_packages(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    package, version = _public_tensorflow(distributions)
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
        yield Passed(", ".join(map(named, wheels)))
        return
    names = ("libcudnn", "libcublas", "libcudart")
    system = [one for one in loader_libraries(view) if one.name in names and loaded(one)]
    if system:
        yield Passed(f"the system's {', '.join(dict.fromkeys(map(soname, system)))}")
        return
    shown = "no libcudnn, no libcublas found"
    yield found(
        view,
        NO_LIBRARIES,
        package,
        evidence=[view.evidence("target.loader.libraries", shown)],
        commands=[pip_install(view, f"tensorflow[and-cuda]=={_installable(version)}")],
    )


def _public_tensorflow(
    distributions: dict[str, Distribution],
) -> tuple[Distribution | None, Version | None]:
    package = distributions.get("tensorflow")
    return package, version_of(package)


def _installable(version: Version) -> Version:
    """The version itself, or the next whose [and-cuda] does not pin TensorRT wheels."""
    if tensorflow_build(version) is None:
        return version
    later = (one for one in tensorflow_builds() if one.version >= version)
    return next((one.version for one in later if not one.tensorrt_pins), version)


OTHER_SET = Cause(
    "cuda-wheels-differ",
    "warn",
    "TensorFlow's CUDA wheels are not its own set",
    "{package}'s CUDA wheels are not the set it asks for: {differences}.",
    "Install the set again.",
)


@check(
    "PKG-015",
    title="TensorFlow's CUDA wheels have the versions it asks for",
    causes=[OTHER_SET],
    about="tensorflow[and-cuda] names each CUDA library it was built with. Another package in the same"
    " environment (PyTorch, JAX) may have replaced some of them; and for 2.14.0, 2.14.1 and 2.15.0 the extra"
    " itself cannot be installed everywhere, because it pins TensorRT wheels that the registry does not"
    " have. A warning only while TensorFlow sees no GPU.",
    sources=(WHEELS_SOURCE, "tensorflow#61986 and #62328"),
    follows=("PCI-001", "PKG-002", "PKG-003", "PKG-013", "LIB-005", "LIB-008"),
)
def and_cuda(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    package, version = _public_tensorflow(distributions)
    if package is None or version is None or version.local:
        raise Skip("no tensorflow of the public registry in the target")
    build = tensorflow_build(version)
    if build is None:
        raise NotKnown(f"the CUDA libraries that {named(package)} asks for")
    if not build.and_cuda:
        raise Skip(f"{named(package)} has no [and-cuda] extra")
    differences = _differences(build, distributions)
    if sum(text.startswith("missing ") for text in differences) == len(build.and_cuda):
        raise Skip(f"{named(package)} stands without CUDA wheels")
    facts = framework(view, "tensorflow")
    works = facts is not None and sees_gpus(facts)
    if differences and not works and gpus_present(view) is None:
        need_gpus(view)
    if not differences or works or not gpus_present(view):
        but = f", except {'; '.join(differences)}" if differences else ""
        yield Passed(f"{named(package)}[and-cuda]{but}")
        return
    more = f" and {len(differences) - 4} more" if len(differences) > 4 else ""
    note = f" ({build.note})" if build.tensorrt_pins else ""
    yield found(
        view,
        OTHER_SET,
        package,
        evidence=[view.evidence("target.tensorflow.gpus")],
        commands=[pip_install(view, f"tensorflow[and-cuda]=={_installable(version)}")],
        differences="; ".join(differences[:4]) + more + note,
    )


def _differences(build: TensorFlowBuild, distributions: dict[str, Distribution]) -> list[str]:
    """How the NVIDIA wheels differ from what ``tensorflow[and-cuda]`` of one version asks for."""
    missing, different = [], []
    for requirement in build.and_cuda:
        one = distributions.get(canonicalize_name(requirement.name))
        version = version_of(one)
        if one is None:
            missing.append(f"missing {requirement}")
        elif version and not requirement.specifier.contains(version, prereleases=True):
            different.append(f"{named(one)} ({requirement.specifier})")
    return missing + different

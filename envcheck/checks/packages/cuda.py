"""Checks on whether TensorFlow and Horovod stand with the CUDA libraries they were built with."""

from __future__ import annotations

from packaging.utils import canonicalize_name
from packaging.version import Version

from ...data.packages import WHEELS_SOURCE
from ...data.tensorflow_wheels import TensorFlowBuild, tensorflow_build, tensorflow_builds
from .. import target
from ..network.horovod import BUILD_NAMES
from ..reading import FRAMEWORKS, Distribution, NotKnown, Skip, SnapshotView, facts_of, known, need
from ..target import installed, named, need_gpus, pip_install, sees_gpus, version_of
from ..verdicts import Passed, Verdicts, check, fail, warn
from .common import found

_BUILT_WITHOUT = "Horovod was built without the framework"
_HOLDS = "{package} holds no extension for {frameworks}: `import horovod` succeeds, and training across GPUs"
_BUILD_AGAIN = (
    "Build it again, with the framework installed first, and let a failing build be an error."
)
_WITH_IT, _THERE = f"{_HOLDS} with it fails.", f"{_HOLDS} fails there."
NO_EXTENSION = fail("horovod-empty", _BUILT_WITHOUT, _WITH_IT, _BUILD_AGAIN)
EXTENSION_MISSING = warn("horovod-extension-missing", _BUILT_WITHOUT, _THERE, _BUILD_AGAIN)


@check(
    "PKG-011",
    title="Horovod was built for the installed framework",
    causes=[NO_EXTENSION, EXTENSION_MISSING],
    about="Horovod builds its extension for each framework when it is installed, and continues without a"
    " message if that fails; `horovodrun --check-build` has listed a framework for which nothing had"
    " been built. This check looks for the extension itself.",
    sources=("horovod 0.28.1, observed",),
)
def horovod(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    package = distributions.get("horovod") or distributions.get("nvidia-horovod")
    if package is None:
        raise Skip("no Horovod in the target")
    packages = facts_of(view.target.packages, "the target's packages")
    extensions = need(packages.horovod_extensions, "Horovod's extensions")
    built = [one.framework for one in extensions if one.present]
    has = {"tensorflow": bool(target.tensorflows(distributions)), "torch": "torch" in distributions}
    lacking = [name for name, there in has.items() if there and name not in built]
    if built and not lacking:
        yield Passed(f"{named(package)}, built for {', '.join(built)}")
        return
    wanted = "".join(f"HOROVOD_WITH_{BUILD_NAMES[name]}=1 " for name in lacking or ["tensorflow"])
    install = target.pip_restore(view, package.name, package.version)
    options = "--no-cache-dir --no-build-isolation"
    yield found(
        view,
        EXTENSION_MISSING if built else NO_EXTENSION,
        package,
        evidence=[view.evidence("target.packages.horovod_extensions")],
        commands=[f"{wanted}HOROVOD_GPU_OPERATIONS=NCCL {install} {options}"],
        frameworks=" and ".join(FRAMEWORKS[name] for name in lacking) or "any framework",
    )


NO_LIBRARIES = fail(
    "no-cuda-libraries",
    "{package} has no CUDA libraries",
    "{package} was installed without its CUDA libraries, and the system has none: it runs on the CPU.",
    "Install them with TensorFlow's own extra.",
)


@check(
    "PKG-013",
    title="TensorFlow has CUDA libraries to load",
    causes=[NO_LIBRARIES],
    about="Since 2.14, `pip install tensorflow` brings no CUDA library: they come with the extra,"
    " tensorflow[and-cuda], or from a CUDA installation of the system. With neither, TensorFlow trains on the"
    " CPU and says so in a log line only.",
    sources=("TensorFlow's installation guide", WHEELS_SOURCE, "tensorflow#63362 and #65842"),
    follows=("PCI-001", "PKG-002", "PKG-003"),
)
def cuda_packages(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    package = distributions.get("tensorflow")
    version = version_of(package)
    if package is None or version is None or version < Version("2.14"):
        raise Skip("no tensorflow 2.14 or later in the target")
    need_gpus(view)
    facts = target.framework(view, "tensorflow")
    if facts is not None and known(facts.cuda_build) is False:
        raise Skip("this TensorFlow was built without CUDA")
    if facts is not None and sees_gpus(facts):
        yield Passed(f"{named(package)} finds its libraries")
        return
    parts = ("cudnn", "cublas")
    wheels = [one for part in parts for one in target.of_component(distributions, part)]
    if wheels:
        yield Passed(", ".join(map(named, wheels)))
        return
    names = ("libcudnn", "libcublas", "libcudart")
    libraries = target.loader_libraries(view)
    system = [one for one in libraries if one.name in names and target.loaded(one)]
    if system:
        yield Passed(f"the system's {', '.join(dict.fromkeys(map(target.soname, system)))}")
        return
    shown = view.evidence("target.loader.libraries", "no libcudnn, no libcublas found")
    commands = [_and_cuda(view, version)]
    yield found(view, NO_LIBRARIES, package, evidence=[shown], commands=commands)


def _and_cuda(view: SnapshotView, version: Version) -> str:
    """The command for that version, or the next whose [and-cuda] does not pin TensorRT wheels."""
    if tensorflow_build(version) is not None:
        later = (one for one in tensorflow_builds() if one.version >= version)
        version = next((one.version for one in later if not one.tensorrt_pins), version)
    return pip_install(view, f"tensorflow[and-cuda]=={version}")


OTHER_SET = warn(
    "cuda-wheels-differ",
    "TensorFlow's CUDA wheels are not its own set",
    "{package}'s CUDA wheels are not the set it asks for: {differences}.",
    "Install the set again.",
)


@check(
    "PKG-015",
    title="TensorFlow's CUDA wheels have the versions it asks for",
    causes=[OTHER_SET],
    about="tensorflow[and-cuda] names each CUDA library it was built with; another package (PyTorch, JAX) may"
    " have replaced some of them, and for 2.14.0, 2.14.1 and 2.15.0 the extra itself cannot be installed"
    " everywhere. A warning only while TensorFlow sees no GPU.",
    sources=(WHEELS_SOURCE, "tensorflow#61986 and #62328"),
    follows=("PCI-001", "PKG-002", "PKG-003", "PKG-013", "LIB-005", "LIB-008"),
)
def and_cuda(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    package = distributions.get("tensorflow")
    version = version_of(package)
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
    facts = target.framework(view, "tensorflow")
    works = facts is not None and sees_gpus(facts)
    present = target.gpus_present(view)
    if differences and not works and present is None:
        need_gpus(view)
    if not differences or works or not present:
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
        commands=[_and_cuda(view, version)],
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

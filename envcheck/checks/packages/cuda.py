"""Checks on whether TensorFlow and Horovod stand with the CUDA libraries they were built with."""

from __future__ import annotations

from packaging.version import Version

from ...data.packages import WHEELS_SOURCE
from ...data.tensorflow_wheels import tensorflow_build, tensorflow_builds
from .. import target
from ..network.horovod import BUILD_NAMES
from ..reading import FRAMEWORKS, Skip, SnapshotView, facts_of, known, need
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

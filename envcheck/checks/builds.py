"""Which build of a framework runs on this machine's GPUs, and the command that installs it.

What is printed is resolved first, from tables alone: for the target's Python, the C library, the driver, the
GPUs and the packages that follow the framework's version. Where nothing fits, the remedy says what to change.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from packaging.version import Version

from ..data.cuda import driver_fits
from ..data.framework_builds import FrameworkBuild, framework_builds
from ..data.framework_gpus import gpu_builds
from ..data.tensorflow_wheels import TensorFlowBuild, oldest_glibc, tensorflow_builds
from ..data.versions import parse_version
from ..facts.host import Host
from .driver_state import driver_version, on_windows, on_wsl
from .fitness import code_for, tensorflow_list
from .installing import by_conda, conda_install, pip_install
from .reading import FRAMEWORKS, SnapshotView, fact, facts_or, known
from .system_commands import on_system
from .target import installed_if_known, python_version
from .verdicts import Remedy
from .visible import capabilities

# What a build may not suit, in the order in which it is easier to change.
_DRIVER, _PYTHON, _PLATFORM, _GPU = "driver", "python", "platform", "gpu"
# By conda-forge's documentation: the build strings of those with CUDA; conda knows what the driver runs.
_CONDA_FORGE = {
    "torch": "pytorch-gpu -c conda-forge",
    "jax": "jax 'jaxlib=*=*cuda*' -c conda-forge",
    "tensorflow": "'tensorflow=*=cuda*' -c conda-forge",
}


@cache
def builds_of(framework: str) -> tuple[FrameworkBuild, ...]:
    """The builds with code for GPUs that tables know, oldest first."""
    if framework != "tensorflow":
        return framework_builds(framework)
    wheels = (one for one in tensorflow_builds() if one.and_cuda and one.cuda)
    return tuple(map(_of_wheel, wheels))


def _of_wheel(wheel: TensorFlowBuild) -> FrameworkBuild:
    """TensorFlow's extra [and-cuda], of the Pythons for which all that it pins has wheels."""
    pins = {pin.name for pin in wheel.tensorrt_pins}
    tags = [tag.removeprefix("cp3") for tag in wheel.python_tags]
    if "tensorrt-libs" in pins:
        tags = []  # 8.6.1 is not on PyPI
    elif "tensorrt" in pins:
        tags = [tag for tag in tags if int(tag) <= 10]  # tensorrt 8.5.3.1's wheels
    return FrameworkBuild(
        framework="tensorflow",
        version=wheel.version,
        pythons=() if wheel.version.is_prerelease else tuple(f"3.{tag}" for tag in tags),
        glibc=oldest_glibc(wheel) or Version("2.17"),
        architectures=("x86_64",),
        cuda=wheel.cuda,
        capabilities=tuple(tensorflow_list(wheel.capabilities)),
        requirement=f"tensorflow[and-cuda]=={wheel.version}",
        beside=(),
        needs="",
        options="",
        conda="",
        source=wheel.source,
    )


def misfits(view: SnapshotView, build: FrameworkBuild, gpus: Iterable[str]) -> set[str]:
    """What of this machine a build does not suit. What is not known is no reason against it."""
    host = facts_or(view.seen.host, Host)
    found: set[str] = set()
    python, driver = python_version(view), known(driver_version(view)[0])
    if python is not None and "{}.{}".format(*python) not in build.pythons:
        found.add(_PYTHON)
    glibc, arch = parse_version(known(host.glibc) or ""), architecture(view)
    if (glibc and glibc < build.glibc) or (arch and arch not in build.architectures):
        found.add(_PLATFORM)
    windows = on_wsl(view) or on_windows(view)  # whose drivers have other numbers
    if driver and not windows and driver_fits(build.cuda, driver).fits is not True:
        found.add(_DRIVER)
    runs = {"native"} if build.framework == "tensorflow" else {"native", "jit"}
    if any(code_for(one, build.capabilities).kind not in runs for one in gpus):
        found.add(_GPU)
    return found


def architecture(view: SnapshotView) -> str:
    return (
        fact(view.target.interpreter, "architecture") or fact(view.seen.host, "architecture") or ""
    )


def newest_build(
    view: SnapshotView, framework: str, gpus: Iterable[str], unlike: Iterable[str] = ()
) -> FrameworkBuild | None:
    """The build to install: of the installed minor version where one fits, else the newest that does.

    unlike: of the reasons against a build those that do not count, such as "driver".
    """
    wanted, excused = list(gpus), set(unlike)
    fit = [one for one in builds_of(framework) if misfits(view, one, wanted) <= excused]
    version = _installed(view, framework)

    def rank(build: FrameworkBuild) -> tuple[bool, bool, Version, bool, Version]:
        same = version is not None and build.version.release[:2] == version.release[:2]
        return not build.needs, same, build.version, not build.options, Version(build.cuda)

    return max(fit, key=rank, default=None)


def _installed(view: SnapshotView, framework: str) -> Version | None:
    names = (framework, "tensorflow-cpu") if framework == "tensorflow" else (framework,)
    found = installed_if_known(view)
    versions = (parse_version(found[name].version) for name in names if name in found)
    return next((one for one in versions if one is not None), None)


def install_command(view: SnapshotView, build: FrameworkBuild) -> str:
    """Installs a build, and with it the packages that are there and follow its version."""
    found = installed_if_known(view)
    version = _installed(view, build.framework)
    beside = [one for one in build.beside if one.partition("==")[0] in found]
    # pip takes 2.3.1+cpu for 2.3.1.
    same = version is not None and version.public == build.version.public
    again = same and build.framework == "torch" and "+" not in build.requirement
    options = [*build.options.split(), *(["--force-reinstall"] if again else [])]
    return " ".join([pip_install(view, build.requirement, *beside), *options])


def gpu_build(view: SnapshotView, framework: str, gpus: Iterable[str] | None = None) -> Remedy:
    """What brings a build of ``framework`` that runs here: a command, or what to change instead.

    gpus: the compute capabilities that it must have code for; None: those of the visible GPUs.
    """
    title, wanted = FRAMEWORKS[framework], capabilities(view) if gpus is None else list(gpus)
    on = f"compute capability {', '.join(wanted)}" if wanted else "the GPUs"
    if architecture(view).startswith("ppc64"):
        conda = fact(view.target.interpreter, "kind") == "conda"
        name = {"torch": "pytorch"}.get(framework, framework)
        return Remedy(
            f"PyPI has no {title} for POWER: Open-CE's conda channel has builds of it with CUDA.",
            [conda_install(view, f"-c rocketce {name}")] if conda and framework != "jax" else [],
        )
    if by_conda(view, framework):
        return _by_conda(view, framework, wanted)
    build = newest_build(view, framework, wanted)
    if build is not None:
        return Remedy(
            f"Install {title} {build.version} of CUDA {build.cuda}: this Python and driver run it, and it has"
            f" code for {on}.{f' It takes {build.needs}.' if build.needs else ''}",
            [install_command(view, build)],
        )
    driver, python = known(driver_version(view)[0]) or "", python_version(view)
    if (build := newest_build(view, framework, wanted, [_DRIVER])) is not None:
        needs = driver_fits(build.cuda, driver).needs
        return Remedy(
            f"No {title} with code for {on} runs with driver {driver} and this Python: update the driver to"
            f" {needs or 'one'} or newer{'' if needs else f' that runs CUDA {build.cuda}'}, then install"
            f" {title} {build.version}.",
            [*on_system(view, "update-driver"), install_command(view, build)],
        )
    if (build := newest_build(view, framework, wanted, [_PYTHON])) is not None and python:
        return Remedy(
            f"No {title} with code for {on} and this driver is known for Python {python[0]}.{python[1]}: make"
            f" an environment of Python {build.pythons[-1]}, and install {build.requirement} there"
            f"{f' ({build.options})' if build.options else ''}."
        )
    return Remedy(_nothing(view, framework, wanted, on), _image(framework, wanted))


def _by_conda(view: SnapshotView, framework: str, gpus: list[str]) -> Remedy:
    version = _installed(view, framework)
    build = newest_build(view, framework, gpus)
    same = (
        build is not None
        and version is not None
        and build.version.release[:2] == version.release[:2]
    )
    what = build.conda if build is not None and same and build.conda else _CONDA_FORGE[framework]
    return Remedy(
        f"Install conda's {FRAMEWORKS[framework]} with CUDA in the place of the one that is there.",
        [conda_install(view, what)],
    )


def _image(framework: str, gpus: Iterable[str]) -> list[str]:
    rows = (gpu_builds(framework, one) for one in gpus)
    image = next((row.image for row in rows if row is not None and row.image), "")
    return [f"docker run --rm -it --gpus all {image}"] if image else []


def _nothing(view: SnapshotView, framework: str, gpus: list[str], on: str) -> str:
    title, arch = FRAMEWORKS[framework], architecture(view)
    if _image(framework, gpus):
        return (
            f"No {title} wheel is known to have code for {on}: use NVIDIA's container, which most reports say"
            " runs there, or build it for this compute capability."
        )
    if newest_build(view, framework, gpus, [_DRIVER, _PYTHON]) is not None:
        return f"No {title} with code for {on} is known for this Python and driver: both have to be newer."
    if newest_build(view, framework, gpus, [_DRIVER, _PYTHON, _PLATFORM]) is not None:
        return (
            f"No {title} with CUDA is known for this platform ({arch}, glibc"
            f" {fact(view.seen.host, 'glibc') or 'not known'}): run it in a container, which brings its own"
            " glibc, or build it."
        )
    return f"No public build of {title} is known to have code for {on}: build it for that one."

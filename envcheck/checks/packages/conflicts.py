"""Checks on packages of which it is known that they do not suit each other."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from ...data.packages import NVTF_SOURCE, is_first_generation
from ...facts.base import known
from ...facts.missing import NotKnown, Skip
from ...facts.target import Distribution
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..registry import check
from ..target import (
    PLACE,
    imports,
    installed,
    named,
    of_component,
    pip_install,
    pip_replace,
    tensorflows,
    version_of,
)


@check(
    "PKG-005",
    title="protobuf suits TensorFlow 1.15",
    problem="protobuf is too new for TensorFlow 1.15",
    about=(
        "TensorFlow 1.15's generated code works with protobuf below 3.21 (4.21 is its next release) "
        "and dies on import with a newer one, while `pip check` reports no problem: older wheels "
        "name no upper bound, and an unconstrained resolver takes protobuf 4. A failure, unless "
        "TensorFlow was seen to import anyway."
    ),
    sources=("upstream 1.15.5 with protobuf 4.24.4, observed", NVTF_SOURCE),
)
def protobuf(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    found = _first_generation(distributions)
    package = distributions.get("protobuf")
    if found is None or package is None:
        raise Skip("no TensorFlow 1.x with protobuf in the target")
    if version_of(package) is None and not imports(view, "tensorflow"):
        raise NotKnown(f"whether {named(found)} works with {named(package)}")
    if not protobuf_breaks(view, distributions):
        yield Passed(f"{named(found)} with {named(package)}")
        return
    yield Finding(
        "fail",
        f"{named(package)} is too new for {named(found)}, which needs one below 3.21: importing "
        "TensorFlow fails.",
        subjects=about("package", "protobuf"),
        evidence=[view.evidence(PLACE, f"{named(found)}, {named(package)}")],
        remedy=Remedy("Pin protobuf.", [pip_install(view, "protobuf<3.21")]),
        headline=f"{named(package)} is too new for {named(found)}",
    )


def _first_generation(distributions: dict[str, Distribution]) -> Distribution | None:
    return next(
        (one for one in tensorflows(distributions) if is_first_generation(one.version)), None
    )


def protobuf_breaks(view: SnapshotView, distributions: dict[str, Distribution]) -> bool:
    package = distributions.get("protobuf")
    version = version_of(package) if package else None
    if _first_generation(distributions) is None or not version or imports(view, "tensorflow"):
        return False
    return version >= Version("3.21")


@check(
    "PKG-006",
    title="pynvml comes from nvidia-ml-py",
    problem="pynvml does not come from nvidia-ml-py",
    about=(
        "The old pynvml package (below 12) brings a module of the same name as nvidia-ml-py's, and "
        "overwrites it. Monitoring and frameworks then read the GPU through a binding from years ago, "
        "which lacks what newer drivers report. A warning where both are installed and the module "
        "that is imported is not nvidia-ml-py's."
    ),
    sources=("pynvml 11.5.3 beside nvidia-ml-py, observed",),
)
def pynvml(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    old, binding = distributions.get("pynvml"), distributions.get("nvidia-ml-py")
    if old is None or binding is None:
        raise Skip("pynvml and nvidia-ml-py are not both installed in the target")
    version = version_of(old)
    packages = facts_of(view.target.packages, "the target's packages")
    module = known(packages.pynvml_module_version)
    if (version and version >= Version("12")) or (module and module == binding.version):
        yield Passed(f"the module is that of {named(binding)}")
        return
    says = f" (the module says {module})" if module else ""
    yield Finding(
        "warn",
        f"{named(old)} overwrites the module of {named(binding)}{says}: what newer drivers report "
        "is missing.",
        subjects=about("package", "pynvml"),
        evidence=[
            view.evidence(PLACE, f"{named(old)}, {named(binding)}"),
            view.evidence("target.packages.pynvml_module_version"),
        ],
        remedy=Remedy(
            "Take pynvml away, and put nvidia-ml-py's module back.",
            [pip_replace(view, f"nvidia-ml-py=={binding.version}", "pynvml")],
        ),
    )


@check(
    "PKG-007",
    title="TensorRT's cuDNN is installed",
    problem="TensorRT's cuDNN is missing",
    about=(
        "TensorRT 8 is linked with cuDNN 8 and asks for libcudnn.so.8, but its wheels on the registry "
        "name no version, so that a resolver installs cuDNN 9. Importing TensorRT, and TensorFlow's "
        'TensorRT integration, then fails with "libcudnn.so.8: cannot open shared object file". A '
        "failure where TensorRT 8 stands beside cuDNN 9 and no cuDNN 8."
    ),
    sources=("tensorrt 8.5.3.1 from the public registry, observed", "NVIDIA/TensorRT#2933"),
)
def tensorrt_cudnn(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    engines = [
        one
        for name, one in distributions.items()
        if name in ("tensorrt", "nvidia-tensorrt", "tensorrt-libs")
        and (version := version_of(one))
        and version.major == 8
    ]
    if not engines:
        raise Skip("no TensorRT 8 in the target")
    cudnn = of_component(distributions, "cudnn")
    majors = {version.major for one in cudnn if (version := version_of(one))}
    if not cudnn:
        raise Skip("no cuDNN wheel in the target")
    if not majors:
        raise NotKnown(f"which cuDNN {named(cudnn[0])} is")
    if 8 in majors:
        yield Passed(", ".join(named(one) for one in [*engines, *cudnn]))
        return
    wrong = cudnn[0]
    yield Finding(
        "fail",
        f"{named(engines[0])} needs libcudnn.so.8, and only {named(wrong)} is installed: importing "
        "TensorRT fails.",
        subjects=about("package", engines[0].name),
        evidence=[view.evidence(PLACE, f"{named(engines[0])}, {named(wrong)}")],
        remedy=Remedy("Install cuDNN 8.", [pip_install(view, f"{wrong.name}<9")]),
    )


@check(
    "PKG-014",
    title="numpy suits TensorFlow",
    problem="numpy does not fit TensorFlow",
    about=(
        "TensorFlow 1.15 uses names that numpy removed in 1.24, and TensorFlow before 2.18 was "
        "compiled for numpy 1 and fails with numpy 2, on import or in the middle of a run. A failure, "
        "unless TensorFlow was seen to import anyway."
    ),
    sources=(
        NVTF_SOURCE,
        "TensorFlow's release notes, 2.18.0",
        "numpy's release notes, 1.24.0 and 2.0.0",
    ),
)
def numpy(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    package = distributions.get("numpy")
    found = next(iter(tensorflows(distributions)), None)
    if package is None or found is None:
        raise Skip("no TensorFlow with numpy in the target")
    limit = numpy_breaks(view, distributions)
    if not limit and not imports(view, "tensorflow"):
        has = version_of(package)
        if has is None or version_of(found) is None or has >= _NEWEST_NUMPY:
            raise NotKnown(f"whether {named(found)} works with {named(package)}")
    if not limit:
        yield Passed(f"{named(found)} with {named(package)}")
        return
    yield Finding(
        "fail",
        f"{named(package)} is too new for {named(found)}, which needs one below {limit}.",
        subjects=about("package", "numpy"),
        evidence=[view.evidence(PLACE, f"{named(found)}, {named(package)}")],
        remedy=Remedy("Pin numpy.", [pip_install(view, f"numpy<{limit}")]),
    )


_NEWEST_NUMPY = Version("3")  # of which no TensorFlow has said that it works, or does not


def numpy_breaks(view: SnapshotView, distributions: dict[str, Distribution]) -> str:
    """The numpy version that the installed TensorFlow needs one below of, where it has none; else ""."""
    package = distributions.get("numpy")
    found = next(iter(tensorflows(distributions)), None)
    if package is None or found is None or imports(view, "tensorflow"):
        return ""
    has, tensorflow = version_of(package), version_of(found)
    if has is None or tensorflow is None or tensorflow.major < 1:
        return ""
    limit = "1.24" if tensorflow.major == 1 else "2" if tensorflow < Version("2.18") else ""
    return limit if limit and has >= Version(limit) else ""

"""The check on driver libraries in an image: they belong to the host, and an engine mounts them."""

from __future__ import annotations

from ...facts.gpu import NvidiaSmi
from ...facts.kernel import DriverFile
from ..driver_on_disk import driver_files, upstream
from ..reading import CudaDriver, Kernel, Nvml, Skip, SnapshotView, facts_of, facts_or, known, need
from ..verdicts import (
    Evidence,
    Finding,
    Passed,
    Remedy,
    Verdicts,
    about_file,
    check,
    fail,
    warn,
    word,
    words,
)

# They boot a system of their own, in which the driver's libraries may well be installed.
_SYSTEM_CONTAINERS = ("lxc", "lxc-libvirt", "systemd-nspawn")
# Where apptainer's --nv binds the driver's libraries, by names without a version.
_APPTAINER_LIBRARIES = "/.singularity.d/libs"
_MISMATCH = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
_CUDA_MISFIT = (803, 804)  # the library does not fit the driver
_EMPTY_LIBRARY = "file too short"  # ld.so's error for a library without bytes
_HOLDS = "The image holds {libraries} of driver {versions} at {path}, and the host's module is {module}: "

OWN_DRIVER = fail(
    "image-driver-in-use",
    "programs use the image's own driver libraries",
    _HOLDS + "programs get the image's, and no GPU.",
)
OWN_LIBRARIES = warn(
    "image-has-driver",
    "the image holds a driver of its own",
    _HOLDS + "programs get the driver's own now; another order of paths, and they get the image's.",
)
EMPTY = fail(
    "image-has-empty-libraries",
    "the image holds empty driver libraries",
    "The image keeps empty files instead of the driver's libraries, as a `docker commit` of a"
    " container with GPUs makes them, and nothing was mounted over them.",
    "Start the container with its GPUs, so that the driver is mounted over them; for good: take them"
    " out of the image.",
)


@check(
    "CTR-012",
    title="The image holds no driver of its own",
    causes=[OWN_DRIVER, OWN_LIBRARIES, EMPTY],
    about="libcuda and libnvidia-ml belong to the host's driver: the engine mounts them into a container."
    " An image that has its own (an installed driver package, a `docker commit` of a container with GPUs, a"
    " build on WSL) gives programs the wrong ones as soon as they come first in LD_LIBRARY_PATH or in"
    " ldconfig's order.",
    sources=["apptainer#846; E4S-Project/e4s#172; tensorflow/build#59"],
    follows=("PCI-001",),
)
def image_has_no_driver(view: SnapshotView) -> Verdicts:
    kind = _kind(view)
    if kind is None:
        raise Skip("not in a container")
    if kind in _SYSTEM_CONTAINERS:
        raise Skip("a system container has a driver's libraries of its own")
    kernel = facts_of(view.seen.kernel, "the driver's libraries inside")
    need(kernel.driver_files, "the driver's libraries inside")
    files = driver_files(kernel)
    module = need(kernel.driver_version, "the host's module")
    for file in files:
        need(file.mounted, f"whether {file.path} is the image's own")
    own = [file for file in files if file.mounted is False]
    foreign = [file for file in own if file.version != module]
    if foreign:
        yield _foreign(view, kernel, foreign, module)
    elif _finds_empty(view):
        yield _empty(view, known(kernel.empty_driver_files) or [])
    elif own:
        yield Passed(f"the image's own libraries are the driver's {module}, by chance")
    else:
        yield Passed("all of the driver was mounted")


def _foreign(view: SnapshotView, kernel: Kernel, foreign: list[DriverFile], module: str) -> Finding:
    symptoms = _symptoms(view)
    unmounted = ", ".join(f"{file.path} (not mounted)" for file in foreign[:6])
    return (OWN_DRIVER if symptoms else OWN_LIBRARIES).found(
        [subject for file in foreign[:4] for subject in about_file(file.path)],
        [
            view.evidence("seen.kernel.driver_files", unmounted),
            view.evidence("seen.kernel.driver_version"),
            *symptoms,
        ],
        advice=_remedy(view, kernel, foreign, module),
        versions=" and ".join(dict.fromkeys(file.version for file in foreign)),
        libraries=" and ".join(dict.fromkeys(file.library for file in foreign)),
        path=foreign[0].path,
        module=module,
    )


def _remedy(view: SnapshotView, kernel: Kernel, foreign: list[DriverFile], module: str) -> Remedy:
    versions = {file.version for file in foreign}
    real = words([file.real_path for file in foreign])
    removal = f"rm -f {real}"
    packages = [p for p in known(kernel.driver_packages) or [] if upstream(p.version) in versions]
    if packages:
        purge = "apt-get purge -y" if packages[0].manager == "dpkg" else "rpm -e --nodeps"
        removal = f"{purge} {words([package.name for package in packages[:12]])}"
    for_good = _for_good(view, f"ls -l {real}", removal)
    searched = _library_path(view)
    brought = _brought(kernel, module, searched)
    if brought and {file.path.rpartition("/")[0] for file in foreign} & set(searched):
        return Remedy(
            f"Put the directory of the driver's own libraries, {brought}, first in LD_LIBRARY_PATH; for good:"
            " take the image's out of it.",
            [f"export LD_LIBRARY_PATH={word(brought)}:$LD_LIBRARY_PATH", *for_good],
        )
    return Remedy(
        "Take the driver out of the image; the engine brings in everything that is needed.",
        for_good,
    )


def _for_good(view: SnapshotView, look: str, removal: str) -> list[str]:
    """The commands that show what goes, and change the container (where it may be) and its image."""
    if _kind(view) == "apptainer":
        return [look, f"# in the image's definition, %post: {removal}"]
    inside = f"{removal} && ldconfig   # in the container"
    return [look, inside, f"# in its Dockerfile: RUN {removal}"]


def _brought(kernel: Kernel, module: str, searched: list[str]) -> str:
    """The directory of the driver's own libraries; "" where none was brought in."""
    files = [f for f in driver_files(kernel) if f.mounted is True and f.version == module]
    if files:
        return files[0].path.rpartition("/")[0]
    return _APPTAINER_LIBRARIES if _APPTAINER_LIBRARIES in searched else ""


def _library_path(view: SnapshotView) -> list[str]:
    target = view.snapshot.target
    probe = None if target is None else target.environment
    variables = {} if probe is None or probe.facts is None else probe.facts.variables
    return [entry.rstrip("/") for entry in variables.get("LD_LIBRARY_PATH", "").split(":")]


def _kind(view: SnapshotView) -> str | None:
    return known(facts_of(view.seen.host, "whether this is a container").container)


def _symptoms(view: SnapshotView) -> list[Evidence]:
    """What shows that the wrong libraries are used."""
    nvml, smi = facts_or(view.seen.nvml, Nvml), facts_or(view.seen.nvidia_smi, NvidiaSmi)
    fields = {
        "nvml.init_code": known(nvml.init_code) == _MISMATCH,
        "nvidia_smi.exit_code": known(smi.exit_code) == _MISMATCH,
        "cuda.init_code": known(facts_or(view.seen.cuda, CudaDriver).init_code) in _CUDA_MISFIT,
    }
    return [view.evidence(f"seen.{field}") for field, wrong in fields.items() if wrong]


def _finds_empty(view: SnapshotView) -> bool:
    load = known(facts_or(view.seen.cuda, CudaDriver).load_error)
    init = known(facts_or(view.seen.nvml, Nvml).init_error)
    return any(_EMPTY_LIBRARY in (text or "") for text in (load, init))


def _empty(view: SnapshotView, empty: list[str]) -> Finding:
    found = "find / -xdev -name 'lib*nvidia*' -size 0"
    look = f"ls -l {words(empty)}" if empty else found
    removal = f"rm -f {words(empty)}" if empty else f"{found} -delete"
    return EMPTY.found(
        [subject for path in empty[:4] for subject in about_file(path)],
        [view.evidence("seen.kernel.empty_driver_files")],
        commands=_for_good(view, look, removal),
    )

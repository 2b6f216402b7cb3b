"""The check on what an image holds of a driver: it belongs to the host, and an engine brings it in."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.kernel import DriverFile, Kernel
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word, words
from ...findings.subjects import about_file
from ..driver_on_disk import driver_files, upstream
from ..registry import check

# They boot a system of their own, in which the driver's libraries may well be installed.
SYSTEM_CONTAINERS = ("lxc", "lxc-libvirt", "systemd-nspawn")
APPTAINER_LIBRARIES = (
    "/.singularity.d/libs"  # where its --nv binds the driver's, by names without a version
)
VARIABLE = "LD_LIBRARY_PATH"
_MISMATCH = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
_CUDA_MISFIT = (803, 804)  # the library does not go with the driver
_EMPTY = "file too short"  # ld.so's words for a library without bytes


@check(
    "CTR-012",
    title="The image holds no driver of its own",
    problem="the image holds a driver of its own",
    about="libcuda and libnvidia-ml belong to the host's driver: the engine mounts them into a container. An"
    " image that has its own (a driver package that was installed in it, a `docker commit` of a container"
    " with GPUs, a build on WSL) gives programs the wrong ones as soon as they come first in LD_LIBRARY_PATH"
    " or in ldconfig's order: 'Driver/library version mismatch' inside, with all well on the host. Judged by"
    " whether a driver library inside is a mount or a file of the image, and by its version against the"
    " module's: a failure where the driver does not answer for it, else a warning.",
    sources=(
        "apptainer#846; E4S-Project/e4s#172; tensorflow/build#59",
        "nvidia-docker#1699, #1551; nvidia-container-toolkit#289",
    ),
    follows=("PCI-001",),
)
def image_has_no_driver(view: SnapshotView) -> Iterator[Verdict]:
    kind = _kind(view)
    if kind is None:
        raise Skip("not in a container")
    if kind in SYSTEM_CONTAINERS:
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
        yield Passed("what there is of the driver was brought in")


def _foreign(view: SnapshotView, kernel: Kernel, foreign: list[DriverFile], module: str) -> Finding:
    versions = " and ".join(dict.fromkeys(file.version for file in foreign))
    libraries = " and ".join(dict.fromkeys(file.library for file in foreign))
    symptoms = _symptoms(view)
    return Finding(
        "fail" if symptoms else "warn",
        f"The image holds {libraries} of driver {versions} at {foreign[0].path}, and the host's module is"
        f" {module}: "
        + (
            "programs get the image's, and no GPU."
            if symptoms
            else "programs get the driver's own now; another order of paths, and they get the image's."
        ),
        subjects=[subject for file in foreign[:4] for subject in about_file(file.path)],
        evidence=[
            view.evidence(
                "seen.kernel.driver_files",
                ", ".join(f"{file.path} (not mounted)" for file in foreign[:6]),
            ),
            view.evidence("seen.kernel.driver_version"),
            *symptoms,
        ],
        remedy=_remedy(view, kernel, foreign, module),
    )


def _remedy(view: SnapshotView, kernel: Kernel, foreign: list[DriverFile], module: str) -> Remedy:
    versions = {file.version for file in foreign}
    look = f"ls -l {words([file.real_path for file in foreign])}"
    packages = [p for p in known(kernel.driver_packages) or [] if upstream(p.version) in versions]
    if packages:
        purge = "apt-get purge -y" if packages[0].manager == "dpkg" else "rpm -e --nodeps"
        removal = f"{purge} {words([package.name for package in packages[:12]])}"
    else:
        removal = f"rm -f {words([file.real_path for file in foreign])}"
    searched = _library_path(view)
    brought = _brought(kernel, module, searched)
    if brought and {file.path.rpartition("/")[0] for file in foreign} & set(searched):
        return Remedy(
            f"Put the directory of the driver's own libraries, {brought}, first in LD_LIBRARY_PATH; for good:"
            " take the image's out of it.",
            [
                f"export LD_LIBRARY_PATH={word(brought)}:$LD_LIBRARY_PATH",
                *_for_good(view, look, removal),
            ],
        )
    return Remedy(
        "Take the driver out of the image; what the engine brings in is all that is needed.",
        _for_good(view, look, removal),
    )


def _for_good(view: SnapshotView, look: str, removal: str) -> list[str]:
    """The commands that show what goes, and change the container (where it may be) and its image."""
    if _kind(view) == "apptainer":
        return [look, f"# in the image's definition, %post: {removal}"]
    return [
        look,
        f"{removal} && ldconfig   # in the container",
        f"# in its Dockerfile: RUN {removal}",
    ]


def _brought(kernel: Kernel, module: str, searched: list[str]) -> str:
    """The directory of the driver's own libraries; "" where none was brought in."""
    files = [f for f in driver_files(kernel) if f.mounted is True and f.version == module]
    if files:
        return files[0].path.rpartition("/")[0]
    return APPTAINER_LIBRARIES if APPTAINER_LIBRARIES in searched else ""


def _library_path(view: SnapshotView) -> list[str]:
    target = view.snapshot.target
    probe = None if target is None else target.environment
    value = "" if probe is None or probe.facts is None else probe.facts.variables.get(VARIABLE, "")
    return [entry.rstrip("/") for entry in value.split(":")]


def _kind(view: SnapshotView) -> str | None:
    return known(facts_of(view.seen.host, "whether this is a container").container)


def _symptoms(view: SnapshotView) -> list[Evidence]:
    """What says that the wrong libraries are used."""
    nvml, cuda, smi = view.seen.nvml, view.seen.cuda, view.seen.nvidia_smi
    found = []
    if nvml is not None and nvml.facts is not None and known(nvml.facts.init_code) == _MISMATCH:
        found.append(view.evidence("seen.nvml.init_code"))
    if smi is not None and smi.facts is not None and known(smi.facts.exit_code) == _MISMATCH:
        found.append(view.evidence("seen.nvidia_smi.exit_code"))
    if cuda is not None and cuda.facts is not None and known(cuda.facts.init_code) in _CUDA_MISFIT:
        found.append(view.evidence("seen.cuda.init_code"))
    return found


def _finds_empty(view: SnapshotView) -> bool:
    cuda, nvml = view.seen.cuda, view.seen.nvml
    said = [
        None if cuda is None or cuda.facts is None else known(cuda.facts.load_error),
        None if nvml is None or nvml.facts is None else known(nvml.facts.init_error),
    ]
    return any(_EMPTY in (text or "") for text in said)


def _empty(view: SnapshotView, empty: list[str]) -> Finding:
    found = "find / -xdev -name 'lib*nvidia*' -size 0"
    look = f"ls -l {words(empty)}" if empty else found
    removal = f"rm -f {words(empty)}" if empty else f"{found} -delete"
    return Finding(
        "fail",
        "The image keeps empty files in the place of the driver's libraries, as a `docker commit` of a"
        " container with GPUs leaves them, and nothing was mounted over them.",
        subjects=[subject for path in empty[:4] for subject in about_file(path)],
        evidence=[view.evidence("seen.kernel.empty_driver_files")],
        remedy=Remedy(
            "Start the container with its GPUs, so that the driver is mounted over them; for good: take them"
            " out of the image.",
            _for_good(view, look, removal),
        ),
    )

"""The check on driver libraries in an image: they belong to the host, and an engine mounts them."""

from __future__ import annotations

from ...facts.gpu import CudaDriver, NvidiaSmi, Nvml
from ...facts.kernel import DriverFile, Kernel
from ..declared import declared_causes
from ..driver_on_disk import driver_files, upstream
from ..reading import Skip, SnapshotView, fact, facts_of, facts_or, known, need
from ..system_commands import by_manager
from ..verdicts import Evidence, Passed, Remedy, Verdicts, about_file, check, word, words

CAUSE = declared_causes(__name__)

# They boot a system of their own, in which the driver's libraries may well be installed.
_SYSTEM_CONTAINERS = ("lxc", "lxc-libvirt", "systemd-nspawn")
# Where apptainer's --nv binds the driver's libraries, by names without a version.
_APPTAINER_LIBRARIES = "/.singularity.d/libs"
_MISMATCH = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
_CUDA_MISFIT = (803, 804)  # the library does not fit the driver


@check("CTR-012")
def image_has_no_driver(view: SnapshotView) -> Verdicts:
    kind = known(facts_of(view.seen.host, "whether this is a container").container)
    if kind is None or kind in _SYSTEM_CONTAINERS:
        raise Skip("a system container has a driver of its own" if kind else "not in a container")
    kernel = facts_of(view.seen.kernel, "the driver's libraries inside")
    need(kernel.driver_files, "the driver's libraries inside")
    files = driver_files(kernel)
    module = need(kernel.driver_version, "the host's module")
    for file in files:
        need(file.mounted, f"whether {file.path} is the image's own")
    own = [file for file in files if file.mounted is False]
    foreign = [file for file in own if file.version != module]
    if not foreign:
        chance = f"the image's own libraries are the driver's {module}, by chance"
        yield Passed(chance if own else "all of the driver was mounted")
        return
    symptoms = _symptoms(view)
    unmounted = ", ".join(f"{file.path} (not mounted)" for file in foreign[:6])
    yield (CAUSE["image-driver-in-use"] if symptoms else CAUSE["image-has-driver"]).found(
        [subject for file in foreign[:4] for subject in about_file(file.path)],
        [
            view.evidence("seen.kernel.driver_files", unmounted),
            view.evidence("seen.kernel.driver_version"),
            *symptoms,
        ],
        advice=_remedy(view, kernel, foreign, module, kind),
        versions=" and ".join(dict.fromkeys(file.version for file in foreign)),
        libraries=" and ".join(dict.fromkeys(file.library for file in foreign)),
        path=foreign[0].path,
        module=module,
    )


def _remedy(
    view: SnapshotView, kernel: Kernel, foreign: list[DriverFile], module: str, kind: str
) -> Remedy:
    versions = {file.version for file in foreign}
    real = words([file.real_path for file in foreign])
    removal = f"rm -f {real}"
    packages = [p for p in known(kernel.driver_packages) or [] if upstream(p.version) in versions]
    if packages:
        names = [package.name for package in packages[:12]]
        (removal,) = by_manager(packages[0].manager, "purge", names)
    where = "the image's definition, %post:" if kind == "apptainer" else "its Dockerfile: RUN"
    for_good = [f"ls -l {real}", f"# in {where} {removal}"]
    target = view.snapshot.target
    variables = fact(target.environment, "variables") if target is not None else None
    path = (variables or {}).get("LD_LIBRARY_PATH", "")
    searched = [entry.rstrip("/") for entry in path.split(":")]
    mounted = [f for f in driver_files(kernel) if f.mounted is True and f.version == module]
    brought = next((file.path.rpartition("/")[0] for file in mounted), "")
    if not brought and _APPTAINER_LIBRARIES in searched:
        brought = _APPTAINER_LIBRARIES
    if brought and {file.path.rpartition("/")[0] for file in foreign} & set(searched):
        return Remedy(
            f"Put the directory of the driver's own libraries, {brought}, first in LD_LIBRARY_PATH; for good:"
            " take the image's out of it.",
            [f"export LD_LIBRARY_PATH={word(brought)}:$LD_LIBRARY_PATH", *for_good],
        )
    text = "Take the driver out of the image; the engine brings in everything that is needed."
    return Remedy(text, for_good)


def _symptoms(view: SnapshotView) -> list[Evidence]:
    nvml, smi = facts_or(view.seen.nvml, Nvml), facts_or(view.seen.nvidia_smi, NvidiaSmi)
    fields = {
        "nvml.init_code": known(nvml.init_code) == _MISMATCH,
        "nvidia_smi.exit_code": known(smi.exit_code) == _MISMATCH,
        "cuda.init_code": known(facts_or(view.seen.cuda, CudaDriver).init_code) in _CUDA_MISFIT,
    }
    return [view.evidence(f"seen.{field}") for field, wrong in fields.items() if wrong]

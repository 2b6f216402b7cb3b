"""The check on the driver's branch: which CUDA it runs, and whether another libcuda hides its own."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from ...data import cuda as tables
from ...data.versions import parse_version
from ..declared import declared_causes
from ..driver_state import DATA_CENTRE_BRANDS, branch, driver_version, on_windows
from ..reading import NotKnown, SnapshotView, fact, known, need
from ..system_commands import on_system
from ..verdicts import Evidence, Passed, Verdicts, check

CAUSE = declared_causes(__name__)


@check("DRV-008")
def driver_branch(view: SnapshotView) -> Verdicts:
    version, path = driver_version(view)
    driver = need(version, "the driver's version")
    parsed, first = parse_version(driver), tables.first_compatible_driver()
    if parsed is None:
        raise NotKnown(f"driver version '{driver}' is not in the table's form")
    if parsed < Version(first):
        newest = tables.newest_cuda_for(driver)
        limit = f"CUDA {newest.minor} is the newest that it runs" if newest else "it is very old"
        yield Passed(f"{driver} is older than minor-version compatibility ({first}): {limit}")
    elif on_windows(view):
        yield Passed(f"{driver} (the table's drivers are Linux')")
    else:
        yield from _foreign_libcuda(view, driver, path)
        yield Passed(_supports(view, driver))


def _supports(view: SnapshotView, driver: str) -> str:
    newest = tables.newest_cuda_for(driver)
    if newest is None:
        raise NotKnown(f"driver {driver} is older than the table")
    cuda = f"CUDA {newest.minor}"
    if tables.beyond_table(driver):
        claim = next(_claims(view), None)
        cuda = f"CUDA {claim[0]}, as it reports itself" if claim else f"at least {cuda}"
    majors = [m for m in tables.compatible_majors(driver) if m >= newest.version.major]
    more = f"; any {majors[-1]}.x by minor-version compatibility" if majors else ""
    return f"{driver} supports {cuda}{more}"


def _claims(view: SnapshotView) -> Iterator[tuple[str, Evidence]]:
    for path in ("nvml.cuda_version", "nvidia_smi.cuda_version", "cuda.driver_api_version"):
        section, field = path.split(".")
        if value := fact(getattr(view.machine, section), field):
            yield value, view.evidence(f"machine.{path}")


def _all_for_data_centres(view: SnapshotView) -> bool:
    brands = {known(gpu.brand) for gpu in view.gpus}
    return bool(brands) and brands <= set(DATA_CENTRE_BRANDS)


def _foreign_libcuda(view: SnapshotView, driver: str, path: str) -> Verdicts:
    """A finding if a CUDA version reported belongs to another branch than the driver.

    Branches are compared, not versions: a driver may come before its toolkit (550.40.07 has CUDA 12.4,
    whose toolkit ships 550.54.14), and 565 reports 12.7, of which there is no toolkit.
    """
    own, newest = branch(driver), tables.newest_cuda_for(driver)
    if newest is None or tables.beyond_table(driver):
        return
    for cuda, evidence in _claims(view):
        rows = tables.rows_for(".".join(cuda.split(".")[:2]))
        theirs = branch(rows[0].toolkit_driver) if rows else ""
        if not theirs or theirs == own or rows[0].minor == newest.minor:
            continue
        newer, code = int(theirs) > int(own), fact(view.machine.cuda, "init_code")
        if newer and (code == 0 or (code is None and _all_for_data_centres(view))):
            continue  # a libcuda that was seen to start, or may be expected to
        find = ["ldconfig -p | grep libcuda.so.1", "echo $LD_LIBRARY_PATH"]
        yield (CAUSE["newer-libcuda"] if newer else CAUSE["older-libcuda"]).found(
            evidence=[evidence, view.evidence(path)],
            commands=[*find, *on_system(view, "cuda-compat")],
            cuda=cuda,
            branch=theirs,
            driver=driver,
        )
        return

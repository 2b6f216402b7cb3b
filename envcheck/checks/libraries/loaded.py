"""Checks on NVIDIA's libraries as the target really loads them: which file, which version, from where."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.packages import component
from ...data.sonames import component_of
from ...data.versions import parse_version
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge, Skip
from ...facts.target import FRAMEWORKS, Framework, Library
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..packages.release_sets import same
from ..registry import check
from ..system_commands import on_system
from ..target import (
    directory,
    each_framework,
    framework_facts,
    loaded,
    loader_libraries,
    mapped,
    pip,
    pip_install,
    soname,
)


def all_libraries(view: SnapshotView) -> list[tuple[str, Library]]:
    """(path in the Snapshot, library): what frameworks mapped, then what the loader and wheels have.

    Raises CannotJudge where neither was looked at.
    """
    found = [
        (f"target.{facts.name}.libraries", library)
        for facts in framework_facts(view)
        for library in facts.libraries
    ]
    try:
        found += [("target.loader.libraries", library) for library in loader_libraries(view)]
    except CannotJudge:
        if not found:
            raise
    return found


def place(view: SnapshotView, path: str, library: Library) -> Evidence:
    """The Evidence for a library: the file, its version and who put it there."""
    words = [known(library.path) or soname(library)]
    version, owner = known(library.version), known(library.distribution)
    if version:
        words.append(f"says {version}")
    if owner:
        words.append(f"of {owner} {known(library.distribution_version) or ''}".strip())
    elif known(library.origin):
        words.append(f"from {known(library.origin)}")
    return view.evidence(path, ", ".join(words))


_LOADER = "The loader"


@check(
    "LIB-001",
    title="Libraries are the version that their package says",
    problem="a library is not of its package's version",
    about=(
        "A package's metadata says which version was installed; the library itself, once loaded, says "
        "which version it is. Where they differ, another package has overwritten the file, or somebody "
        "copied one into its place, and everything that reasons from metadata, pip included, is wrong. "
        "A failure for another major or minor version, a warning for another patch level."
    ),
    sources=("the libraries' own version functions", "RECORD of the wheels"),
    follows=("PKG-002", "LIB-002"),
)
def true_versions(view: SnapshotView) -> Iterator[Verdict]:
    judged: dict[str, bool] = {}
    for path, library in all_libraries(view):
        file, says = known(library.path), known(library.version)
        owner, recorded = known(library.distribution), known(library.distribution_version)
        if (
            not file
            or file in judged
            or not says
            or not owner
            or not recorded
            or not (parse_version(says) and parse_version(recorded))
            or not _owns(owner, library)
        ):
            continue
        judged[file] = same(says, recorded)
        if judged[file]:
            continue
        minor = same(says, recorded, 2)
        yield Finding(
            "warn" if minor else "fail",
            f"{soname(library)} says that it is {says}, and the package that it belongs to is {owner} "
            f"{recorded}: the file is not the one that was installed.",
            subjects=about("library", soname(library)),
            evidence=[place(view, path, library)],
            remedy=Remedy(
                "Put the package's own file back.",
                [pip_install(view, f"{owner}=={recorded}") + " --force-reinstall --no-deps"],
            ),
        )
    if not judged:
        raise Skip("no loaded library of a package says its version")
    if all(judged.values()):
        yield Passed(f"{len(judged)} libraries are the version that their package says")


def _owns(distribution: str, library: Library) -> bool:
    """The distribution carries this library's own version number, and not as a bundled copy."""
    if library.name == "libnvinfer":
        return "tensorrt" in distribution.lower()
    part = component(distribution)
    return part is not None and part.name == component_of(library.name)


@check(
    "LIB-002",
    title="cuDNN is of one version",
    problem="cuDNN is mixed from several versions",
    about=(
        "cuDNN is a family of libraries that must all be of one version. Where one of them comes from "
        "the system or from LD_LIBRARY_PATH and the rest from a wheel, convolutions fail with "
        "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH or crash, often only in some layers. A failure where "
        "a framework mapped them from several places or in several versions, or where a wheel's cuDNN "
        "reports another copy's version; a warning where the loader would find several."
    ),
    sources=("pytorch#185512, #188892", "NVIDIA's cuDNN documentation, sub-libraries"),
)
def one_cudnn(view: SnapshotView) -> Iterator[Verdict]:
    judged = False
    for facts in framework_facts(view):
        family = [
            one for name, several in mapped(facts).items() if _is_cudnn(name) for one in several
        ]
        if family:
            judged = True
            path = f"target.{facts.name}.libraries"
            yield from _one_family(view, path, FRAMEWORKS[facts.name], family, "fail")
    if judged:
        return
    libraries = [one for one in loader_libraries(view) if loaded(one) and _is_cudnn(one.name)]
    intruded = _intruded(view, libraries)
    if intruded is not None:
        yield intruded
        return
    found: dict[str, list[Library]] = {}
    for library in libraries:
        if library.how == "dlopen":
            major = soname(library).rpartition(".so.")[2].partition(".")[0]
            found.setdefault(major, []).append(library)
    if not found:
        raise Skip("no cuDNN was loaded")
    for family in found.values():
        yield from _one_family(view, "target.loader.libraries", _LOADER, family, "warn")


def _intruded(view: SnapshotView, family: list[Library]) -> Finding | None:
    """A wheel's cuDNN that, once loaded, says another copy's version: its parts are mixed."""
    for library in family:
        says, recorded = known(library.version), known(library.distribution_version)
        if library.how != "wheel" or not says or not recorded or same(says, recorded):
            continue
        for other in family:
            if directory(other) != directory(library) and known(other.version) == says:
                return Finding(
                    "fail",
                    f"The loader mixes cuDNN: {soname(library)} of {known(library.distribution)} "
                    f"{recorded} runs with {soname(other)} ({says}) from {directory(other)}; "
                    "convolutions may fail or crash.",
                    subjects=about("library", soname(library)),
                    evidence=[
                        place(view, "target.loader.libraries", library),
                        place(view, "target.loader.libraries", other),
                    ],
                    remedy=_leave_one(view, other),
                )
    return None


def _is_cudnn(name: str) -> bool:
    return name.startswith("libcudnn")


def _one_family(
    view: SnapshotView, path: str, who: str, family: list[Library], level: str
) -> Iterator[Verdict]:
    places: dict[str, list[Library]] = {}
    for library in family:
        places.setdefault(directory(library), []).append(library)
    versions = {known(one.version) for one in family} - {None}
    if len(places) < 2 and len(versions) < 2:
        version = next(iter(versions), None)
        yield Passed(f"{who}: cuDNN {version or ''} from {directory(family[0])}".replace("  ", " "))
        return
    told = " and ".join(
        f"{', '.join(soname(one) for one in several[:2])}{' ...' if len(several) > 2 else ''} "
        f"({known(several[0].version) or 'of unknown version'}) from {where}"
        for where, several in places.items()
    )
    odd = min(
        places.values(), key=lambda several: (known(several[0].origin) == "wheel", len(several))
    )
    yield Finding(
        "fail" if level == "fail" else "warn",
        f"{who} {'mapped' if level == 'fail' else 'finds'} a mixed cuDNN: {told}; convolutions may fail "
        "or crash.",
        subjects=[] if who == _LOADER else about("framework", who),
        evidence=[place(view, path, several[0]) for several in places.values()],
        remedy=_leave_one(view, odd[0]),
    )


def _leave_one(view: SnapshotView, library: Library) -> Remedy:
    where = directory(library)
    if known(library.origin) == "LD_LIBRARY_PATH":
        return Remedy(f"Take {where} out of LD_LIBRARY_PATH.", ["unset LD_LIBRARY_PATH"])
    if known(library.origin) in ("ld.so.cache", "system"):
        return Remedy(
            "Remove the system's cuDNN, or the wheel's, so that one is left.",
            on_system(view, "remove-cudnn"),
        )
    return Remedy(
        "Leave one cuDNN in the environment: see which packages bring one, and install the one that is wanted"
        " again (--force-reinstall) before another is taken away.",
        [pip(view, "list") + " | grep -i cudnn"],
    )


@check(
    "LIB-003",
    title="Each library is mapped once",
    problem="a library is loaded twice",
    about=(
        "One process can hold two copies of the same library, from a wheel and from the system, or "
        "cuBLAS from one place and its cublasLt from another. They do not share their state, and calls "
        "may land in either: memory runs out early, handles are refused, results differ between runs. A "
        "warning for each that a framework mapped twice or from two places."
    ),
    sources=("/proc/PID/maps of the framework's process", "pytorch#185512"),
    follows=("FRM-007",),
)
def mapped_once(view: SnapshotView) -> Iterator[Verdict]:
    def judge(facts: Framework) -> Iterator[Verdict]:
        title, path = FRAMEWORKS[facts.name], f"target.{facts.name}.libraries"
        libraries = mapped(facts)
        if not libraries:
            raise Skip(f"{title} mapped no CUDA library")
        twice = [
            several
            for name, several in libraries.items()
            if not _is_cudnn(name) and _differ(several)
        ]
        pair = [*libraries.get("libcublas", [])[:1], *libraries.get("libcublasLt", [])[:1]]
        if not twice and len(pair) == 2 and directory(pair[0]) != directory(pair[1]):
            twice = [pair]
        for several in twice:
            yield Finding(
                "warn",
                f"{title} mapped {' and '.join(known(one.path) or '' for one in several)}: calls may land "
                "in either.",
                subjects=about("framework", title),
                evidence=[place(view, path, one) for one in several],
                remedy=_leave_one(
                    view, next((one for one in several if not known(one.distribution)), several[-1])
                ),
            )
        if not twice:
            yield Passed(f"{title}: {len(libraries)} libraries, each from one file")

    yield from each_framework(view, judge)


def _differ(several: list[Library]) -> bool:
    """Files of one library; a second one that the wheel's own package bundles under a hash counts too."""
    return len({known(one.path) for one in several}) > 1

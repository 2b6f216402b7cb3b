"""Checks on NVIDIA's libraries as the target really loads them: which file, which version, from where."""

from __future__ import annotations

from collections.abc import Iterable

from .. import target
from ..declared import declared_causes
from ..reading import Framework, Library, Skip, SnapshotView, known
from ..system_commands import on_system
from ..target import (
    about_framework,
    directory,
    framework_facts,
    loader_libraries,
    mapped,
    per_framework,
    same,
    soname,
    title_of,
)
from ..verdicts import (
    Evidence,
    Finding,
    Passed,
    Remedy,
    Subject,
    Verdict,
    Verdicts,
    about,
    check,
    word,
)

CAUSE = declared_causes(__name__)

_LOADER = "target.loader.libraries"


def place(view: SnapshotView, path: str, library: Library) -> Evidence:
    """The Evidence for a library: the file, its version and its package or origin."""
    version, owner = known(library.version), known(library.distribution)
    words = [known(library.path) or soname(library)]
    words += [f"says {version}"] if version else []
    if owner:
        words.append(f"of {owner} {known(library.distribution_version) or ''}".strip())
    elif known(library.origin):
        words.append(f"from {known(library.origin)}")
    return view.evidence(path, ", ".join(words))


def owner_in_words(library: Library) -> str:
    """ "nvidia-cudnn-cu12 9.3.0.75" """
    owner, version = known(library.distribution), known(library.distribution_version)
    return f"{owner} {version or ''}".strip()


@check("LIB-002")
def one_cudnn(view: SnapshotView) -> Verdicts:
    families = {
        facts.name: (facts, family)
        for facts in framework_facts(view)
        if (family := _cudnn_of([one for some in mapped(facts).values() for one in some]))
    }
    for name, (facts, family) in families.items():
        path, subjects = f"target.{name}.libraries", about_framework(facts)
        yield _one_family(view, path, title_of(facts), family, subjects)
    if families:
        return
    libraries = _cudnn_of(one for one in loader_libraries(view) if target.loaded(one))
    intruded = _intruded(view, libraries)
    if intruded is not None:
        yield intruded
        return
    majors: dict[str, list[Library]] = {}
    for library in libraries:
        if library.how == "dlopen":
            major = soname(library).rpartition(".so.")[2].partition(".")[0]
            majors.setdefault(major, []).append(library)
    if not majors:
        raise Skip("no cuDNN was loaded")
    for family in majors.values():
        yield _one_family(view, _LOADER, "The loader", family, [])


def _cudnn_of(libraries: Iterable[Library]) -> list[Library]:
    return [one for one in libraries if one.name.startswith("libcudnn")]


def _intruded(view: SnapshotView, family: list[Library]) -> Finding | None:
    """A wheel's cuDNN that, once loaded, says another copy's version: its parts are mixed."""
    for library in family:
        version, recorded = known(library.version), known(library.distribution_version)
        if library.how != "wheel" or not version or not recorded or same(version, recorded):
            continue
        for other in family:
            if directory(other) != directory(library) and known(other.version) == version:
                return CAUSE["cudnn-wheel-mixed"].found(
                    about("library", soname(library)),
                    [place(view, _LOADER, one) for one in (library, other)],
                    advice=_keep_one(view, other),
                    library=soname(library),
                    package=owner_in_words(library),
                    other=soname(other),
                    version=version,
                    place=directory(other),
                )
    return None


def _one_family(
    view: SnapshotView, path: str, user: str, family: list[Library], subjects: list[Subject]
) -> Verdict:
    places: dict[str, list[Library]] = {}
    for library in family:
        places.setdefault(directory(library), []).append(library)
    versions = {known(one.version) for one in family} - {None}
    if len(places) < 2 and len(versions) < 2:
        version = "".join(f" {one}" for one in versions)
        return Passed(f"{user}: cuDNN{version} from {directory(family[0])}")
    parts = " and ".join(
        f"{', '.join(map(soname, several[:2]))}{' ...' if len(several) > 2 else ''} "
        f"({known(several[0].version) or 'of unknown version'}) from {where}"
        for where, several in places.items()
    )
    intruder = min(places.values(), key=lambda some: (known(some[0].origin) == "wheel", len(some)))
    return (
        CAUSE["cudnn-mixed-on-path"] if path == _LOADER else CAUSE["cudnn-mixed-in-process"]
    ).found(
        subjects,
        [place(view, path, several[0]) for several in places.values()],
        advice=_keep_one(view, intruder[0]),
        framework=user,
        parts=parts,
    )


def _keep_one(view: SnapshotView, library: Library) -> Remedy:
    if known(library.origin) == "LD_LIBRARY_PATH":
        text = f"Remove {directory(library)} from LD_LIBRARY_PATH."
        return Remedy(text, ["unset LD_LIBRARY_PATH"])
    if known(library.origin) in ("ld.so.cache", "system"):
        text = "Remove the system's cuDNN, or the wheel's, so that one is left."
        return Remedy(text, on_system(view, "remove-cudnn"))
    return Remedy(
        "Keep one cuDNN in the environment: see which packages bring one, and install the one that is wanted"
        " again (--force-reinstall) before another is removed.",
        [target.pip(view, "list") + " | grep -i cudnn"],
    )


def wheel_libraries(view: SnapshotView) -> dict[str, Library]:
    """The libraries of installed wheels, by SONAME."""
    return {
        soname(one): one
        for one in loader_libraries(view)
        if one.how == "wheel" and known(one.distribution) is not None
    }


@check("LIB-004")
@per_framework(gpus=False)
def wheels_used(view: SnapshotView, facts: Framework) -> Verdicts:
    title, wheels = title_of(facts), wheel_libraries(view)
    both = [one for several in mapped(facts).values() for one in several if soname(one) in wheels]
    if not both:
        raise Skip(f"{title} mapped no library of which a wheel is installed")
    elsewhere = ("ld.so.cache", "system", "conda", "rpath")
    shadowed = [one for one in both if known(one.origin) in elsewhere]
    for one in shadowed:
        wheel, file = wheels[soname(one)], known(one.path) or ""
        look = f"ldconfig -p | grep -F {word(soname(one))}"
        yield CAUSE["system-library-used"].found(
            about("library", soname(one)),
            [
                view.evidence(f"target.{facts.name}.libraries", file),
                view.evidence(_LOADER, known(wheel.path) or soname(wheel)),
            ],
            commands=[*on_system(view, "owner", names=[file]), look],
            framework=title,
            file=file,
            version=known(one.version) or "of unknown version",
            wheel=owner_in_words(wheel),
        )
    if not shadowed:
        yield Passed(f"{title}: {len(both)} libraries, all as installed")

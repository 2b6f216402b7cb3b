"""The check on what the environment's files are linked to: NVIDIA's libraries, and the frameworks'."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.target import LinkedFile, WantedLibrary
from ..declared import declared_causes
from ..reading import Skip, SnapshotView, facts_of, known, need
from ..target import framework as own_framework
from ..target import gpus_present, installed_if_known
from ..verdicts import Cause, Evidence, Finding, Passed, Subject, Verdicts, about, about_file, check
from .bring import onto_path
from .mend_linked import framework_of, get_libraries, rebuild

CAUSE = declared_causes(__name__)

# The driver's libraries are no package's to bring: DRV's checks.
_DRIVERS = re.compile(r"lib(?:cuda|nvidia-[\w-]+)\.so")
_BUNDLED = re.compile(r"/(lib\w{1,60})-[0-9a-f]{6,40}\.so")  # by auditwheel, which renames it
_VARIANT = re.compile(r"\d+")


class _Broken:
    """A file that cannot be loaded, or cannot do what it is there for."""

    def __init__(self, file: LinkedFile, missing: list[WantedLibrary]) -> None:
        self.file = file
        self.missing = missing

    @property
    def lacking(self) -> str:
        """What a framework here does not have: a library, or a symbol. "" if it has all."""
        names = [one.soname for one in self.missing if framework_of(one.soname)]
        return (names + self.file.undefined + [""])[0]


@check("LIB-010")
def what_is_linked(view: SnapshotView) -> Verdicts:
    files = need(facts_of(view.target.loader, "the target's libraries").linked, "linked files")
    owners: dict[str, list[LinkedFile]] = {}
    for file in files:
        owners.setdefault(owner_of(file), []).append(file)
    if not owners:
        raise Skip("no package asks for a library of NVIDIA's or a framework's")
    count = 0
    for package, own in owners.items():
        for finding in _judge(view, package, own):
            count += 1
            yield finding
    if not count:
        yield Passed(f"{len(files)} files of {len(owners)} packages")


def owner_of(file: LinkedFile) -> str:
    """ "horovod 0.14.1"; a file of no distribution stands for itself."""
    name, version = known(file.distribution), known(file.distribution_version)
    return f"{name} {version or ''}".strip() if name else file.path


def _judge(view: SnapshotView, package: str, files: list[LinkedFile]) -> Iterator[Finding]:
    """One finding for what it lacks of a framework, and one for what it lacks of NVIDIA's."""
    groups: dict[str, list[LinkedFile]] = {}
    for file in files:
        groups.setdefault(_VARIANT.sub("#", file.path), []).append(file)
    gpus = gpus_present(view) is True
    broken = [found for group in groups.values() if (found := _broken(group, files, gpus))]
    whole = len(broken) == len(groups)
    other = [one for one in broken if one.lacking]
    if other:
        yield _other_build(view, package, other[0], 2 * len(other) > len(groups))
    # What an optional part asks for may be left out; a version that it cannot use is no choice.
    lacking = [one for one in broken if not one.lacking]
    lacking = [one for one in lacking if whole or any(want.instead for want in one.missing)]
    if lacking:
        required = whole or any(_BUNDLED.search(one.file.path) for one in lacking)
        yield _not_found(
            view,
            package,
            lacking,
            CAUSE["linked-library-not-found"] if required else CAUSE["part-cannot-load"],
        )
    for file in files if gpus else []:
        yield from _out_of_reach(view, package, file)


def _out_of_reach(view: SnapshotView, package: str, file: LinkedFile) -> Iterator[Finding]:
    """A bundled library that loads its parts by name, or TensorRT, from another package's directory."""
    stem = _BUNDLED.search(file.path)
    own = installed_if_known(view).get((known(file.distribution) or "").lower())
    loads = any("tensorrt" in line for line in (own and known(own.requires)) or [package])
    for one in file.wants:
        path = known(one.path) or ""
        part = stem and one.how == "named" and one.soname.startswith(stem[1] + "_")
        of_tensorrt = one.soname.startswith(("libnvinfer", "libnvonnxparser")) and not loads
        if known(one.origin) == "environment" and (part or of_tensorrt):
            place = path.rpartition("/")[0]
            yield CAUSE["bundled-library-without-its-parts"].found(
                _about(file),
                [Evidence("target.loader.linked", f"{file.path}: {path}", "ELF headers")],
                commands=[onto_path([place])],
                package=package,
                file=_name(file),
                wanted=one.soname,
                place=place,
            )
            return


def _broken(group: list[LinkedFile], files: list[LinkedFile], gpus: bool) -> _Broken | None:
    """The last of a file's variants, where none of them can be loaded."""
    found = None
    for file in group:
        missing = [one for one in file.wants if _is_missing(one, file, gpus)]
        if not missing and (not file.undefined or _has_sister(file, files)):
            return None
        found = _Broken(file, missing)
    return found


def _is_missing(want: WantedLibrary, file: LinkedFile, gpus: bool) -> bool:
    if known(want.path) or _DRIVERS.match(want.soname):
        return False
    if framework_of(want.soname):
        return bool(want.instead)  # or else that framework is not there, and no part of it is used
    stem = want.soname.partition(".so")[0]
    sisters = (one for one in file.wants if one.soname.partition(".so")[0] == stem)
    return gpus and not any(known(one.path) for one in sisters)


def _has_sister(file: LinkedFile, files: list[LinkedFile]) -> bool:
    """Whether a library beside it, for the same framework, fits: one was made for each version."""
    folder, _, name = file.path.rpartition("/")
    asked = {framework_of(one.soname) for one in file.wants} - {""}
    return name.startswith("lib") and any(
        other.path.startswith(f"{folder}/lib")
        and not other.undefined
        and asked <= {framework_of(one.soname) for one in other.wants}
        for other in files
    )


def _other_build(view: SnapshotView, package: str, broken: _Broken, whole: bool) -> Finding:
    file = broken.file
    framework = next(name for one in file.wants if (name := framework_of(one.soname)))
    advice, title, installed = rebuild(view, file, framework)
    facts = own_framework(view, framework)
    cuda = known(facts.built_cuda) if facts else None
    return (
        CAUSE["built-for-another-framework"] if whole else CAUSE["part-built-for-another-framework"]
    ).found(
        _about(file),
        [Evidence("target.loader.linked", f"{file.path}: {broken.lacking}", "ELF headers")],
        advice=advice,
        package=package,
        framework=title,
        installed=f"{installed} (CUDA {cuda})" if cuda else installed,
        file=_name(file),
        lacking=broken.lacking[:200],
    )


def _not_found(view: SnapshotView, package: str, broken: list[_Broken], cause: Cause) -> Finding:
    least = min(broken, key=lambda one: len(one.missing))  # the others may be optional parts
    file, wants = least.file, {one.soname: one for one in least.missing}
    instead = list(dict.fromkeys(path for one in wants.values() for path in one.instead))
    names = list(wants)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return cause.found(
        _about(file),
        [Evidence("target.loader.linked", f"{file.path}: {', '.join(names)}", "ELF headers")],
        advice=get_libraries(view, file, names, instead),
        package=package,
        file=_name(file),
        wanted=", ".join(names[:3]) + more,
        beside=f"only {instead[0]} is there" if instead else "nothing has it",
    )


def _name(file: LinkedFile) -> str:
    return file.path.rpartition("/")[2]


def _about(file: LinkedFile) -> list[Subject]:
    name = known(file.distribution)
    return about("package", name) if name else about_file(file.path)

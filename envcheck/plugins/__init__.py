"""What other packages add to envcheck by entry points. What cannot be loaded is kept as a Problem.

"envcheck.checks" names a module or a function that registers checks, "envcheck.reports" a function from a
Report to text; of "envcheck.probes" (a module) and "envcheck.stacks" (a package) only the files' place is
taken. Nothing of another package is imported into this process: its code runs in others (`apart`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .. import safe_text

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from importlib.metadata import EntryPoint

GROUPS = ("envcheck.checks", "envcheck.probes", "envcheck.stacks", "envcheck.reports")
_NAME_LIMIT = 64  # characters
OWN_FORMATS = ("text", "terminal", "json", "junit", "markdown", "html", "openmetrics")


class Problem(msgspec.Struct, frozen=True, order=True):
    """Something of another package that envcheck goes on without. reason: ends a sentence, no full stop."""

    group: str
    name: str
    package: str
    reason: str


_problems: set[Problem] = set()
_is_inside = False  # this process runs a plug-in's code


def problems() -> list[Problem]:
    """What of the groups asked for so far could not be loaded."""
    return sorted(_problems)


def all_problems() -> list[Problem]:
    """What of any group cannot be loaded; of the stacks' files as far as the catalogue has read them."""
    from . import apart

    probe_files()
    stack_folders()
    formats = list(report_formats().values())
    for entry, (answer,) in zip(formats, apart.ask([apart.task(e) for e in formats]), strict=True):
        if answer.reason:
            add_problem(entry.group, entry.name, answer.reason)
    return problems()


def probe_files() -> dict[str, Path]:
    """{a probe's name: the file of its module}; the module itself is not imported."""
    if not entry_points("envcheck.probes"):
        return {}
    from ..facts.snapshot import MACHINE_SECTIONS, TARGET_SECTIONS

    sections = MACHINE_SECTIONS | TARGET_SECTIONS | {"micro_kernels", "extensions"}
    return use("envcheck.probes", _file, sections)


def stack_folders() -> dict[str, Path]:
    """{entry point's name: the directory of the package that it names}, in which *.toml are stacks."""
    return use("envcheck.stacks", _folder)


def report_formats() -> dict[str, EntryPoint]:
    """{a report format's name: its entry point, a function from a Report to text}."""
    return use("envcheck.reports", lambda entry: entry, OWN_FORMATS)


def in_words(entry: EntryPoint) -> str:
    """ "the plug-in fans of acme-fans" """
    return f"the plug-in {entry.name} of {_package(entry) or 'a package'}"


def switch_off() -> None:
    """In a process that runs a plug-in's code: there are no plug-ins, and none of them starts others."""
    global _is_inside
    _is_inside = True
    entry_points.cache_clear()


def add_problem(group: str, name: str, reason: str) -> None:
    """Something that was loaded and then turned out to be of no use."""
    package = next((_package(e) for e in entry_points(group) if e.name == name), "")
    _problems.add(Problem(group, name, package, reason))


@cache
def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, by name and package."""
    if _is_inside or not _is_any_installed():
        return ()  # without the 40 ms that importing importlib.metadata takes
    from importlib import metadata

    return tuple(sorted(metadata.entry_points(group=group), key=lambda e: (e.name, _package(e))))


def use(
    group: str, get: Callable[[EntryPoint], Any], reserved: Collection[str] = ()
) -> dict[str, Any]:
    """{entry point's name: what ``get`` makes of it}; where that raises, a Problem is kept."""
    found: dict[str, Any] = {}
    for entry in entry_points(group):
        try:
            if entry.name in reserved:
                raise ValueError("envcheck itself has one of this name")
            if entry.name in found:
                raise ValueError("another package has one of this name")
            if not entry.name.isidentifier() or len(entry.name) > _NAME_LIMIT:
                raise ValueError("its name is not a Python identifier of at most 64 characters")
            found[entry.name] = get(entry)
        except ValueError as error:
            reason = safe_text.one_line(str(error))
            _problems.add(Problem(group, entry.name, _package(entry), reason))
    return found


def _spec(module: str) -> ModuleSpec | None:
    """Where a module lies. Unlike importlib.util.find_spec, it imports no package around it."""
    path, spec = None, None
    parts = module.split(".")
    for number in range(len(parts)):
        name = ".".join(parts[: number + 1])
        spec = next((found for found in _found(name, path) if found is not None), None)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
    return spec


def _found(name: str, path: list[str] | None) -> Iterator[ModuleSpec | None]:
    for finder in sys.meta_path:
        try:
            yield finder.find_spec(name, path)
        except Exception as error:  # noqa: BLE001 - another package may have put a finder there
            raise ValueError(f"{name} cannot be looked for: {safe_text.of_error(error)}") from None


def _file(entry: EntryPoint) -> Path:
    spec = _spec(entry.module)
    if spec is None or not spec.origin or not Path(spec.origin).is_file():
        raise ValueError(f"there is no file of a module {entry.module}")
    return Path(spec.origin)


def _folder(entry: EntryPoint) -> Path:
    spec = _spec(entry.module)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        raise ValueError(f"there is no package {entry.module}")
    if not any(Path(places[0]).glob("*.toml")):
        raise ValueError(f"the package {entry.module} has no *.toml beside its __init__.py")
    return Path(places[0])


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


@cache
def _is_any_installed() -> bool:
    for folder in sys.path:
        try:
            entries = [
                e for e in os.scandir(folder) if e.name.endswith((".dist-info", ".egg-info"))
            ]
        except OSError:
            continue
        for entry in entries:
            try:
                text = Path(entry.path, "entry_points.txt").read_bytes()
            except OSError:
                continue
            if b"[envcheck." in text:
                return True
    return False

"""The check on LD_LIBRARY_PATH before the wheels: other libraries run than those that were installed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from ...data.capabilities import capability
from ...data.sonames import component_of, provider
from ...data.versions import parse_version
from ...facts.target import Loader
from .. import target
from ..declared import declared_causes
from ..reading import Framework, Library, SnapshotView, facts_of, known
from ..target import about_framework, directory, mapped, soname, title_of
from ..verdicts import Finding, Passed, Remedy, Verdict, Verdicts, about_file, check
from ..visible import capabilities
from .bring import onto_path
from .loaded import owner_in_words, wheel_libraries

CAUSE = declared_causes(__name__)

_UNDEFINED = re.compile(r"undefined symbol: ([^\s,]+)(?:, version (\S+))?")


@check("LIB-009")
def not_overridden(view: SnapshotView) -> Verdicts:
    loader = facts_of(view.target.loader, "the target's libraries")
    if any(loader.ld_library_path):
        yield from _stubs(view, loader)
        yield from _old_toolkits(view, loader)
        yield from _in_each(view)
    else:
        yield Passed("LD_LIBRARY_PATH is not set")


def _stubs(view: SnapshotView, loader: Loader) -> Iterator[Finding]:
    """Directories with a libcuda.so that is not the driver's, where there are GPUs for it."""
    stubs = [one.path for one in loader.on_path if one.soname == "libcuda.so"]
    if not stubs or not target.gpus_present(view):
        return
    users = target.installed_if_known(view)
    user = users.get("numba-cuda") or users.get("numba")
    yield (
        CAUSE["ld-library-path-stub-for-numba"] if user else CAUSE["ld-library-path-stub"]
    ).found(
        about_file(stubs[0].rpartition("/")[0]),
        [
            view.evidence("target.loader.ld_library_path"),
            view.evidence("target.loader.on_path", ", ".join(stubs[:3])),
        ],
        folder=stubs[0].rpartition("/")[0],
        package=target.named(user) if user else "",
    )


def _old_toolkits(view: SnapshotView, loader: Loader) -> Iterator[Finding]:
    """CUDA runtimes in LD_LIBRARY_PATH that are older than every GPU the target sees."""
    known_gpus = [row for one in capabilities(view) if (row := capability(one)) and row.first_cuda]
    if not known_gpus:
        return
    oldest = min(known_gpus, key=lambda row: Version(row.first_cuda))
    first = Version(oldest.first_cuda)
    for one in loader.on_path:
        cuda = parse_version(one.soname.partition(".so.")[2])
        # From CUDA 11 on, the runtime's name holds the major alone.
        if cuda is None or (first if cuda.major < 11 else Version(str(first.major))) <= cuda:
            continue
        folder = one.path.rpartition("/")[0]
        yield CAUSE["ld-library-path-old-toolkit"].found(
            about_file(folder),
            [
                view.evidence("target.loader.ld_library_path"),
                view.evidence("target.loader.on_path", one.path),
            ],
            cuda=str(cuda if cuda.major < 11 else cuda.major),
            folder=folder,
            gpus=f"compute capability {oldest.compute_capability}",
            first=oldest.first_cuda,
        )


@target.per_framework(gpus=False, imported=False)
def _in_each(view: SnapshotView, facts: Framework) -> Verdicts:
    title, wheels = title_of(facts), wheel_libraries(view)
    if not facts.imported:
        yield _broken_import(view, facts, wheels)
        return
    every = [one for several in mapped(facts).values() for one in several]
    taken = _taken(every, wheels)
    if not taken:
        yield Passed(f"{title} maps nothing from LD_LIBRARY_PATH that a wheel has")
        return
    file = known(taken[0].path)
    by_variable = [one for one in every if known(one.origin) == "LD_LIBRARY_PATH"]
    advice = None
    if any(soname(one) not in wheels for one in by_variable):
        folders = dict.fromkeys(directory(wheels[soname(one)]) for one in taken)
        text = "Put the wheels' directories before it: other libraries are found by that variable alone."
        advice = Remedy(text, [onto_path(list(folders))])
    yield CAUSE["ld-library-path-overrides"].found(
        about_framework(facts),
        [
            view.evidence("target.loader.ld_library_path"),
            view.evidence(f"target.{facts.name}.libraries", file),
        ],
        advice=advice,
        framework=title,
        file=file,
        more=f" and {len(taken) - 1} more" if len(taken) > 1 else "",
        parts=", ".join(dict.fromkeys(component_of(one.name) or one.name for one in taken)),
    )


def _taken(libraries: list[Library], wheels: dict[str, Library]) -> list[Library]:
    """Those that come from LD_LIBRARY_PATH although a wheel of them is installed."""
    here = (one for one in libraries if known(one.origin) == "LD_LIBRARY_PATH")
    return [one for one in here if target.loaded(one) and soname(one) in wheels]


def _broken_import(view: SnapshotView, facts: Framework, wheels: dict[str, Library]) -> Verdict:
    """An import that misses a symbol of a library: is another copy of it taken from LD_LIBRARY_PATH?"""
    title, words = title_of(facts), known(facts.import_error) or ""
    lacking = _UNDEFINED.search(words)
    if lacking is None:
        return Passed(f"{title} does not import, for another reason")
    wanted = provider(lacking[1], lacking[2] or "")
    taken = _taken([*facts.libraries, *target.loader_libraries(view)], wheels)
    # A sub-library finds its own older sister, whatever the symbol's name says.
    one = next((one for one in taken if not wanted or one.name == wanted), None)
    if one is None:
        return Passed(f"{lacking[1]}, which {title} misses, is not of a library in LD_LIBRARY_PATH")
    file = known(one.path) or ""
    return CAUSE["ld-library-path-breaks-import"].found(
        about_framework(facts) + about_file(file),
        [
            view.evidence("target.loader.ld_library_path"),
            view.evidence(f"target.{facts.name}.import_error", words[:600]),
        ],
        framework=title,
        file=file,
        version=known(one.version) or "of unknown version",
        wheel=owner_in_words(wheels[soname(one)]),
        symbol=lacking[1],
    )

"""Checks on what loading a library does: refused or crashed."""

from __future__ import annotations

import re

from ...data.sonames import sonames
from ..driver_state import NO_GPUS_THERE
from ..reading import Framework, Library, Skip, SnapshotView, Unavailable, known
from ..target import framework_facts, gpus_present, loader_libraries, pip_restore, soname
from ..verdicts import Passed, Remedy, Unjudged, Verdicts, about, check, fail, warn, word

_DIED = re.compile(r"died by signal (\d+)|ended its process")
_ABORTED = "6"
_DRIVER = re.compile(r"(?<![\w.-])lib(cuda|nvidia-[\w-]+)\.so[\w.]*: cannot open")
REFUSED = warn(
    "library-refused",
    "an installed library cannot be loaded",
    "{libraries} cannot be loaded: {why}.",
)


@check(
    "LIB-006",
    title="Installed libraries can be loaded",
    causes=[REFUSED],
    about="Each NVIDIA library in the target's wheels, and each that the loader knows by name, is loaded"
    " once in a process of its own. One that the loader refuses (an undefined symbol, a dependency or a"
    " GLIBC version that is missing) will be refused in the middle of a run, too.",
    sources=("dlopen(3), the loader's own messages", "tensorrt 8.5.3.1 beside cuDNN 9, observed"),
    follows=(*NO_GPUS_THERE, "DRV-004", "LIB-002", "PKG-001", "PKG-002"),
)
def can_be_loaded(view: SnapshotView) -> Verdicts:
    tried, works = _tried(view)
    refused: dict[str, list[Library]] = {}
    without_driver = 0
    for library in tried:
        path = library.path
        if not isinstance(path, Unavailable) or path.unavailable != "error":
            continue
        words = path.detail
        if not words or _DIED.search(words) or soname(library) in works:
            continue
        if _DRIVER.search(words) and not gpus_present(view):
            without_driver += 1
        else:
            refused.setdefault(words, []).append(library)
    for words, libraries in refused.items():
        names = list(dict.fromkeys(map(soname, libraries)))
        yield REFUSED.found(
            [subject for name in names for subject in about("library", name)],
            [view.evidence("target.loader.libraries", words[:600])],
            advice=_reinstall(view, libraries),
            libraries=", ".join(names),
            why=words.splitlines()[0][:300].rstrip("."),
        )
    if without_driver:
        yield Unjudged("skipped", f"{without_driver} libraries need the driver's libcuda to load")
    if not refused:
        yield Passed(f"{sum(1 for one in tried if known(one.path))} libraries load")


def _tried(view: SnapshotView) -> tuple[list[Library], set[str]]:
    """(the libraries that were loaded by themselves, the SONAMEs that a framework was seen to load)."""
    tried = loader_libraries(view)
    if not tried:
        raise Skip("no library was tried")
    mapped = [one for facts in framework_facts(view) for one in facts.libraries]
    return tried, {soname(one) for one in mapped if known(one.path)}


def _reinstall(view: SnapshotView, libraries: list[Library]) -> Remedy:
    for one in libraries:
        owner, version = known(one.distribution), known(one.distribution_version)
        if owner:
            return Remedy(
                "Install what the message names; if it names nothing, install the package again.",
                [pip_restore(view, owner, version or "")],
            )
    look = f"ldconfig -p | grep -F {word(soname(libraries[0]))}"
    return Remedy("See where it is, and with ldd what it depends on.", [look])


_CRASHES = "loading a library crashes"
_KILLS = "{library}{package} {fate}: a process that loads it dies"
_NEEDED = f"{_KILLS}, and a framework here loads it."
_AGAIN = "Install it again; if nothing needs it, uninstall it."
NEEDED_CRASHES = fail("needed-library-crashes", _CRASHES, _NEEDED, _AGAIN)
CRASHES = warn("library-crashes", _CRASHES, f"{_KILLS}.", _AGAIN)


@check(
    "LIB-007",
    title="Loading a library crashes nothing",
    causes=[NEEDED_CRASHES, CRASHES],
    about="Some libraries crash the process that loads them, or never return. envcheck loads each in a child"
    " process.",
    sources=("tensorrt-lean on a machine without a GPU, observed (signal 11)", "signal(7)"),
    follows=(*NO_GPUS_THERE, "DRV-004"),
)
def crashes_nothing(view: SnapshotView) -> Verdicts:
    tried, works = _tried(view)
    needed = {name for facts in framework_facts(view) for name in _needed(facts)}
    reported: set[str] = set()
    for library in tried:
        fate, name = _fate(library), soname(library)
        if not fate or library.name in reported or name in works:
            continue
        reported.add(library.name)
        if fate.startswith("not tried"):
            yield Unjudged("could-not-run", f"{name}: {fate}", about("library", name))
            continue
        owner, version = known(library.distribution), known(library.distribution_version) or ""
        yield (NEEDED_CRASHES if name in needed else CRASHES).found(
            about("library", name),
            [view.evidence("target.loader.libraries", f"{name} {fate}")],
            commands=[pip_restore(view, owner, version)] if owner else [],
            library=name,
            package=f" of {owner} {version}" if owner else "",
            fate=fate,
        )
    if not reported:
        yield Passed(f"{len(tried)} loads, no crash")


def _needed(facts: Framework) -> list[str]:
    """SONAMEs that a framework cannot do without."""
    if known(facts.cuda_build) is not True:
        return []
    cudnn = (known(facts.built_cudnn) or "").partition(".")[0]
    names = list(sonames(known(facts.built_cuda) or "").values())
    return [*names, f"libcudnn.so.{cudnn}"] if cudnn else names


def _fate(library: Library) -> str:
    """How loading a library, or asking its version, ended a process; "" if it did not.

    cuDNN 8 aborts (SIGABRT) when it is asked and does not find its sub-libraries, which a framework loads
    before it: that is no crash.
    """
    for fact in (library.path, library.version):
        if not isinstance(fact, Unavailable):
            continue
        died = _DIED.search(fact.detail) if fact.unavailable == "error" else None
        if died and fact is library.version and died[1] == _ABORTED:
            continue
        if died or fact.unavailable == "timeout":
            return fact.detail or "did not return"
    return ""

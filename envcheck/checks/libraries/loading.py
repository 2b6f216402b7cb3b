"""Checks on what loading a library does: refused, crashed, or diverted by the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.sonames import sonames
from ...facts.base import Unavailable, known
from ...facts.missing import Skip
from ...facts.target import Framework, Library
from ...facts.view import SnapshotView, facts_of
from ...findings.causes import Cause
from ...findings.model import Passed, Remedy, Unjudged, Verdict
from ...findings.shell import word
from ...findings.subjects import about, about_file
from ..driver_state import NO_GPUS_THERE
from ..registry import check
from ..target import framework_facts, gpus_present, loader_libraries, pip_restore, soname

_DIED = re.compile(r"died by signal (\d+)|ended its process")
_ABORTED = "6"
_DRIVER = re.compile(r"(?<![\w.-])lib(cuda|nvidia-[\w-]+)\.so[\w.]*: cannot open")
REFUSED = Cause(
    "library-refused",
    "warn",
    "an installed library cannot be loaded",
    "{libraries} cannot be loaded: {why}.",
)


@check(
    "LIB-006",
    title="Installed libraries can be loaded",
    causes=[REFUSED],
    about="Each NVIDIA library in the target's wheels, and each that the loader knows by name, is loaded"
    " once in a process of its own. One that the loader refuses (an undefined symbol, a dependency or a"
    " GLIBC version that is missing, a truncated file) will be refused in the middle of a run, too. No"
    " warning if a framework was seen to load it.",
    sources=("dlopen(3), the loader's own messages",),
    follows=(*NO_GPUS_THERE, "DRV-004", "LIB-002", "PKG-001", "PKG-002", "PKG-007"),
)
def can_be_loaded(view: SnapshotView) -> Iterator[Verdict]:
    tried, works = _tried(view)
    refused: dict[str, list[Library]] = {}
    without_driver = 0
    for library in tried:
        words = _refusal(library)
        if not words or soname(library) in works:
            continue
        if _DRIVER.search(words) and not gpus_present(view):
            without_driver += 1
        else:
            refused.setdefault(words, []).append(library)
    for words, libraries in refused.items():
        names = list(dict.fromkeys(map(soname, libraries)))
        yield REFUSED.found(
            [subject for one in libraries for subject in about("library", soname(one))],
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


def _refusal(library: Library) -> str:
    """The loader's words if it refused a library that is there; "" otherwise."""
    path = library.path
    if not isinstance(path, Unavailable) or path.unavailable != "error":
        return ""
    return "" if _DIED.search(path.detail) else path.detail


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
_AGAIN = "Install it again; if nothing needs it, uninstall it."
NEEDED_CRASHES = Cause(
    "needed-library-crashes",
    "fail",
    _CRASHES,
    f"{_KILLS}, and a framework here loads it.",
    _AGAIN,
)
CRASHES = Cause("library-crashes", "warn", _CRASHES, f"{_KILLS}.", _AGAIN)


@check(
    "LIB-007",
    title="Loading a library crashes nothing",
    causes=[NEEDED_CRASHES, CRASHES],
    about="Some libraries crash the process that loads them, or never return: a TensorRT runtime built for"
    " another driver was seen to die by signal 11 on a machine without a GPU. envcheck loads each in a child"
    " process.",
    sources=("tensorrt-lean on a machine without a GPU, observed (signal 11)", "signal(7)"),
    follows=(*NO_GPUS_THERE, "DRV-004"),
)
def crashes_nothing(view: SnapshotView) -> Iterator[Verdict]:
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


_STUBS = "a stubs directory is in LD_LIBRARY_PATH"
_REMOVE = "Remove it; it is for linking only (LIBRARY_PATH)."
_WITHOUT = (
    "export LD_LIBRARY_PATH=$(echo $LD_LIBRARY_PATH | tr : '\\n' | grep -v /stubs | paste -sd:)",
)
STUB_LOADED = Cause(
    "stub-loaded",
    "fail",
    _STUBS,
    "LD_LIBRARY_PATH holds {entry}, and libcuda is loaded from there: no GPU can be used.",
    _REMOVE,
    _WITHOUT,
)
STUB_ON_PATH = Cause(
    "stub-on-path",
    "warn",
    _STUBS,
    "LD_LIBRARY_PATH holds {entry}, whose libcuda is a stub: it works only as long as the driver's is found"
    " first.",
    _REMOVE,
    _WITHOUT,
)


@check(
    "LIB-010",
    title="No stubs directory in LD_LIBRARY_PATH",
    causes=[STUB_LOADED, STUB_ON_PATH],
    about="A CUDA toolkit's stubs directory holds a libcuda that exists only to link against. In"
    " LD_LIBRARY_PATH it is found before the driver's, and cuInit fails with error 34.",
    sources=("numba#9732", "cuda.h, CUDA_ERROR_STUB_LIBRARY"),
    follows=("PCI-001", "DRV-005"),
)
def no_stubs(view: SnapshotView) -> Iterator[Verdict]:
    loader = facts_of(view.target.loader, "the target's libraries")
    entries = [entry for entry in loader.ld_library_path if "stubs" in entry.split("/")]
    if not entries:
        yield Passed("no stubs directory")
        return
    mapped = [one for facts in framework_facts(view) for one in facts.libraries]
    files = [str(known(one.path)) for one in [*loader.libraries, *mapped] if one.name == "libcuda"]
    taken = [file for file in files if "/stubs/" in file][:1]
    yield (STUB_LOADED if taken else STUB_ON_PATH).found(
        about_file(entries[0]),
        [
            view.evidence("target.loader.ld_library_path"),
            *(view.evidence("target.loader.libraries", file) for file in taken),
        ],
        entry=entries[0],
    )

"""Checks on what loading a library does: refused or crashed."""

from __future__ import annotations

import re
from collections.abc import Container

from ...data.sonames import sonames
from ..declared import declared_causes
from ..reading import Framework, Library, Skip, SnapshotView, Unavailable, known
from ..target import framework_facts, gpus_present, loader_libraries, pip_restore, soname
from ..verdicts import Passed, Remedy, Unjudged, Verdict, Verdicts, about, check, word

CAUSE = declared_causes(__name__)

_DIED = re.compile(r"died by signal (\d+)|ended its process")
_ABORTED = "6"
_DRIVER = re.compile(r"(?<![\w.-])lib(cuda|nvidia-[\w-]+)\.so[\w.]*: cannot open")


@check("LIB-006")
def can_be_loaded(view: SnapshotView) -> Verdicts:
    tried = loader_libraries(view)
    if not tried:
        raise Skip("no library was tried")
    frameworks = framework_facts(view)
    works = {soname(one) for each in frameworks for one in each.libraries if known(one.path)}
    needed = {name for each in frameworks for name in _needed(each)}
    refused: dict[str, list[Library]] = {}
    crashed: dict[str, Library] = {}
    without_driver = 0
    for one in (one for one in tried if soname(one) not in works):
        path = one.path
        if _fate(one):
            crashed.setdefault(one.name, one)
        elif isinstance(path, Unavailable) and path.unavailable == "error" and path.detail:
            if _DRIVER.search(path.detail) and not gpus_present(view):
                without_driver += 1
            else:
                refused.setdefault(path.detail, []).append(one)
    for words, libraries in refused.items():
        names = list(dict.fromkeys(map(soname, libraries)))
        yield CAUSE["library-refused"].found(
            [subject for name in names for subject in about("library", name)],
            [view.evidence("target.loader.libraries", words[:600])],
            advice=_reinstall(view, libraries),
            libraries=", ".join(names),
            why=words.splitlines()[0][:300].rstrip("."),
        )
    for one in crashed.values():
        yield _crash(view, one, needed)
    if without_driver:
        yield Unjudged("skipped", f"{without_driver} libraries need the driver's libcuda to load")
    if not refused and not crashed:
        yield Passed(f"{sum(1 for one in tried if known(one.path))} libraries load")


def _crash(view: SnapshotView, library: Library, needed: Container[str]) -> Verdict:
    fate, name = _fate(library), soname(library)
    if fate.startswith("not tried"):
        return Unjudged("could-not-run", f"{name}: {fate}", about("library", name))
    owner, version = known(library.distribution), known(library.distribution_version) or ""
    return (CAUSE["needed-library-crashes"] if name in needed else CAUSE["library-crashes"]).found(
        about("library", name),
        [view.evidence("target.loader.libraries", f"{name} {fate}")],
        commands=[pip_restore(view, owner, version)] if owner else [],
        library=name,
        package=f" of {owner} {version}" if owner else "",
        fate=fate,
    )


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

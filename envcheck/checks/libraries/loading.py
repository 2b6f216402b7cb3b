"""Checks on what loading a library does: refused, crashed, or diverted by the environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.sonames import sonames
from ...facts.base import Unavailable, known
from ...facts.missing import Skip
from ...facts.target import Framework, Library
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.shell import word
from ...findings.subjects import about, about_file
from ..driver_state import NO_GPUS_THERE
from ..registry import check
from ..target import (
    framework_facts,
    gpus_present,
    loader_libraries,
    pip_install,
    soname,
)

_DIED = re.compile(r"died by signal (\d+)|ended its process")
_ABORTED = "6"
_DRIVER = re.compile(r"(?<![\w.-])lib(cuda|nvidia-[\w-]+)\.so[\w.]*: cannot open")


@check(
    "LIB-006",
    title="Installed libraries can be loaded",
    problem="an installed library cannot be loaded",
    about=(
        "Each NVIDIA library in the target's wheels, and each that the loader knows by name, is loaded "
        "once in a process of its own. One that the loader refuses (an undefined symbol, a dependency "
        "or a GLIBC version that is missing, a truncated file) will be refused in the middle of a run, "
        "too. A warning, with the loader's own words, unless a framework was seen to load it."
    ),
    sources=("dlopen(3), the loader's own messages",),
    follows=(*NO_GPUS_THERE, "DRV-004", "LIB-002", "PKG-001", "PKG-002", "PKG-007"),
)
def can_be_loaded(view: SnapshotView) -> Iterator[Verdict]:
    tried = loader_libraries(view)
    if not tried:
        raise Skip("no library was tried")
    works = {
        soname(one) for facts in framework_facts(view) for one in facts.libraries if known(one.path)
    }
    refused: dict[str, list[Library]] = {}
    without_driver = 0
    for library in tried:
        words = _refusal(library)
        if not words or soname(library) in works:
            continue
        if _DRIVER.search(words) and not gpus_present(view):
            without_driver += 1
            continue
        refused.setdefault(words, []).append(library)
    for words, libraries in refused.items():
        names = ", ".join(dict.fromkeys(soname(one) for one in libraries))
        owner = next((one for one in libraries if known(one.distribution)), None)
        yield Finding(
            "warn",
            f"{names} cannot be loaded: {words.splitlines()[0][:300].rstrip('.')}.",
            subjects=[one for library in libraries for one in about("library", soname(library))],
            evidence=[view.evidence("target.loader.libraries", words[:600])],
            remedy=_reinstall(view, owner, soname(libraries[0])),
        )
    if without_driver:
        yield Unjudged("skipped", f"{without_driver} libraries need the driver's libcuda to load")
    if not refused:
        there = sum(1 for one in tried if known(one.path))
        yield Passed(f"{there} libraries load")


def _refusal(library: Library) -> str:
    """The loader's words where it refused a library that is there; "" otherwise."""
    path = library.path
    if not isinstance(path, Unavailable) or path.unavailable != "error":
        return ""
    return "" if _DIED.search(path.detail) else path.detail


def _reinstall(view: SnapshotView, library: Library | None, name: str) -> Remedy | None:
    if library is None:
        return Remedy(
            "See where it is, and with ldd what it depends on.",
            [f"ldconfig -p | grep -F {word(name)}"],
        )
    owner, version = known(library.distribution), known(library.distribution_version)
    return Remedy(
        "Install what the message names; where it names nothing, install the package again.",
        [pip_install(view, f"{owner}=={version}") + " --force-reinstall --no-deps"],
    )


@check(
    "LIB-007",
    title="Loading a library crashes nothing",
    problem="loading a library crashes",
    about=(
        "Some libraries crash the process that loads them, or never come back: a TensorRT runtime built "
        "for another driver was seen to die by signal 11 on a machine without a GPU. envcheck loads each "
        "in a child, so that it costs nothing here; it will cost the training its life. A warning, or a "
        "failure where a framework in the target asks for that very library."
    ),
    sources=("tensorrt-lean on a machine without a GPU, observed (signal 11)", "signal(7)"),
    follows=(*NO_GPUS_THERE, "DRV-004"),
)
def crashes_nothing(view: SnapshotView) -> Iterator[Verdict]:
    tried = loader_libraries(view)
    if not tried:
        raise Skip("no library was tried")
    frameworks = framework_facts(view)
    needed = {name for facts in frameworks for name in _needed(facts)}
    works = {soname(one) for facts in frameworks for one in facts.libraries if known(one.path)}
    told: set[str] = set()
    for library in tried:
        fate = _fate(library)
        if not fate or library.name in told or soname(library) in works:
            continue
        told.add(library.name)
        if fate.startswith("not tried"):
            yield Unjudged(
                "could-not-run", f"{soname(library)}: {fate}", about("library", soname(library))
            )
            continue
        owner, version = known(library.distribution), known(library.distribution_version)
        of = f" of {owner} {version}" if owner else ""
        yield Finding(
            "fail" if soname(library) in needed else "warn",
            f"{soname(library)}{of} {fate}: a process that loads it dies.",
            subjects=about("library", soname(library)),
            evidence=[view.evidence("target.loader.libraries", f"{soname(library)} {fate}")],
            remedy=Remedy("Install it again, or leave it out where nothing needs it.")
            if not owner
            else Remedy(
                "Install it again; uninstall it where nothing needs it.",
                [pip_install(view, f"{owner}=={version}") + " --force-reinstall --no-deps"],
            ),
        )
    if not told:
        yield Passed(f"{len(tried)} loads, no crash")


def _needed(facts: Framework) -> list[str]:
    """SONAMEs that a framework cannot do without."""
    if known(facts.cuda_build) is not True:
        return []
    cudnn = (known(facts.built_cudnn) or "").partition(".")[0]
    names = list(sonames(known(facts.built_cuda) or "").values())
    return [*names, f"libcudnn.so.{cudnn}"] if cudnn else names


def _fate(library: Library) -> str:
    """How loading a library, or asking its version, ended a process; "" where it did not.

    cuDNN 8 gives up by itself (SIGABRT) when it is asked and does not find its sub-libraries, which a
    framework loads before it: that is no crash.
    """
    for fact in (library.path, library.version):
        if not isinstance(fact, Unavailable):
            continue
        died = _DIED.search(fact.detail) if fact.unavailable == "error" else None
        if died and fact is library.version and died[1] == _ABORTED:
            continue
        if died or fact.unavailable == "timeout":
            return fact.detail or "did not come back"
    return ""


@check(
    "LIB-010",
    title="No stubs directory in LD_LIBRARY_PATH",
    problem="a stubs directory is in LD_LIBRARY_PATH",
    about=(
        "A CUDA toolkit's stubs directory holds a libcuda that exists only to link against. In "
        "LD_LIBRARY_PATH it is found before the driver's, and cuInit fails with error 34. A failure "
        "where a process in the target got the stub, a warning while another entry still comes first."
    ),
    sources=("numba#9732", "cuda.h, CUDA_ERROR_STUB_LIBRARY"),
    follows=("PCI-001", "DRV-005"),
)
def no_stubs(view: SnapshotView) -> Iterator[Verdict]:
    loader = facts_of(view.target.loader, "the target's libraries")
    entries = [entry for entry in loader.ld_library_path if "stubs" in entry.split("/")]
    if not entries:
        yield Passed("no stubs directory")
        return
    libraries = [
        *loader.libraries,
        *(one for facts in framework_facts(view) for one in facts.libraries),
    ]
    taken = [
        one for one in libraries if one.name == "libcuda" and "/stubs/" in str(known(one.path))
    ]
    yield Finding(
        "fail" if taken else "warn",
        f"LD_LIBRARY_PATH holds {entries[0]}, "
        + (
            "and libcuda is loaded from there: no GPU can be used."
            if taken
            else "whose libcuda is a stub: it works only as long as the driver's is found first."
        ),
        subjects=about_file(entries[0]),
        evidence=[
            view.evidence("target.loader.ld_library_path"),
            *([view.evidence("target.loader.libraries", known(taken[0].path))] if taken else []),
        ],
        remedy=Remedy(
            "Take it out; it is for linking only (LIBRARY_PATH).",
            [
                "export LD_LIBRARY_PATH=$(echo $LD_LIBRARY_PATH | tr : '\\n' | grep -v /stubs | paste -sd:)"
            ],
        ),
    )

"""The check on LD_LIBRARY_PATH before the wheels: other libraries run than those that were installed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.sonames import component_of
from ...facts.base import known
from ...facts.target import FRAMEWORKS, Framework, Library
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about, about_file
from ..registry import check
from ..target import each_framework, loaded, mapped, soname

_UNDEFINED = re.compile(r"undefined symbol: ([^\s,]+)(?:, version (\S+))?")
# How the libraries' own functions begin; the longer one first.
_SYMBOLS = {
    "__nvJitLink": ("libnvJitLink",),
    "nvJitLink": ("libnvJitLink",),
    "__cublasLt": ("libcublasLt",),
    "cublasLt": ("libcublasLt",),
    "cublas": ("libcublas",),
    "cusparse": ("libcusparse",),
    "cusolver": ("libcusolver",),
    "cufft": ("libcufft",),
    "curand": ("libcurand",),
    "nvrtc": ("libnvrtc",),
    "cupti": ("libcupti",),
    "nccl": ("libnccl",),
    "cuda": ("libcudart",),
}
_TAKE_OUT = Remedy(
    "Take that directory out of LD_LIBRARY_PATH, and out of what sets it at login.",
    ["unset LD_LIBRARY_PATH", "grep -n LD_LIBRARY_PATH ~/.bashrc ~/.profile /etc/environment"],
)


@check(
    "LIB-009",
    title="LD_LIBRARY_PATH does not override the wheels",
    problem="LD_LIBRARY_PATH overrides the wheels",
    about=(
        "LD_LIBRARY_PATH is searched before the paths that wheels carry. One that was set for an older "
        "CUDA installation and forgotten makes a framework run with those libraries instead of the "
        "ones installed with it. A warning for each library that a framework really mapped from there "
        "while a wheel of it is installed; entries that lead into the wheels themselves are fine. A failure "
        'where the import ends with "undefined symbol" of a library that is taken from there.'
    ),
    sources=("ld.so(8)", "/proc/PID/maps of the framework's process"),
    follows=("LIB-002", "FRM-007"),
)
def not_overridden(view: SnapshotView) -> Iterator[Verdict]:
    loader = facts_of(view.target.loader, "the target's libraries")
    entries = [entry for entry in loader.ld_library_path if entry]
    if not entries:
        yield Passed("LD_LIBRARY_PATH is not set")
        return
    wheels = {
        soname(one): one
        for one in loader.libraries
        if one.how == "wheel" and known(one.distribution) is not None
    }

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        if not facts.imported:
            yield _broken_import(view, facts, wheels)
            return
        taken = [
            one
            for several in mapped(facts).values()
            for one in several
            if known(one.origin) == "LD_LIBRARY_PATH" and soname(one) in wheels
        ]
        if not taken:
            yield Passed(f"{title} maps nothing from LD_LIBRARY_PATH that a wheel has")
            return
        parts = ", ".join(dict.fromkeys(component_of(one.name) or one.name for one in taken))
        yield Finding(
            "warn",
            f"LD_LIBRARY_PATH makes {title} use {known(taken[0].path)}"
            f"{f' and {len(taken) - 1} more' if len(taken) > 1 else ''} instead of the installed wheels "
            f"({parts}).",
            subjects=about("framework", title),
            evidence=[
                view.evidence("target.loader.ld_library_path", ":".join(entries)),
                view.evidence(f"target.{facts.name}.libraries", known(taken[0].path)),
            ],
            remedy=_TAKE_OUT,
        )

    yield from each_framework(view, judge, imported=False)


def _broken_import(view: SnapshotView, facts: Framework, wheels: dict[str, Library]) -> Verdict:
    """An import that misses a symbol of a library: is another copy of it taken from LD_LIBRARY_PATH?"""
    title = FRAMEWORKS[facts.name]
    words = known(facts.import_error) or ""
    lacking = _UNDEFINED.search(words)
    if lacking is None:
        return Passed(f"{title} does not import, for another reason")
    names = _providers(lacking[1], lacking[2] or "")
    loader = facts_of(view.target.loader, "the target's libraries")
    taken = [
        one
        for one in [*facts.libraries, *loader.libraries]
        if known(one.origin) == "LD_LIBRARY_PATH" and loaded(one) and soname(one) in wheels
    ]
    # A sub-library finds its own older sister, whatever the symbol's name says.
    guilty = [one for one in taken if one.name in names] or ([] if names else taken)
    if not guilty:
        return Passed(f"{lacking[1]}, which {title} misses, is not of a library in LD_LIBRARY_PATH")
    one, wheel = guilty[0], wheels[soname(guilty[0])]
    path, version = known(one.path) or "", known(one.version) or "of unknown version"
    return Finding(
        "fail",
        f"LD_LIBRARY_PATH makes {title} load {path} ({version}) "
        f"instead of {known(wheel.distribution)} {known(wheel.distribution_version) or ''}: it lacks "
        f"{lacking[1]}, and the import fails.",
        subjects=about("framework", title) + about_file(path),
        evidence=[
            view.evidence("target.loader.ld_library_path", ":".join(loader.ld_library_path)),
            view.evidence(f"target.{facts.name}.import_error", words[:600]),
        ],
        remedy=_TAKE_OUT,
        headline=f"LD_LIBRARY_PATH breaks {title}'s import",
    )


def _providers(symbol: str, version: str) -> tuple[str, ...]:
    """The libraries that a symbol is of, by the version it asks for ("libnvJitLink.so.12"), or its name."""
    if version.startswith("lib"):
        return (version.partition(".so")[0],)
    return next((names for start, names in _SYMBOLS.items() if symbol.startswith(start)), ())

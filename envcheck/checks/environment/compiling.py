"""Checks on environment variables that decide whether the driver compiles kernels, and keeps them."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import CannotJudge, NotKnown, Skip
from ...facts.target import FRAMEWORKS
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..fitness import code_for
from ..registry import check
from ..target import framework_facts, variables
from ..visible import visible
from .common import CUDA_GUIDE, is_on, major, misset, told

_FORCE, _FORBID = "CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT"
_MIB = 1024 * 1024
_SMALLEST_CACHE = 256 * _MIB  # the default of CUDA's cache for many years


@check(
    "ENV-006",
    title="CUDA keeps the kernels that it compiles",
    problem="compiled kernels are not kept",
    about=(
        "Where a framework brings PTX for a GPU and no machine code, the driver compiles it once, for "
        "minutes, and keeps the result in its cache. CUDA_CACHE_DISABLE=1, or a CUDA_CACHE_MAXSIZE of a "
        "few megabytes, makes every start compile again; XLA's kernels go through the same cache. A "
        "warning for either."
    ),
    sources=(CUDA_GUIDE, "tensorflow#47058"),
)
def kernel_cache(view: SnapshotView) -> Iterator[Verdict]:
    values = variables(view)
    size = values.get("CUDA_CACHE_MAXSIZE")
    found = []
    if is_on(values.get("CUDA_CACHE_DISABLE")):
        found.append(("CUDA_CACHE_DISABLE", "switches CUDA's kernel cache off"))
    if size is not None and size.strip().isdecimal() and int(size) < _SMALLEST_CACHE:
        room = f"leaves the cache {int(size) / _MIB:.0f} MiB, less than CUDA's own default"
        found.append(("CUDA_CACHE_MAXSIZE", room))
    for name, effect in found:
        yield Finding(
            "warn",
            f"{name}={values[name]} {effect}: what the driver compiles is compiled again at every start.",
            subjects=about("variable", name),
            evidence=[told(view, name)],
            remedy=Remedy(
                "Leave the cache on, and large enough for a framework.",
                ["unset CUDA_CACHE_DISABLE", "export CUDA_CACHE_MAXSIZE=4294967296"],
            ),
        )
    if size and not size.strip().isdecimal():
        raise NotKnown(f"what CUDA makes of CUDA_CACHE_MAXSIZE={size}")
    if not found:
        yield Passed(f"CUDA_CACHE_MAXSIZE={size}" if size else "CUDA's cache is as it comes")


@check(
    "ENV-012",
    title="The driver may choose between machine code and PTX",
    problem="a variable forbids machine code or PTX",
    about=(
        "CUDA_FORCE_PTX_JIT=1 makes the driver ignore a framework's machine code and compile its PTX, for "
        "minutes at every first start; CUDA_DISABLE_PTX_JIT=1 forbids compiling, so that a GPU without "
        "machine code in the build runs nothing. Both are for testing. A warning for the first; for the "
        "second a failure where a framework has only PTX for a visible GPU."
    ),
    sources=(CUDA_GUIDE,),
    follows=("PCI-001", "FRM-004"),
)
def ptx(view: SnapshotView) -> Iterator[Verdict]:
    values = variables(view)
    forced, forbidden = (is_on(values.get(name)) for name in (_FORCE, _FORBID))
    if not forced and not forbidden:
        yield Passed("neither CUDA_FORCE_PTX_JIT nor CUDA_DISABLE_PTX_JIT is set")
    if forced:
        yield misset(
            view,
            _FORCE,
            "CUDA_FORCE_PTX_JIT is set: the driver compiles every kernel instead of using the machine "
            "code that is there.",
            "Unset it; it is for testing.",
        )
    if forbidden:
        yield _forbidden(view, values[_FORBID])


def _forbidden(view: SnapshotView, value: str) -> Verdict:
    needing = _needs_ptx(view)
    if not needing:
        return Passed(f"CUDA_DISABLE_PTX_JIT={value}; nothing here is known to need PTX")
    return Finding(
        "fail",
        f"CUDA_DISABLE_PTX_JIT={value} forbids the driver to compile PTX, and {needing} has nothing else "
        "for this GPU: no kernel runs.",
        subjects=about("variable", _FORBID),
        evidence=[told(view, _FORBID)],
        remedy=Remedy("Unset it.", [f"unset {_FORBID}"]),
    )


def _needs_ptx(view: SnapshotView) -> str:
    """The first framework that has only PTX for a visible GPU; "" where none is known to."""
    try:
        capabilities = {one.capability for one in visible(view).chosen if major(one.capability)}
    except CannotJudge:
        raise Skip("the compute capabilities of the GPUs are not known") from None
    unknown = []
    for one in framework_facts(view):
        built = known(one.built_capabilities) or []
        if any(code_for(capability, built).kind == "jit" for capability in capabilities):
            return FRAMEWORKS[one.name]
        if not built and known(one.cuda_build):
            unknown.append(FRAMEWORKS[one.name])
    if unknown:
        raise NotKnown(f"the capabilities that {unknown[0]} was built for")
    return ""

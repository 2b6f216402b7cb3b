"""The check on packages that are compiled where they are installed: whether their compiled half is there."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.compiled_halves import CompiledHalf, compiled_half
from .. import target
from ..declared import declared_causes
from ..reading import Distribution, Skip, SnapshotView, fact, known
from ..verdicts import Finding, Passed, Remedy, Verdicts, about, check
from .mend_linked import framework_of, own_index

CAUSE = declared_causes(__name__)

_KEPT = 100  # files, of which the collector keeps no more
_WHOLE = 6  # files that the least of them has


@check("LIB-011")
def compiled_halves(view: SnapshotView) -> Verdicts:
    target.need_gpus(view)
    every = [(one, compiled_half(name)) for name, one in target.installed(view).items()]
    known_ones = [(one, half) for one, half in every if half and known(one.compiled) is not None]
    if not known_ones:
        raise Skip("no package with a compiled half that is built at its installation")
    count = 0
    for one, half in known_ones:
        for finding in _judge(view, one, half):
            count += 1
            yield finding
    if not count:
        yield Passed(f"{len(known_ones)} packages")


def _judge(view: SnapshotView, one: Distribution, half: CompiledHalf) -> Iterator[Finding]:
    shown = f"{target.named(one)}: {known(one.compiled)} shared libraries in its RECORD"
    if known(one.compiled) == 0 and (known(one.files) or _WHOLE) < _WHOLE:
        return  # its RECORD is not that of a whole package
    if known(one.compiled) == 0:
        cause = (
            CAUSE["compiled-half-missing"]
            if half.needed
            else CAUSE["optional-compiled-half-missing"]
        )
    else:
        linked = fact(view.target.loader, "linked") or []
        own = [file for file in linked if known(file.distribution) == one.name]
        wants = [want.soname for file in own for want in file.wants]
        torch = target.framework(view, "torch")
        built = torch is not None and known(torch.cuda_build) is True and wants != []
        cuda = any("cuda" in name or not framework_of(name) for name in wants)
        if cuda or len(linked) >= _KEPT or not (built or half.alone):
            return
        asked = ", ".join(dict.fromkeys(wants)) or "no library of CUDA's"
        cause, shown = (
            CAUSE["compiled-half-for-cpus"],
            f"{own[0].path if own else one.name}: {asked}",
        )
    path = target.PLACE if cause is not CAUSE["compiled-half-for-cpus"] else "target.loader.linked"
    yield cause.found(
        about("package", one.name),
        [view.evidence(path, shown[:600])],
        advice=_build(view, one, half),
        package=target.named(one),
    )


def _build(view: SnapshotView, one: Distribution, half: CompiledHalf) -> Remedy:
    torch = target.framework(view, "torch")
    cuda = ".".join((known(torch.built_cuda) or "").split(".")[:2]) if torch else ""
    what = target.pip_install(view, half.place or f"{one.name}=={one.version}")
    options = f"--force-reinstall --no-deps --no-cache-dir {half.options}"
    if ready := own_index(view, one.name):
        return ready
    isolated = (
        "" if half.alone else "--no-build-isolation"
    )  # or else it is built for another PyTorch
    variables = f"{half.variables} " if half.variables else ""
    return Remedy(
        f"Install {one.name} again with its extensions. That takes a C++ compiler and the toolkit (nvcc) of"
        f" {f'CUDA {cuda}' if cuda else 'a CUDA that the driver runs'}.",
        [" ".join(f"{variables}{what} {isolated} {options}".split())],
    )

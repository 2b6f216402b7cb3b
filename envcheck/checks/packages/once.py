"""The check on packages that install the same module: an environment can have one of them."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from ...data.one_module import OneModule, one_module
from ..declared import declared_causes
from ..framework.fit import driver_cuda
from ..reading import Distribution, Skip, SnapshotView, fact, known
from ..target import (
    PLACE,
    framework_facts,
    gpus_present,
    installed,
    loaded,
    named,
    pip_replace,
    soname,
    version_of,
)
from ..verdicts import Finding, Passed, Verdicts, about, check

CAUSE = declared_causes(__name__)


@check("PKG-003")
def once(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    found, single, notes = [], [], []
    for row in one_module():
        several = [one for name, one in distributions.items() if row.packages.fullmatch(name)]
        # tensorflow for aarch64 was a shell around tensorflow-cpu-aws.
        required = {name for one in several for name in _required(one)}
        several = [
            one
            for one in several
            if one.normalized not in required - {"tensorflow"} and not _is_shell(row, one)
        ]
        if len(several) > 1 and not any(
            one.overwritten for one in several
        ):  # of those PKG-021 tells
            found.append(_found(view, row, several))
        elif several:
            single += several
            if several[0].normalized == row.for_cpus and gpus_present(view):
                if framework_facts(view) or _uses_gpus(view, several[0]):
                    words = f"{named(several[0])} computes on the CPU alone: for GPUs it is"
                    notes.append(f"{words} {row.for_gpus}")
                else:
                    found.append(_for_cpus(view, several[0], row.for_gpus))
    yield from found
    if not single and not found:
        raise Skip("no package here is published under several names")
    if not found:
        yield Passed("; ".join(notes) or ", ".join(map(named, single)), note=bool(notes))


def _uses_gpus(view: SnapshotView, one: Distribution) -> bool:
    """Whether another package's files ask for CUDA's libraries."""
    linked = fact(view.target.loader, "linked") or []
    return any(known(file.distribution) not in (None, one.name) for file in linked)


def _is_shell(row: OneModule, one: Distribution) -> bool:
    version = version_of(one)
    return (
        row.shell is not None
        and version is not None
        and one.normalized == row.shell.name
        and row.shell.specifier.contains(version, prereleases=True)
    )


def _required(one: Distribution) -> set[str]:
    texts = known(one.requires) or []
    return {canonicalize_name(re.split(r"[\s;<>=!~\[(]", text)[0]) for text in texts}


def _found(view: SnapshotView, row: OneModule, several: list[Distribution]) -> Finding:
    versions = {version_of(one) or one.version for one in several}
    cause = (
        CAUSE["tensorflows-mixed"]
        if row.module == "tensorflow" and len(versions) > 1
        else CAUSE["several-packages-of-a-module"]
    )
    owners, linked = {one.name for one in several}, fact(view.target.loader, "linked") or []
    if any(w.instead for file in linked if known(file.distribution) in owners for w in file.wants):
        cause = CAUSE["several-packages-and-one-broken"]
    keep = _kept(view, row, several)
    others = [one.name for one in several if one is not keep]
    names = " and ".join(map(named, several))
    return cause.found(
        about("package", row.module),
        [view.evidence(PLACE, names)],
        commands=[pip_replace(view, f"{keep.name}=={keep.version}", *others)],
        module=row.module,
        packages=names,
    )


def _for_cpus(view: SnapshotView, one: Distribution, other: str) -> Finding:
    return CAUSE["package-for-cpus"].found(
        about("package", one.name),
        [view.evidence(PLACE, named(one))],
        commands=[pip_replace(view, other, one.name)],
        package=named(one),
        other=other,
    )


def _kept(view: SnapshotView, row: OneModule, several: list[Distribution]) -> Distribution:
    """The one that the table prefers; of several that for the CUDA of a framework, or of the driver."""
    preferred = [one for one in several if row.keep.fullmatch(one.normalized)] or several
    cudas = [known(facts.built_cuda) or "" for facts in framework_facts(view)]
    libraries = fact(view.target.loader, "libraries") or []
    cudas += [
        soname(one).rpartition(".so.")[2]
        for one in libraries
        if one.name == "libcublas" and loaded(one)
    ]
    for cuda in [*cudas, driver_cuda(view)]:
        for one in preferred:
            if cuda and f"cuda{cuda.partition('.')[0]}" in one.normalized:
                return one
    return preferred[0]

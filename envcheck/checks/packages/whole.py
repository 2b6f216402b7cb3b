"""Checks on the target's installed distributions: whether they are whole, real, and there once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.packages import NAMES_SOURCE, NVIDIA_INDEX, TENSORFLOWS, WHEELS_SOURCE, placeholder
from ...facts.base import known
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..registry import check
from ..target import (
    PLACE,
    foreign,
    installed,
    named,
    pip_install,
    pip_replace,
    python,
    tensorflows,
    version_of,
)

# Missing files that nothing imports: byte code, tests, headers, documentation, static libraries.
_HARMLESS = re.compile(
    r"\.(pyc|pyo|pyi|h|hpp|cuh|inc|a|md|rst|txt|html|ipynb)$|(^|/)(tests?|testing|docs?|include)/"
    r"|\.dist-info/|LICENSE|NOTICE",
    re.I,
)
_CODE = re.compile(r"\.(py|pth|bc|fatbin|cubin)$|\.so(\.\d\w*)*$")


@check(
    "PKG-001",
    title="Installed packages are whole",
    problem="an installed package lacks files",
    about=(
        "Each wheel records which files it installed. Where files are gone, because another package "
        "that shares a directory was uninstalled, an installation was interrupted or a disk was full, "
        "the package still counts as installed while its import, or a library load in the middle "
        "of a run, fails. A failure where code or a shared library is missing; byte code, tests and "
        "headers do not matter."
    ),
    sources=("PEP 376 and PEP 627 (RECORD)", "pypa/pip#8396"),
)
def whole(view: SnapshotView) -> Iterator[Verdict]:
    recorded = [one for one in installed(view).values() if known(one.files) is not None]
    if not recorded:
        raise Skip("none of the target's packages says which files it installed")
    broken = 0
    for one in recorded:
        gone = [path for path in one.missing if not _HARMLESS.search(path)]
        code = [path for path in gone if _CODE.search(path)]
        if not gone:
            continue
        broken += 1
        yield Finding(
            "fail" if code else "warn",
            f"{named(one)} lacks {one.missing_count} of its {known(one.files)} files, "
            f"{(code or gone)[0]} among them: what needs them fails, though it counts as installed.",
            subjects=about("package", one.name),
            evidence=[view.evidence(PLACE, f"{one.name}: {', '.join(gone[:3])}")],
            remedy=Remedy(
                "Install it again over itself.",
                [pip_install(view, f"{one.name}=={one.version}") + " --force-reinstall --no-deps"],
            ),
        )
    if not broken:
        yield Passed(f"{len(recorded)} packages of this field, no file missing that matters")


@check(
    "PKG-002",
    title="No placeholder is installed",
    problem="a placeholder is installed, not the software",
    about=(
        "NVIDIA holds many of its names on the public registry with placeholders: versions such as "
        "0.0.1.dev5 that contain nothing, and nvidia-tensorrt 99.0.0, which outranks every real "
        "version and pulls in an unpinned TensorRT. Where one is installed, the software of that name "
        "is not. A failure."
    ),
    sources=(NAMES_SOURCE, "NVIDIA/tensorflow#15, #38 and #87"),
)
def placeholders(view: SnapshotView) -> Iterator[Verdict]:
    found = 0
    for name, one in installed(view).items():
        held = placeholder(name, one.version)
        if held is None:
            continue
        found += 1
        yield Finding(
            "fail",
            f"{named(one)} is a placeholder on the registry, not the software: {held.why}.",
            subjects=about("package", one.name),
            evidence=[view.evidence(PLACE, named(one))],
            remedy=Remedy(
                "Install the real one in its place, from NVIDIA's index.",
                [
                    pip_install(view, f"{one.name}!={one.version}")
                    + f" --index-url {NVIDIA_INDEX} --force-reinstall --no-deps"
                ],
            ),
        )
    if not found:
        yield Passed("every package is the software that it is called after")


@check(
    "PKG-003",
    title="One TensorFlow is installed",
    problem="several TensorFlow packages are installed",
    about=(
        "tensorflow, tensorflow-cpu, tensorflow-gpu, nvidia-tensorflow, tf-nightly and others install "
        "into the same directory. The one that came last overwrites the rest, a CPU build the GPU "
        "build too, and uninstalling either takes the other's files along. A failure where their "
        "versions differ, for then files of both lie mixed; a warning otherwise."
    ),
    sources=("top_level.txt of the named distributions", WHEELS_SOURCE),
    follows=("PKG-002", "ENV-011"),
)
def one_tensorflow(view: SnapshotView) -> Iterator[Verdict]:
    distributions = installed(view)
    found = tensorflows(distributions)
    # tensorflow for aarch64 was a shell around tensorflow-cpu-aws: that pair is one installation.
    required = {
        re.split(r"[\s;<>=!~\[(]", text)[0].lower().replace("_", "-")
        for one in found
        for text in known(one.requires) or []
    }
    found = [
        one for one in found if one.normalized not in required or one.normalized == "tensorflow"
    ]
    if not found:
        raise Skip("no TensorFlow is installed in the target")
    if len(found) == 1:
        yield Passed(named(found[0]))
        return
    names = " and ".join(named(one) for one in found)
    mixed = len({version_of(one) or one.version for one in found}) > 1
    keep = next((one for one in found if one.normalized == "nvidia-tensorflow"), found[0])
    yield Finding(
        "fail" if mixed else "warn",
        f"{names} share one directory: whichever was installed last has overwritten the others"
        f"{', and files of several versions lie mixed' if mixed else ''}.",
        subjects=about("package", "tensorflow"),
        evidence=[view.evidence(PLACE, names)],
        remedy=Remedy(
            "Leave the one that you want: it is installed before the others go, and once more, since they "
            "take its files along (nvidia-tensorflow comes from NVIDIA's index).",
            [
                pip_replace(
                    view,
                    f"{keep.name}=={keep.version}",
                    *(one.name for one in found if one is not keep),
                )
            ],
        ),
    )


@check(
    "PKG-004",
    title="No package is shadowed by another copy",
    problem="a package is shadowed by another copy",
    about=(
        "Where two copies of a distribution lie on sys.path, Python imports the first, which is not "
        "always the one that was installed last: user site-packages come before the system's, and "
        "PYTHONPATH before both. Two sets of metadata in one directory are what an interrupted "
        "uninstallation leaves. A warning for frameworks and NVIDIA's libraries; that Debian's numpy "
        "stands behind a newer one is as it should be."
    ),
    sources=("Python's documentation, module site and sys.path",),
)
def shadowed(view: SnapshotView) -> Iterator[Verdict]:
    first = installed(view)
    everything = facts_of(view.target.packages, "the target's packages").distributions
    used_here = {id(one) for one in [*first.values(), *foreign(view)]}
    copies = [
        one
        for one in everything
        if one.shadowed and id(one) not in used_here and _is_own(one.normalized)
    ]
    for one in copies:
        used = first.get(one.normalized)
        if used is None:
            continue
        together = used.location == one.location
        yield Finding(
            "warn",
            f"{one.name} is there twice in {one.location} ({used.version} and {one.version}): an "
            "uninstallation was left halfway."
            if together
            else f"{named(one)} in {one.location} is never imported: {used.version} in "
            f"{used.location} comes first.",
            subjects=about("package", one.name),
            evidence=[
                view.evidence(PLACE, f"{named(used)} in {used.location}"),
                view.evidence(PLACE, f"{named(one)} in {one.location}"),
            ],
            remedy=Remedy(
                "Install it again, take away what is left of the other, and bring back what that took along.",
                [pip_replace(view, f"{one.name}=={used.version}", one.name)],
            )
            if together
            else Remedy(
                "Where another version is wanted, see which directory comes first, and what puts it there.",
                [f"{python(view)} -c 'import sys; print(*sys.path)'"],
            ),
        )
    if not copies:
        yield Passed("each framework and NVIDIA library is there once")


def _is_own(name: str) -> bool:
    return (
        name in TENSORFLOWS
        or name in ("torch", "jax", "jaxlib", "tensorrt", "horovod")
        or name.startswith(("nvidia-", "jax-cuda", "tensorrt-"))
    )

"""Checks on the target's installed distributions: whether they are whole, real, and there once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.packages import NAMES_SOURCE, NVIDIA_INDEX, TENSORFLOWS, WHEELS_SOURCE, placeholder
from ...facts.base import known
from ...facts.missing import Skip
from ...facts.view import SnapshotView, facts_of
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ...findings.subjects import about
from ..registry import check
from ..target import (
    PLACE,
    foreign,
    installed,
    named,
    pip_install,
    pip_replace,
    pip_restore,
    python,
    tensorflows,
    version_of,
)
from .common import found

# Missing files that nothing imports: byte code, tests, headers, documentation, static libraries.
_HARMLESS = re.compile(
    r"\.(pyc|pyo|pyi|h|hpp|cuh|inc|a|md|rst|txt|html|ipynb)$|(^|/)(tests?|testing|docs?|include)/"
    r"|\.dist-info/|LICENSE|NOTICE",
    re.I,
)
_CODE = re.compile(r"\.(py|pth|bc|fatbin|cubin)$|\.so(\.\d\w*)*$")
_LACKS = "an installed package lacks files"
_FILES = "{package} lacks {missing} of its {files} files, {example} among them: "
CODE_MISSING = Cause(
    "code-missing",
    "fail",
    _LACKS,
    _FILES + "what needs them fails, though it counts as installed.",
    "Install it again over itself.",
)
FILES_MISSING = Cause(
    "files-missing", "warn", _LACKS, _FILES + "none is code.", CODE_MISSING.remedy
)


@check(
    "PKG-001",
    title="Installed packages are whole",
    causes=[CODE_MISSING, FILES_MISSING],
    about="Each wheel records which files it installed. If files are missing, because another package that"
    " shares a directory was uninstalled, an installation was interrupted or a disk was full, the package"
    " still counts as installed while its import, or a library load in the middle of a run, fails. Byte"
    " code, tests and headers do not matter.",
    sources=("PEP 376 and PEP 627 (RECORD)", "pypa/pip#8396"),
)
def whole(view: SnapshotView) -> Iterator[Verdict]:
    recorded = [one for one in installed(view).values() if known(one.files) is not None]
    if not recorded:
        raise Skip("none of the target's packages says which files it installed")
    broken = [(one, [p for p in one.missing if not _HARMLESS.search(p)]) for one in recorded]
    broken = [(one, gone) for one, gone in broken if gone]
    for one, gone in broken:
        code = [path for path in gone if _CODE.search(path)]
        yield found(
            view,
            CODE_MISSING if code else FILES_MISSING,
            one,
            evidence=[view.evidence(PLACE, f"{one.name}: {', '.join(gone[:3])}")],
            commands=[pip_restore(view, one.name, one.version)],
            missing=one.missing_count,
            files=known(one.files),
            example=(code or gone)[0],
        )
    if not broken:
        yield Passed(f"{len(recorded)} packages of this field, no file missing that matters")


PLACEHOLDER = Cause(
    "placeholder",
    "fail",
    "a placeholder is installed, not the software",
    "{package} is a placeholder on the registry, not the software: {why}.",
    "Install the real one in its place, from NVIDIA's index.",
)


@check(
    "PKG-002",
    title="No placeholder is installed",
    causes=[PLACEHOLDER],
    about="NVIDIA holds many of its names on the public registry with placeholders: versions such as"
    " 0.0.1.dev5 that contain nothing, and nvidia-tensorrt 99.0.0, which outranks every real version and"
    " pulls in an unpinned TensorRT. If one is installed, the software of that name is not.",
    sources=(NAMES_SOURCE, "NVIDIA/tensorflow#15, #38 and #87"),
)
def placeholders(view: SnapshotView) -> Iterator[Verdict]:
    held = [(one, placeholder(name, one.version)) for name, one in installed(view).items()]
    for one, why in held:
        if why is not None:
            install = pip_install(view, f"{one.name}!={one.version}")
            commands = [f"{install} --index-url {NVIDIA_INDEX} --force-reinstall --no-deps"]
            yield found(view, PLACEHOLDER, one, commands=commands, why=why.why)
    if not any(why for _, why in held):
        yield Passed("every package is the software that its name says")


_SHARED = "{packages} share one directory: whichever was installed last has overwritten the others"
_KEEP = (
    "Keep the one that you want: it is installed before the others are uninstalled, and once more, since that"
    " removes shared files (nvidia-tensorflow comes from NVIDIA's index)."
)
_SEVERAL = "several TensorFlow packages are installed"
MIXED = Cause(
    "tensorflows-mixed",
    "fail",
    _SEVERAL,
    f"{_SHARED}, and files of several versions lie mixed.",
    _KEEP,
)
SEVERAL = Cause("several-tensorflows", "warn", _SEVERAL, f"{_SHARED}.", _KEEP)


@check(
    "PKG-003",
    title="One TensorFlow is installed",
    causes=[MIXED, SEVERAL],
    about="tensorflow, tensorflow-cpu, tensorflow-gpu, nvidia-tensorflow, tf-nightly and others install into"
    " the same directory. The last one overwrites the rest, a CPU build the GPU build too, and uninstalling"
    " either removes the other's files.",
    sources=("top_level.txt of the named distributions", WHEELS_SOURCE),
    follows=("PKG-002", "ENV-011"),
)
def one_tensorflow(view: SnapshotView) -> Iterator[Verdict]:
    several = tensorflows(installed(view))
    # tensorflow for aarch64 was a shell around tensorflow-cpu-aws: that pair is one installation.
    required = {
        re.split(r"[\s;<>=!~\[(]", text)[0].lower().replace("_", "-")
        for one in several
        for text in known(one.requires) or []
    } - {"tensorflow"}
    several = [one for one in several if one.normalized not in required]
    if not several:
        raise Skip("no TensorFlow is installed in the target")
    if len(several) == 1:
        yield Passed(named(several[0]))
        return
    names = " and ".join(map(named, several))
    mixed = len({version_of(one) or one.version for one in several}) > 1
    keep = next((one for one in several if one.normalized == "nvidia-tensorflow"), several[0])
    others = [one.name for one in several if one is not keep]
    yield (MIXED if mixed else SEVERAL).found(
        about("package", "tensorflow"),
        [view.evidence(PLACE, names)],
        commands=[pip_replace(view, f"{keep.name}=={keep.version}", *others)],
        packages=names,
    )


_SHADOWED = "a package is shadowed by another copy"
TWICE = Cause(
    "installed-twice",
    "warn",
    _SHADOWED,
    "{name} is there twice in {place} ({used} and {version}): an uninstallation was interrupted.",
    "Install it again, uninstall the remains of the other, and restore the files that this removed.",
)
SHADOWED = Cause(
    "shadowed",
    "warn",
    _SHADOWED,
    "{package} in {place} is never imported: {used} in {used_place} comes first.",
    "If another version is wanted, see which directory comes first, and what puts it there.",
)


@check(
    "PKG-004",
    title="No package is shadowed by another copy",
    causes=[TWICE, SHADOWED],
    about="If two copies of a distribution lie on sys.path, Python imports the first, which is not always"
    " the one that was installed last: user site-packages come before the system's, and PYTHONPATH before"
    " both. Two sets of metadata in one directory remain from an interrupted uninstallation. Judged for"
    " frameworks and NVIDIA's libraries alone: Debian's numpy behind a newer one is normal.",
    sources=("Python's documentation, module site and sys.path",),
)
def shadowed(view: SnapshotView) -> Iterator[Verdict]:
    first = installed(view)
    used_here = {id(one) for one in [*first.values(), *foreign(view)]}
    copies = [
        one
        for one in facts_of(view.target.packages, "the target's packages").distributions
        if one.shadowed and id(one) not in used_here and _is_judged(one.normalized)
    ]
    for one in copies:
        used = first.get(one.normalized)
        if used is None:
            continue
        together = used.location == one.location
        replace = pip_replace(view, f"{one.name}=={used.version}", one.name)
        where = f"{python(view)} -c 'import sys; print(*sys.path)'"
        yield found(
            view,
            TWICE if together else SHADOWED,
            one,
            evidence=[
                view.evidence(PLACE, f"{named(each)} in {each.location}") for each in (used, one)
            ],
            commands=[replace if together else where],
            name=one.name,
            version=one.version,
            place=one.location,
            used=used.version,
            used_place=used.location,
        )
    if not copies:
        yield Passed("each framework and NVIDIA library is there once")


def _is_judged(name: str) -> bool:
    return (
        name in TENSORFLOWS
        or name in ("torch", "jax", "jaxlib", "tensorrt", "horovod")
        or name.startswith(("nvidia-", "jax-cuda", "tensorrt-"))
    )

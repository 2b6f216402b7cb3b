"""Checks on the target's installed distributions: whether they are whole and real."""

from __future__ import annotations

import re

from ...data.packages import NAMES_SOURCE, NVIDIA_INDEX, placeholder
from .. import target
from ..reading import Skip, SnapshotView, is_absent, known
from ..target import PLACE, by_uv, installed, pip_install
from ..verdicts import Passed, Verdicts, check, fail, warn
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
_AGAIN = "Install it again over itself."
_FAILS = "what needs them fails, though it counts as installed."
CODE_MISSING = fail("code-missing", _LACKS, _FILES + _FAILS, _AGAIN)
FILES_MISSING = warn("files-missing", _LACKS, _FILES + "none is code.", _AGAIN)
CUT_OFF = fail(
    "library-cut-off",
    "an installed library is cut off",
    "{example} of {package} ends before its own headers say: what loads it fails, or crashes.",
    "See that the disk is not full, then install it again over itself.",
)
NO_RECORD = warn(
    "record-missing",
    "an installed package has lost its RECORD",
    "{package} has no RECORD, the list of its files: pip can neither uninstall nor upgrade it, and whether it"
    " is whole is not known.",
    "Install it again over itself, without uninstalling it.",
)


@check(
    "PKG-001",
    title="Installed packages are whole",
    causes=[CODE_MISSING, FILES_MISSING, CUT_OFF, NO_RECORD],
    about="Each wheel records which files it installed. Some may be missing: another package that shares a"
    " directory was uninstalled, an installation was interrupted, or the disk was full.",
    sources=("PEP 376 and PEP 627 (RECORD)", "pypa/pip#8396"),
)
def whole(view: SnapshotView) -> Verdicts:
    every = installed(view).values()
    recorded = [one for one in every if known(one.files) is not None]
    lost = [one for one in every if is_absent(one.files) and known(one.installer) in ("pip", "uv")]
    if not recorded and not lost:
        raise Skip("none of the target's packages says which files it installed")
    broken = len(lost)
    for one in lost:
        again = f"{pip_install(view, f'{one.name}=={one.version}')} --no-deps"
        option = "--reinstall" if by_uv(view) else "--ignore-installed"
        yield found(view, NO_RECORD, one, commands=[f"{again} {option}"])
    for one in recorded:
        gone = [path for path in one.missing if not _HARMLESS.search(path)]
        code = [path for path in gone if _CODE.search(path)]
        broken += bool(gone or one.cut_off)
        if one.cut_off:
            yield found(
                view,
                CUT_OFF,
                one,
                evidence=[view.evidence(PLACE, f"{one.name}: {', '.join(one.cut_off[:3])}")],
                commands=[target.pip_restore(view, one.name, one.version)],
                example=one.cut_off[0],
            )
        if gone:
            yield found(
                view,
                CODE_MISSING if code else FILES_MISSING,
                one,
                evidence=[view.evidence(PLACE, f"{one.name}: {', '.join(gone[:3])}")],
                commands=[target.pip_restore(view, one.name, one.version)],
                missing=one.missing_count,
                files=known(one.files),
                example=(code or gone)[0],
            )
    if not broken:
        yield Passed(f"{len(recorded)} packages of this field, no file missing that matters")


PLACEHOLDER = fail(
    "placeholder",
    "a placeholder is installed, not the software",
    "{package} is a placeholder on the registry, not the software: {why}.",
    "Install the real one in its place, from NVIDIA's index.",
)


@check(
    "PKG-002",
    title="No placeholder is installed",
    causes=[PLACEHOLDER],
    about="NVIDIA holds many of its names on the public registry with placeholders: versions such as"
    " 0.0.1.dev5 that contain nothing, and nvidia-tensorrt 99.0.0, which outranks every real version.",
    sources=(NAMES_SOURCE, "NVIDIA/tensorflow#15, #38 and #87"),
)
def placeholders(view: SnapshotView) -> Verdicts:
    held = [(one, placeholder(name, one.version)) for name, one in installed(view).items()]
    for one, why in held:
        if why is not None:
            install = target.pip_install(view, f"{one.name}!={one.version}")
            commands = [f"{install} --index-url {NVIDIA_INDEX} --force-reinstall --no-deps"]
            yield found(view, PLACEHOLDER, one, commands=commands, why=why.why)
    if not any(why for _, why in held):
        yield Passed("every package is the software that its name says")

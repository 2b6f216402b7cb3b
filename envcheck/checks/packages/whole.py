"""Checks on the target's installed distributions: whether they are whole and real."""

from __future__ import annotations

import re

from ...data.packages import NVIDIA_INDEX, placeholder
from .. import target
from ..declared import declared_causes
from ..reading import Skip, SnapshotView, is_absent, known
from ..target import PLACE, by_uv, installed, pip_install
from ..verdicts import Passed, Verdicts, check
from .common import found

CAUSE = declared_causes(__name__)

# Missing files that nothing imports: byte code, tests, headers, documentation, static libraries.
_HARMLESS = re.compile(
    r"\.(pyc|pyo|pyi|h|hpp|cuh|inc|a|md|rst|txt|html|ipynb)$|(^|/)(tests?|testing|docs?|include)/"
    r"|\.dist-info/|LICENSE|NOTICE",
    re.I,
)
_CODE = re.compile(r"\.(py|pth|bc|fatbin|cubin)$|\.so(\.\d\w*)*$")


@check("PKG-001")
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
        yield found(view, CAUSE["record-missing"], one, commands=[f"{again} {option}"])
    for one in recorded:
        gone = [path for path in one.missing if not _HARMLESS.search(path)]
        code = [path for path in gone if _CODE.search(path)]
        broken += bool(gone or one.cut_off)
        if one.cut_off:
            yield found(
                view,
                CAUSE["library-cut-off"],
                one,
                evidence=[view.evidence(PLACE, f"{one.name}: {', '.join(one.cut_off[:3])}")],
                commands=[target.pip_restore(view, one.name, one.version)],
                example=one.cut_off[0],
            )
        if gone:
            yield found(
                view,
                CAUSE["code-missing"] if code else CAUSE["files-missing"],
                one,
                evidence=[view.evidence(PLACE, f"{one.name}: {', '.join(gone[:3])}")],
                commands=[target.pip_restore(view, one.name, one.version)],
                missing=one.missing_count,
                files=known(one.files),
                example=(code or gone)[0],
            )
    if not broken:
        yield Passed(f"{len(recorded)} packages of this field, no file missing that matters")


@check("PKG-002")
def placeholders(view: SnapshotView) -> Verdicts:
    held = [(one, placeholder(name, one.version)) for name, one in installed(view).items()]
    for one, why in held:
        if why is not None:
            install = target.pip_install(view, f"{one.name}!={one.version}")
            commands = [f"{install} --index-url {NVIDIA_INDEX} --force-reinstall --no-deps"]
            yield found(view, CAUSE["placeholder"], one, commands=commands, why=why.why)
    if not any(why for _, why in held):
        yield Passed("every package is the software that its name says")

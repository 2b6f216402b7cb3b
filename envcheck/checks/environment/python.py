"""Checks on environment variables that change what the interpreter and the loader take in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import target
from ..declared import declared_causes
from ..reading import Distribution, Skip, SnapshotView, fact, facts_of, known
from ..verdicts import Cause, Finding, Passed, Verdicts, about, about_file, check, word
from .common import misset, setting_evidence

CAUSE = declared_causes(__name__)

# Libraries that a preload may not replace without changing what the GPU stack does.
_OF_THIS_STACK = re.compile(
    r"lib(cu(da|dart|dnn|blas|fft|rand|solver|sparse|pti)|nccl|nvrtc|nvJitLink|nvToolsExt|nvinfer|nvidia|vgpu"
    r"|cuda-control)[\w.-]*$"
)
_USER_SITE = re.compile(r"/\.local/lib/python\d")


@check("ENV-007")
def preload(view: SnapshotView) -> Verdicts:
    value = target.variables(view).get("LD_PRELOAD", "").strip()
    files = re.split(r"[\s:]+", value)
    ours = [file for file in files if _OF_THIS_STACK.match(file.rpartition("/")[2])]
    if ours:
        yield misset(view, CAUSE["gpu-library-preloaded"], "LD_PRELOAD", files=", ".join(ours))
    else:
        yield Passed(f"LD_PRELOAD={value}" if value else "LD_PRELOAD is not set")


_UNSET = ("unset PYTHONPATH",)
_BRINGERS = {
    "cwd": "The working directory",
    "user-site": "The user's site directory",
    "sys.path": "A path file (.pth)",
}


@check("ENV-011")
def leaks(view: SnapshotView) -> Verdicts:
    interpreter = facts_of(view.target.interpreter, "the target's interpreter")
    borrowed = target.foreign(view)
    others = [one for one in borrowed if target.of_another_python(view, one)]
    paths = target.python_path(view)
    shadows = list(_shadows(view))
    yield from shadows
    if others:
        if target.is_below(others[0].location, paths):
            yield _leak(view, CAUSE["pythonpath-of-another-python"], others, "PYTHONPATH")
        else:
            yield _leak(view, CAUSE["packages-of-another-python"], others, "sys.path")
    if interpreter.kind == "interpreter":
        if others or shadows:
            return
        raise Skip("the target is no virtual environment")
    home = target.variables(view).get("PYTHONHOME")
    if home:
        yield misset(view, CAUSE["pythonhome-set"], "PYTHONHOME")
    rest = [one for one in [*borrowed, *target.installed(view).values()] if one not in others]
    by_path = [one for one in rest if target.is_below(one.location, paths)]
    rest = [] if known(interpreter.user_site) is False else rest
    by_user = [one for one in rest if one not in by_path and _USER_SITE.search(one.location)]
    if by_path:
        yield _leak(view, CAUSE["pythonpath-leaks"], by_path, "PYTHONPATH")
    if by_user:
        fails = next((one for one in target.framework_facts(view) if not one.imported), None)
        own = {
            one.normalized
            for one in fact(view.target.packages, "distributions") or []
            if one.shadowed
        }
        hiding = [one for one in by_user if fails is not None and one.normalized in own]
        cause = CAUSE["user-site-hides-own"] if hiding else CAUSE["user-site-leaks"]
        title = target.title_of(fails) if fails is not None else ""
        yield _leak(view, cause, hiding or by_user, _BRINGERS["user-site"], title)
    if not home and not others and not by_path and not by_user and not shadows:
        yield Passed("every package of this field is the environment's own")


def _shadows(view: SnapshotView) -> Iterator[Finding]:
    """One for each file that comes before an installed module, or before Python's own."""
    seen = set()
    for facts in target.framework_facts(view):
        for one in facts.shadows:
            if one.file in seen:
                continue
            seen.add(one.file)
            own = "-packages/" not in one.hides
            what = f"Python's own module {one.module}" if own else f"the installed {one.module}"
            path = one.file.removesuffix("/__init__.py")
            by_path = one.by == "PYTHONPATH"
            evidence = [view.evidence(f"target.{facts.name}.shadows", one.file)]
            yield (
                CAUSE["standard-library-shadowed"] if own else CAUSE["installed-module-shadowed"]
            ).found(
                about_file(one.file),
                [*([setting_evidence(view, one.by)] if by_path else []), *evidence],
                commands=[*_UNSET] if by_path else [f"mv -n {word(path)} {word(path + '.aside')}"],
                file=one.file,
                what=what,
                hides=one.hides,
                framework=target.title_of(facts),
                origin=_BRINGERS.get(one.by, one.by),
            )


def _leak(
    view: SnapshotView, cause: Cause, leaked: list[Distribution], origin: str, framework: str = ""
) -> Finding:
    first = leaked[0]
    by_path = origin == "PYTHONPATH"
    field = "version" if cause is CAUSE["packages-of-another-python"] else "user_site"
    more = f" and {len(leaked) - 3} more" if len(leaked) > 3 else ""
    look = f"{target.python(view)} -c 'import sys; print(*sys.path)'"
    setting = setting_evidence(view, origin)
    return cause.found(
        about("variable", origin) if by_path else about_file(first.location),
        [
            setting if by_path else view.evidence(f"target.interpreter.{field}"),
            view.evidence(target.PLACE, f"{target.named(first)} in {first.location}"),
        ],
        commands=cause.commands or [look],
        origin=origin,
        packages=", ".join(map(target.named, leaked[:3])) + more,
        place=first.location,
        framework=framework,
        python="{}.{}".format(*(target.python_version(view) or ("?", "?"))),
    )

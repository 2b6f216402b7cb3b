"""Checks on environment variables that change what the interpreter and the loader take in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.target import Distribution
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about, about_file
from ..registry import check
from ..target import (
    PLACE,
    foreign,
    installed,
    is_below,
    named,
    of_another_python,
    python,
    python_path,
    python_version,
    variables,
)
from .common import misset

# Libraries that a preload may not replace without changing what the GPU stack does.
_OF_THIS_STACK = re.compile(
    r"lib(cuda|cudart|cudnn|cublas|cufft|curand|cusolver|cusparse|nccl|nvrtc|nvinfer|nvidia|vgpu|cuda-control)"
    r"[\w.-]*$"
)
_USER_SITE = re.compile(r"/\.local/lib/python\d")


@check(
    "ENV-007",
    title="LD_PRELOAD replaces nothing of the GPU stack",
    problem="LD_PRELOAD replaces a library of the GPU stack",
    about=(
        "A library in LD_PRELOAD comes before all others in every process. A memory allocator there is "
        "common and harmless; a libcuda, libcudnn or a GPU-sharing shim there takes the place of the real "
        "one, with the limits and the faults of its own. A warning for those."
    ),
    sources=("ld.so(8)",),
)
def preload(view: SnapshotView) -> Iterator[Verdict]:
    value = variables(view).get("LD_PRELOAD")
    if not value or not value.strip():
        yield Passed("LD_PRELOAD is not set")
        return
    files = [word for word in re.split(r"[\s:]+", value) if word]
    ours = [file for file in files if _OF_THIS_STACK.match(file.rpartition("/")[2])]
    if not ours:
        yield Passed(f"LD_PRELOAD={value}")
        return
    yield misset(
        view,
        "LD_PRELOAD",
        f"LD_PRELOAD puts {', '.join(ours)} before the library of the driver or the framework in every "
        "process.",
        "Unset it, unless whoever shares the GPUs wants it so.",
    )


@check(
    "ENV-011",
    title="No packages leak into the environment",
    problem="packages leak into the environment",
    about=(
        "PYTHONPATH and the user's site-packages (~/.local) come before a virtual or conda environment's "
        "own packages, and conda does not switch them off: a framework or a CUDA library from there is "
        "used instead of the one that was installed, or beside it. PYTHONHOME moves the whole standard "
        "library. A warning for PYTHONHOME, and for each of this field's packages that really comes from "
        "outside; a PYTHONPATH with a project's own code is fine. A failure where the packages are those of "
        "another version of Python, whose compiled files do not load. The checks on packages leave another "
        "environment's aside: they judge what is installed in this one."
    ),
    sources=("Python's documentation, environment variables and module site",),
)
def leaks(view: SnapshotView) -> Iterator[Verdict]:
    interpreter = facts_of(view.target.interpreter, "the target's interpreter")
    borrowed = foreign(view)
    others = [one for one in borrowed if of_another_python(view, one)]
    if others:
        yield _of_another_python(view, others)
    if interpreter.kind == "interpreter":
        if others:
            return
        raise Skip("the target is no virtual environment")
    values = variables(view)
    home = values.get("PYTHONHOME")
    if home:
        yield misset(
            view,
            "PYTHONHOME",
            f"PYTHONHOME={home} makes this environment's Python use another one's standard library.",
        )
    distributions = [*borrowed, *installed(view).values()]
    by_path = [
        one
        for one in distributions
        if one not in others and is_below(one.location, python_path(view))
    ]
    by_user = [
        one
        for one in distributions
        if one not in [*others, *by_path] and _is_user(one, known(interpreter.user_site))
    ]
    if by_path:
        yield _leak(
            view, "PYTHONPATH", by_path, f"PYTHONPATH={values['PYTHONPATH']}", "unset PYTHONPATH"
        )
    if by_user:
        yield _leak(
            view,
            "The user's site directory",
            by_user,
            "the user's site directory is on sys.path",
            "export PYTHONNOUSERSITE=1",
        )
    if not home and not others and not by_path and not by_user:
        yield Passed("every package of this field is the environment's own")


def _of_another_python(view: SnapshotView, found: list[Distribution]) -> Finding:
    by_path = is_below(found[0].location, python_path(view))
    where = "PYTHONPATH" if by_path else "sys.path"
    version = "{}.{}".format(*(python_version(view) or ("?", "?")))
    return Finding(
        "fail",
        f"{where} brings {_named(found)} from {found[0].location}, packages of another Python, before the own"
        f" ones of this Python {version}: what is compiled there does not load here.",
        subjects=about("variable", where) if by_path else about_file(found[0].location),
        evidence=[
            view.evidence(
                "target.environment.variables", f"PYTHONPATH={':'.join(python_path(view))}"
            )
            if by_path
            else view.evidence("target.interpreter.version"),
            view.evidence(PLACE, f"{named(found[0])} in {found[0].location}"),
        ],
        remedy=Remedy(
            "Keep it out of this Python, then look again before anything is installed.",
            ["unset PYTHONPATH"]
            if by_path
            else [f"{python(view)} -c 'import sys; print(*sys.path)'"],
        ),
        headline="PYTHONPATH brings another Python's packages" if by_path else "",
    )


def _named(found: list[Distribution]) -> str:
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return ", ".join(named(one) for one in found[:3]) + more


def _is_user(one: Distribution, user_site: bool | None) -> bool:
    return user_site is not False and _USER_SITE.search(one.location) is not None


def _leak(
    view: SnapshotView, who: str, found: list[Distribution], why: str, command: str
) -> Finding:
    return Finding(
        "warn",
        f"{who} brings {_named(found)} from {found[0].location} into this environment, before its own.",
        subjects=about("variable", who) if who == "PYTHONPATH" else about_file(found[0].location),
        evidence=[
            view.evidence("target.environment.variables", why)
            if who == "PYTHONPATH"
            else view.evidence("target.interpreter.user_site"),
            view.evidence(PLACE, f"{named(found[0])} in {found[0].location}"),
        ],
        remedy=Remedy("Keep it out of this environment.", [command]),
    )

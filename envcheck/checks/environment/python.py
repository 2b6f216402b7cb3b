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
from ..target import PLACE, installed, named, variables
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
        "outside; a PYTHONPATH with a project's own code is fine."
    ),
    sources=("Python's documentation, environment variables and module site",),
)
def leaks(view: SnapshotView) -> Iterator[Verdict]:
    interpreter = facts_of(view.target.interpreter, "the target's interpreter")
    if interpreter.kind == "interpreter":
        raise Skip("the target is no virtual environment")
    values = variables(view)
    home = values.get("PYTHONHOME")
    if home:
        yield misset(
            view,
            "PYTHONHOME",
            f"PYTHONHOME={home} makes this environment's Python use another one's standard library.",
        )
    extra = [
        entry.rstrip("/") for entry in (values.get("PYTHONPATH") or "").split(":") if entry.strip()
    ]
    distributions = installed(view).values()
    by_path = [one for one in distributions if _below(one.location, extra)]
    by_user = [
        one
        for one in distributions
        if one not in by_path and _is_user(one, known(interpreter.user_site))
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
    if not home and not by_path and not by_user:
        yield Passed("every package of this field is the environment's own")


def _below(location: str, entries: list[str]) -> bool:
    return any(
        location.rstrip("/") == entry or location.startswith(entry + "/") for entry in entries
    )


def _is_user(one: Distribution, user_site: bool | None) -> bool:
    return user_site is not False and _USER_SITE.search(one.location) is not None


def _leak(
    view: SnapshotView, who: str, found: list[Distribution], why: str, command: str
) -> Finding:
    names = ", ".join(named(one) for one in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return Finding(
        "warn",
        f"{who} brings {names}{more} from {found[0].location} into this environment, before its own.",
        subjects=about("variable", who) if who == "PYTHONPATH" else about_file(found[0].location),
        evidence=[
            view.evidence("target.environment.variables", why)
            if who == "PYTHONPATH"
            else view.evidence("target.interpreter.user_site"),
            view.evidence(PLACE, f"{named(found[0])} in {found[0].location}"),
        ],
        remedy=Remedy("Keep it out of this environment.", [command]),
    )

"""The check on packages whose files another package's replaced."""

from __future__ import annotations

import re
from collections.abc import Container

from packaging.utils import canonicalize_name

from ...data.packages import TENSORFLOWS
from ..gpus import plural
from ..reading import Distribution, Skip, SnapshotView, fact
from ..target import installed, named, pip_replace
from ..verdicts import Passed, Verdicts, check, fail, warn
from .common import found

_FOR_GPUS = re.compile(r"(?:^|-)(?:gpu|cuda|cu)\d*(?:$|-)")
_HEADLINE = "{package} is overwritten by {others}"
_SAME = (
    "{package} and {others} bring the same files, and {others} wrote last: what {package} brought"
    " is gone from {files}, {example} among them"
)
_KEEP = "Keep {kept}, and uninstall the other. It is installed again after that, which removes shared files."
LOST = fail(
    "needed-files-overwritten", _HEADLINE, _SAME + ". {package} is the one that is needed.", _KEEP
)
OVERWRITTEN = warn("files-overwritten", _HEADLINE, _SAME + ".", _KEEP)


@check(
    "PKG-021",
    title="No package's files are another one's",
    causes=[LOST, OVERWRITTEN],
    about="Two distributions can bring files of the same names (onnxruntime and onnxruntime-gpu, NVIDIA's"
    " wheels of two CUDA versions): pip installs both, and the last one wins. Which it was, the files' hashes"
    " in both RECORDs say. It fails where a framework requires the loser, or the loser alone is for GPUs.",
    sources=("PEP 376 and PEP 627 (RECORD)", "GLiNER#267", "returnn#1802", "pypa/pip#4625"),
    follows=("PKG-003", "ENV-011"),
)
def overwritten(view: SnapshotView) -> Verdicts:
    distributions = installed(view)
    required = fact(view.target.packages, "required") or []
    if not distributions:
        raise Skip("no packages of this field in the target")
    pairs = [
        (one, other, lost)
        for one in distributions.values()
        for lost in one.overwritten
        if (other := distributions.get(canonicalize_name(lost.by))) is not None
        and not {one.normalized, other.normalized} <= TENSORFLOWS
    ]
    for one, other, lost in pairs:
        loser, winner = _wanted(one, required), _wanted(other, required)
        kept, gone = (other, one) if winner > loser else (one, other)
        yield found(
            view,
            LOST if loser > winner else OVERWRITTEN,
            one,
            other,
            commands=[pip_replace(view, f"{kept.name}=={kept.version}", gone.name)],
            files=plural(lost.files, "file"),
            example=lost.example,
            kept=named(kept),
        )
    if not pairs:
        yield Passed(f"{len(distributions)} packages of this field")


def _wanted(one: Distribution, required: Container[str]) -> tuple[bool, bool]:
    return one.normalized in required, _FOR_GPUS.search(one.normalized) is not None

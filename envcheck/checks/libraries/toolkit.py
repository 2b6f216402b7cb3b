"""The check on the CUDA toolkit that extensions of PyTorch are compiled with."""

from __future__ import annotations

from ...facts.target import Toolkit
from .. import target
from ..declared import declared_causes
from ..reading import Skip, SnapshotView, facts_of, known, need
from ..system_commands import on_system
from ..verdicts import Cause, Finding, Passed, Remedy, Verdicts, about_file, check, word

CAUSE = declared_causes(__name__)

# Compiles its operations when they are first used, where its wheel was not built with them.
_COMPILES_LATE = "deepspeed"


@check("LIB-012")
def toolkit(view: SnapshotView) -> Verdicts:
    target.need_gpus(view)
    facts = target.framework(view, "torch")
    cuda = ".".join(((known(facts.built_cuda) if facts else "") or "").split(".")[:2])
    if not cuda:
        raise Skip("no PyTorch with CUDA is imported")
    every = need(facts_of(view.target.loader, "the target's libraries").toolkits, "CUDA toolkits")
    late = target.installed(view).get(_COMPILES_LATE)
    user = target.named(late) if late and not known(late.compiled) else ""
    taken = next((one for one in every if one.place != "aside"), None)
    fitting = [one for one in every if target.same(known(one.nvcc) or "0", cuda, parts=1)]
    nvcc = known(taken.nvcc) if taken else None
    if taken is None or not nvcc:
        if user:
            beside = f" in {taken.root}, which {taken.place} names" if taken else ""
            yield _found(
                view, CAUSE["nvcc-missing"], taken, fitting, cuda, user=user, beside=beside
            )
            return
        raise Skip("no nvcc is here, and nothing is known to need one")
    if taken not in fitting and (user or any(one.place == "/usr/local/cuda" for one in fitting)):
        yield _found(view, CAUSE["nvcc-of-another-cuda"], taken, fitting, cuda)
    elif user and taken.lacks:
        whole = [one for one in fitting if not one.lacks]
        lacks = ", ".join(taken.lacks)
        yield _found(
            view, CAUSE["toolkit-headers-missing"], taken, whole, cuda, user=user, lacks=lacks
        )
    else:
        yield Passed(f"nvcc {nvcc} in {taken.root}; PyTorch of CUDA {cuda}")


def _found(
    view: SnapshotView,
    cause: Cause,
    taken: Toolkit | None,
    fitting: list[Toolkit],
    cuda: str,
    **params: str,
) -> Finding:
    root = word(fitting[0].root) if fitting else ""
    lead = f"export CUDA_HOME={root} PATH={root}/bin:$PATH"
    commands = [lead] if root else on_system(view, "cuda-toolkit", dashed=cuda.replace(".", "-"))
    text = "Let CUDA_HOME and PATH lead to the toolkit that fits."
    if not root:
        text = f"Install the toolkit of CUDA {cuda} as a whole, without a driver, and lead CUDA_HOME to it."
        commands.append(
            f"export CUDA_HOME=/usr/local/cuda-{cuda} PATH=/usr/local/cuda-{cuda}/bin:$PATH"
        )
    shown = f"{taken.root}: nvcc {known(taken.nvcc) or 'is not there'}" if taken else "none"
    return cause.found(
        about_file(taken.root if taken else "nvcc"),
        [view.evidence("target.loader.toolkits", shown)],
        advice=Remedy(text, commands),
        root=taken.root if taken else "",
        nvcc=(known(taken.nvcc) if taken else "") or "",
        cuda=cuda,
        **params,
    )

"""What text, JSON and page say of a soak alike."""

from __future__ import annotations

from collections.abc import Sequence

from ..facts.base import known
from ..facts.soak import Soak, SoakGpu
from ..findings.model import CheckResult, Outcome

_STOPPED = {
    "": "",
    "user": ", stopped by its user",
    "fail-fast": ", ended at the first failure",
    "none-left": ", ended since no GPU was left",
}


def span(seconds: float) -> str:
    """ "5:00", "1:02:03", "2 d 3:00:00" """
    whole = round(seconds)
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{days} d {hours}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def gpu_word(gpu: SoakGpu) -> str:
    index, name = known(gpu.index), known(gpu.name)
    word = f"GPU {index}" if index is not None else known(gpu.gpu) or "GPU"
    return f"{word} {name}" if name else word


def how(gpu: SoakGpu) -> str:
    """What computed: "cublasGemmEx, FP16 into FP32 (libcublas.so.12 12.9.1)"."""
    library = (
        f" ({gpu.library} {gpu.library_version})" if gpu.library else " (envcheck's own kernel)"
    )
    return f"{gpu.call}{library}" if gpu.call else ""


def lasted(gpu: SoakGpu) -> str:
    """What became of it: "ok", "died at 1:02:03"."""
    if gpu.outcome in ("died", "hung") and gpu.ended is not None:
        return f"{gpu.outcome} at {span(gpu.ended)}"
    return f"lost at {span(gpu.lost_at)}" if gpu.lost_at is not None else gpu.outcome


def worst(results: Sequence[CheckResult]) -> Outcome:
    found = {result.outcome for result in results}
    for outcome in ("fail", "warn", "could-not-run", "pass"):
        if outcome in found:
            return outcome
    return "skipped"


def summary(soak: Soak, results: Sequence[CheckResult]) -> str:
    """One line: "OK: 8 GPUs, 30:00, 1,234,567 products, each compared to the bit"."""
    ran = [gpu for gpu in soak.gpus if gpu.outcome not in ("busy", "not-run")]
    products = sum(gpu.products for gpu in ran)
    number = f"{len(ran)} GPU{'' if len(ran) == 1 else 's'}"
    told = f"{number}, {span(soak.seconds)}, {products:,} products compared{_STOPPED[soak.stopped]}"
    found = [finding for result in results for finding in result.findings]
    outcome = worst(results)
    word = {"fail": "FAIL", "warn": "WARN", "pass": "OK"}.get(outcome, "COULD NOT JUDGE")
    if not found:
        return f"{word}: {told}"
    levels = [finding for finding in found if finding.level == outcome] or found
    heads = [f"{one.subject or 'it'} {one.headline}".strip() for one in levels if one.headline]
    more = f"; and {len(heads) - 2} more" if len(heads) > 2 else ""
    return f"{word}: {'; '.join(heads[:2])}{more} ({told})"

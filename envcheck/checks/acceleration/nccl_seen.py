"""What a run of NCCL left behind, in words that its two checks share."""

from __future__ import annotations

from ...facts.acceleration import SystemTrial
from .common import Seen

# The trials' names, as collector/acceleration/systems/nccl.py gives them.
TOGETHER, ALONE = "all-reduce", "one rank"
NVLS_OFF, P2P_OFF = "NCCL_NVLS_ENABLE=0", "NCCL_P2P_DISABLE=1"


def words_of(trial: SystemTrial | None, name: str) -> list[str]:
    """A list of words of a trial's evidence; [] where it has none."""
    value = None if trial is None else trial.evidence.get(name)
    return value if isinstance(value, list) else []


def text_of(trial: SystemTrial | None, name: str) -> str:
    """A word of a trial's evidence; "" where it has none."""
    value = None if trial is None else trial.evidence.get(name)
    return value if isinstance(value, str) else ""


def count(trial: SystemTrial | None, name: str) -> int:
    """A count of a trial's evidence; 0 where it has none."""
    value = None if trial is None else trial.evidence.get(name)
    return value if isinstance(value, int) else 0


def nccl(seen: Seen) -> str:
    """ "NCCL 2.21.5", of the first trial that says its version."""
    versions = [text_of(one, "version") for one in seen.run.trials]
    return f"NCCL {next(filter(None, versions), '')}".strip()


def is_right(trial: SystemTrial | None) -> bool:
    """Whether all its sums came, and were exact."""
    if trial is None or trial.outcome != "ok" or "wrong" not in trial.evidence:
        return False
    return count(trial, "compared") > 0 and trial.evidence["wrong"] == 0


def way(trial: SystemTrial) -> str:
    """ "Ring over P2P/CUMEM, 24 channels", as far as it was logged."""
    over = ", ".join(words_of(trial, "transports")[:3])
    told = [
        text_of(trial, "algorithm") or "an algorithm that it does not log",
        f"over {over}" if over else "",
    ]
    channels = count(trial, "channels")
    return " ".join(filter(None, told)) + (f", {channels} channels" if channels else "")

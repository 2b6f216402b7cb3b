"""The health of a node's GPUs in one sentence, from the doctor's report. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ...findings.states import State
from ...reports.machine import gpu_phrase
from ...reports.model import Report, status_of
from ..engines.slurm_drain import may_drain, sentence

# The last two explain what fails where this container was not given the GPUs: that is not the node's fault.
CHECKS = ["driver", "gpu", "pci", "KRN-006", "ENV-009"]
_OF_THE_NODE = "nodes-missing"  # of KRN-006's causes; the others are about this container or user

# node-problem-detector's exit codes.
OK, PROBLEM, UNKNOWN = 0, 1, 2


class NodeHealth(NamedTuple):
    """state: broken, degraded, silent (nothing is known) or healthy. code: of the first check that
    says so."""

    state: State
    sentence: str
    code: str = ""

    def conditions(self) -> dict[str, int]:
        """Node conditions, and whether each is a problem (OK, PROBLEM or UNKNOWN)."""
        unknown = UNKNOWN if self.state == "silent" else OK
        return {
            "GPUBroken": PROBLEM if self.state == "broken" else unknown,
            "GPUDegraded": PROBLEM if self.state == "degraded" else unknown,
        }


def judge(report: Report) -> NodeHealth:
    """The health that a report on CHECKS shows."""
    results = [
        one
        for one in report.results
        if may_drain(one.code) or any(found.cause == _OF_THE_NODE for found in one.findings)
    ]
    state = status_of(results)
    of_it = [one for one in results if status_of([one]) == state]
    if state in ("broken", "degraded"):
        return NodeHealth(state, sentence(of_it), of_it[0].code)
    judged = any(one.area == "gpu" and one.outcome in ("pass", "warn") for one in results)
    if state == "healthy" and judged:
        machine = report.machine
        driver = f", driver {machine.driver}" if machine.driver else ""
        return NodeHealth(state, f"{gpu_phrase(machine.gpus)}{driver}: no check failed")
    why = [one for one in report.results if one.outcome == "fail"] or of_it
    return NodeHealth("silent", f"the GPUs could not be judged: {sentence(why)}")

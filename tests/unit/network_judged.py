"""What the checks on the network say of a network, of a machine that is well in all else."""

from __future__ import annotations

from judged import results
from whole import whole

from envcheck.facts.network import Network
from envcheck.facts.snapshot import Snapshot
from envcheck.findings.model import CheckResult


def judge(found: Snapshot | Network, code: str) -> CheckResult:
    snapshot = whole(network=found) if isinstance(found, Network) else found
    return results(snapshot, ("network",))[code]


def findings(found: Snapshot | Network, code: str) -> list[str]:
    return [f"{one.level}: {one.message}" for one in judge(found, code).findings]


def commands(result: CheckResult) -> list[str]:
    return [
        command
        for finding in result.findings
        if finding.remedy is not None
        for command in finding.remedy.commands
    ]

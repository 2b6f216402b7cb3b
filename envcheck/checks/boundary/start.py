"""The check on a container that its engine does not start with the GPUs: why, by the engine's own words."""

from __future__ import annotations

from collections.abc import Iterator

from ...data.engine_errors import EngineError, explain
from ...facts.base import known
from ...facts.missing import Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.subjects import about
from ..driver_state import branch, driver_version
from ..registry import check
from ..system_commands import on_system
from .common import image


@check(
    "BND-010",
    title="The engine starts the container with its GPUs",
    problem="the container does not start with its GPUs",
    about="Between `run` and the first process NVIDIA's tools bring devices and libraries into a container;"
    " where they fail, the engine ends with a long line whose last words are the reason: 'libnvidia-ml.so.1:"
    " file exists' for an image with a driver of its own on WSL, 'cgroup subsystem devices not found' for a"
    " library that is too old, 'unsatisfied condition: cuda>=12.8' for a driver that is. Judged by those"
    " words, where the container did not start.",
    sources=(
        "engine_errors.csv",
        "nvidia-docker#1699, #1551; nvidia-container-toolkit#289",
    ),
    follows=("KRN-001", "KRN-002", "CTR-002", "CTR-004", "CTR-007", "CTR-008", "CTR-011"),
)
def container_starts(view: SnapshotView) -> Iterator[Verdict]:
    probe = view.inside.interpreter
    if probe is None:
        raise Skip("the container's inside: not in this snapshot")
    if probe.facts is not None:
        yield Passed("it started")
        return
    said = f"{probe.reason} {probe.evidence}"
    told = explain(said)
    if told is None:
        raise Skip("what the engine said is not known here (BND-001)")
    yield Finding(
        "fail",
        f"The container does not start: {told.meaning}.",
        subjects=about("container", view.inside.location),
        evidence=[view.evidence("target.interpreter", probe.reason)],
        remedy=Remedy(told.remedy, _commands(view, told)),
    )


def _commands(view: SnapshotView, told: EngineError) -> list[str]:
    commands: list[str] = []
    for command in told.commands:
        if command.startswith("@"):
            version = known(driver_version(view)[0])
            commands += on_system(view, command[1:], branch=branch(version))
        else:
            commands.append(command.replace("{image}", image(view)))
    return commands

"""Keeps the trials of a system that a test runs in its own process."""

from __future__ import annotations

from typing import Any

from envcheck.collector.systems.running.records import SystemWriter, trial_of


class Kept(SystemWriter):
    """trials: fields of SystemTrials, in their order."""

    def __init__(self) -> None:
        super().__init__(self)  # type: ignore[no-untyped-call]
        self.trials: list[dict[str, Any]] = []

    def stage(self, name: str, key: str) -> None:
        """No parent waits for it."""

    def result(self, trial: dict[str, Any], key: str) -> None:
        self.trials.append(trial_of(trial, key))  # type: ignore[no-untyped-call]
